"""treetop: tags text with labels from a vocabulary of thousands to millions."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treetop import metrics
    from treetop.errors import TreetopError
    from treetop.estimators import Ensemble, XRLinear, XRTransformer, from_pretrained, load
    from treetop.evaluation.scorer import scorer
    from treetop.features.hybrid import Features
    from treetop.runtime import Runtime

__version__ = "0.1.0"
__all__ = [
    "Ensemble",
    "Features",
    "Runtime",
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
    "Ensemble": "treetop.estimators",
    "Features": "treetop.features.hybrid",
    "Runtime": "treetop.runtime",
    "TreetopError": "treetop.errors",
    "XRLinear": "treetop.estimators",
    "XRTransformer": "treetop.estimators",
    "from_pretrained": "treetop.estimators",
    "load": "treetop.estimators",
    "scorer": "treetop.evaluation.scorer",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: importing treetop itself costs nothing."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name == "metrics":
        return import_module("treetop.metrics")
    raise AttributeError(f"module 'treetop' has no attribute {name!r}")
