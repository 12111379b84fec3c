"""Kinds of models by name, and the model in a folder whatever its kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from treetop.ensemble import Ensemble
from treetop.errors import TreetopError
from treetop.estimators import XRLinear, XRTransformer
from treetop.model import layout as store

KINDS: dict[str, Any] = {kind.kind: kind for kind in (XRLinear, XRTransformer, Ensemble)}


def load_model(folder: str | Path, verify: bool | None = None) -> Any:
    """The model in a folder that `save` wrote."""
    kind = store.read_config(Path(folder), verify=False).get("model")
    if kind not in KINDS:
        raise TreetopError(f"{folder}: holds the model {kind!r}, which this treetop does not know")
    return KINDS[kind].load(folder, verify)
