"""Readers and writers of file formats, which are detected by content."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treetop.data.dataset import Dataset, Split
    from treetop.data.read import open_data

__all__ = ["Dataset", "Split", "open_data"]

_HOMES = {"Dataset": "dataset", "Split": "dataset", "open_data": "read"}


def __getattr__(name: str) -> Any:
    """Import a public name on first use: help pages need the options of readers, not the readers."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
