"""Everything between a call of `fit` and the model it leaves.

The names that estimators use are imported on first use, since prediction needs none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treetop.training.deciding import decided_in_run, decided_on_texts
    from treetop.training.documents import (
        HeldTexts,
        TrainingDocuments,
        counted_rows,
        read_documents,
        selected,
        validation_texts,
    )
    from treetop.training.failures import with_fallback
    from treetop.training.folds import KeptTexts
    from treetop.training.forest import train_forests
    from treetop.training.inputs import (
        check_count,
        check_rows,
        read_feature_names,
        read_labels,
        read_weights,
    )
    from treetop.training.learned import learned_model
    from treetop.training.memory import report_peak
    from treetop.training.out_of_fold import fold_of, with_confidence, with_confidence_on
    from treetop.training.run import check_run
    from treetop.training.stages import Training
    from treetop.training.text_features import fit_text_features

__all__ = [
    "HeldTexts",
    "KeptTexts",
    "Training",
    "TrainingDocuments",
    "check_count",
    "check_rows",
    "check_run",
    "counted_rows",
    "decided_in_run",
    "decided_on_texts",
    "fit_text_features",
    "fold_of",
    "learned_model",
    "read_documents",
    "read_feature_names",
    "read_labels",
    "read_weights",
    "report_peak",
    "selected",
    "train_forests",
    "validation_texts",
    "with_confidence",
    "with_confidence_on",
    "with_fallback",
]
_MODULES = {
    "deciding": ("decided_in_run", "decided_on_texts"),
    "documents": (
        "HeldTexts",
        "TrainingDocuments",
        "counted_rows",
        "read_documents",
        "selected",
        "validation_texts",
    ),
    "failures": ("with_fallback",),
    "folds": ("KeptTexts",),
    "forest": ("train_forests",),
    "inputs": ("check_count", "check_rows", "read_feature_names", "read_labels", "read_weights"),
    "learned": ("learned_model",),
    "memory": ("report_peak",),
    "out_of_fold": ("fold_of", "with_confidence", "with_confidence_on"),
    "run": ("check_run",),
    "stages": ("Training",),
    "text_features": ("fit_text_features",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"treetop.training.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'treetop.training' has no attribute {name!r}")
