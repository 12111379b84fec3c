"""treetop: tags text with labels from a vocabulary of thousands to millions."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"
__all__ = [
    "Ensemble",
    "Features",
    "TreetopError",
    "XRLinear",
    "XRTransformer",
    "__version__",
    "from_pretrained",
    "load",
    "metrics",
    "scorer",
]

_HOMES = {
    "Ensemble": "treetop.ensemble",
    "Features": "treetop.features.hybrid",
    "TreetopError": "treetop.errors",
    "XRLinear": "treetop.estimators",
    "XRTransformer": "treetop.estimators",
    "from_pretrained": "treetop.model.hub",
    "scorer": "treetop.evaluation.scorer",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: importing treetop itself costs nothing."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name == "metrics":
        return import_module("treetop.metrics")
    raise AttributeError(f"module 'treetop' has no attribute {name!r}")


def load(folder: str, verify: bool | None = None) -> Any:
    """The model in a folder that `save` wrote."""
    from treetop.models import load_model

    return load_model(folder, verify)
