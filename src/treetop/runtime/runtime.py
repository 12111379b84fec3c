"""`Runtime`: threads, device, precision and progress. Never saved with a model."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

from treetop.errors import TreetopError
from treetop.fields import check_fields, documented, documented_fields, parameters_section
from treetop.runtime.memory import parse_size
from treetop.runtime.parallel import thread_count
from treetop.runtime.progress import Reporter


def check_folder_name(folder: str) -> None:
    """Raise if no folder is named: TensorBoard would choose one."""
    if not folder:
        raise TreetopError("tensorboard is '': give a folder")


@dataclass(frozen=True)
class Runtime:
    """Options for the machine on which a model is trained, used or served.

    They do not change what is learned, up to rounding in the encoder, and are not saved with the model.
    Pass a runtime as ``runtime=`` to `fit`, `predict`, `load` and `serve`. Its ``reporter`` receives
    the progress.

    Examples
    --------
    >>> import treetop
    >>> runtime = treetop.Runtime(threads=1)
    >>> model = treetop.XRLinear().fit(["red", "blue"] * 5, [["a"], ["b"]] * 5, runtime=runtime)
    >>> model.predict(["red"], k=1, runtime=runtime)[0][0][0]
    'a'
    """

    threads: int | None = documented(
        None, "Number of CPU threads; null uses all available cores.", at_least=1
    )
    device: str = documented(
        "auto",
        "Device of the encoder: auto (a GPU if available), cpu, cuda, cuda:1 or mps.",
    )
    precision: str = documented(
        "auto",
        "Floating-point type of the encoder: fp32, bf16, or auto (bf16 where the device supports it).",
        choices=("auto", "fp32", "bf16"),
    )
    cuda_graphs: bool = documented(
        True,
        "Replay training steps as CUDA graphs, which keeps a GPU busy with small encoders.",
    )
    fused_layers: bool = documented(
        True,
        "On a GPU, compute gradients of layer norms and biases with Triton if installed.",
    )
    fallback: bool = documented(False, "Continue training on the CPU if the GPU fails.")
    checkpoint_minutes: float = documented(
        5.0, "Minutes between checkpoints; only runs with a folder write checkpoints.", above=0
    )
    tensorboard: str | None = documented(
        None, "Folder for TensorBoard logs; null writes none.", parse=check_folder_name
    )
    verbose: bool | int = documented(
        False,
        "Show the progress of training: in a notebook, on a terminal, or as lines of text.",
        at_least=0,
    )
    memory: str | None = documented(
        None,
        "Maximum memory of training, such as 8GB: with fewer threads if necessary; what cannot be kept "
        "is an error. null sets no limit.",
        parse=parse_size,
    )
    processes: int = documented(
        1,
        "Number of processes on this machine that fine-tune and encode together: one per GPU, or each "
        "on a share of the threads.",
        at_least=1,
    )
    deterministic: bool = documented(
        False,
        "On a CPU, train the same encoder, bit for bit, on any number of processes: gradients are "
        "added up in one order and each process computes with one thread, which takes longer.",
    )
    stall_minutes: float = documented(
        30.0,
        "Minutes after which a process or machine that does not answer counts as failed.",
        above=0,
    )
    cluster: str | None = documented(
        None,
        "Address of a Ray cluster that trains and predicts: auto for the one that this machine belongs "
        "to, or local to start Ray on this machine only; null uses none.",
    )
    reporter: Reporter = field(default_factory=Reporter, compare=False)

    def __post_init__(self) -> None:
        check_fields(self)
        if not all(hasattr(self.reporter, name) for name in ("step", "figures", "note", "close")):
            raise TreetopError(f"reporter is {self.reporter!r}: pass a treetop reporter")

    @property
    def thread_count(self) -> int:
        """The number of threads to use, at least 1."""
        return thread_count(self.threads)

    @property
    def memory_bytes(self) -> int | None:
        """The maximum memory of training in bytes, if there is one."""
        return None if self.memory is None else parse_size(self.memory)

    def over(self, other: Runtime) -> Runtime:
        """Return `other` with the options of this runtime that differ from their defaults."""
        own = {
            option.name: value
            for option in fields(self)
            if (value := getattr(self, option.name)) != option.default
        }
        return other.changed(**own)

    def changed(self, **options: Any) -> Runtime:
        """Return a copy with other values for some options; None leaves an option as it is."""
        changes = {name: value for name, value in options.items() if value is not None}
        return replace(self, **changes) if changes else self


# `help` lists the options.
SECTION = "    Examples\n"
Runtime.__doc__ = (Runtime.__doc__ or "").replace(
    SECTION, parameters_section(*documented_fields(Runtime).values()) + SECTION
)
