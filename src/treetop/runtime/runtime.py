"""Where the work is done: threads, device, precision and what a run reports. Never part of a model."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

from treetop.errors import TreetopError
from treetop.fields import check_fields, documented
from treetop.runtime.parallel import thread_count
from treetop.runtime.progress import Reporter


@dataclass(frozen=True)
class Runtime:
    """Everything about a machine that training, prediction and serving depend on.

    The same method on another machine gives the same model, up to rounding of the encoder; so a model
    does not carry its runtime along. Give one as ``runtime=`` to `fit`, `predict`, `load` and `serve`.
    """

    threads: int | None = documented(
        None, "CPU threads; null uses every core that is available", at_least=1
    )
    device: str = documented(
        "auto", "device of the encoder: auto (a GPU if there is one), cpu, cuda, cuda:1 or mps"
    )
    precision: str = documented(
        "auto",
        "type the encoder computes in: fp32, bf16, or auto: bf16 where the device supports it natively",
        choices=("auto", "fp32", "bf16"),
    )
    cuda_graphs: bool = documented(
        True, "record a training step on a GPU and replay it, which small encoders need to keep it busy"
    )
    fused_layers: bool = documented(
        True, "on a GPU with Triton, compute gradients of layer norms and biases by faster kernels"
    )
    fallback: bool = documented(False, "continue on the CPU if the GPU fails during training")
    checkpoint_minutes: float = documented(
        5.0, "minutes between checkpoints of a run that has a folder", above=0
    )
    tensorboard: str | None = documented(None, "folder to write TensorBoard logs to")
    verbose: bool | int = documented(
        False,
        "show the progress of training: in a notebook, on a terminal, or as lines of text",
        at_least=0,
    )
    processes: int = documented(1, "processes to train with; only 1 is supported so far", at_least=1)
    cluster: str | None = documented(None, "cluster to train on; only null is supported so far")
    reporter: Reporter = field(default_factory=Reporter, compare=False)

    def __post_init__(self) -> None:
        check_fields(self)
        if not all(hasattr(self.reporter, name) for name in ("step", "figures", "note", "close")):
            raise TreetopError(f"reporter is {self.reporter!r}: give a treetop reporter")
        if self.processes != 1 or self.cluster is not None:
            raise TreetopError("training on several processes or a cluster is not supported yet")

    @property
    def thread_count(self) -> int:
        """Number of threads to use, at least one."""
        return thread_count(self.threads)

    def over(self, other: Runtime) -> Runtime:
        """The same with the options of `other` where its own are the default."""
        own = {one.name: (getattr(self, one.name), one.default) for one in fields(self)}
        return replace(
            other, **{name: value for name, (value, default) in own.items() if value != default}
        )

    def changed(self, **options: Any) -> Runtime:
        """The same with the options that are given, and not None, in place of its own."""
        given = {name: value for name, value in options.items() if value is not None}
        return replace(self, **given) if given else self
