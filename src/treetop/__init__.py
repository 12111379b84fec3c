"""Tag text with labels from a vocabulary of thousands to millions.

>>> import treetop
>>> model = treetop.XRLinear().fit(["red apple", "green grass"] * 5, [["red"], ["green"]] * 5)
>>> model.predict(["a red car"], k=1)[0][0][0]
'red'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treetop import metrics
    from treetop.errors import TreetopError
    from treetop.estimators import (
        Ensemble,
        XRLinear,
        XRTransformer,
        from_preset,
        from_pretrained,
        load,
        presets,
    )
    from treetop.evaluation.comparing import compare
    from treetop.evaluation.scorer import scorer
    from treetop.features.hybrid import Features
    from treetop.runtime import Runtime
    from treetop.tuning.choosing import Tuned
    from treetop.tuning.encoder_trial import best_estimator
    from treetop.tuning.tuning import tune

__version__ = "0.1.0"
__all__ = [
    "Ensemble",
    "Features",
    "Runtime",
    "TreetopError",
    "Tuned",
    "XRLinear",
    "XRTransformer",
    "__version__",
    "best_estimator",
    "compare",
    "from_preset",
    "from_pretrained",
    "load",
    "metrics",
    "presets",
    "scorer",
    "tune",
]

_HOMES = {
    "Ensemble": "treetop.estimators",
    "Features": "treetop.features.hybrid",
    "Runtime": "treetop.runtime",
    "TreetopError": "treetop.errors",
    "XRLinear": "treetop.estimators",
    "XRTransformer": "treetop.estimators",
    "best_estimator": "treetop.tuning.encoder_trial",
    "compare": "treetop.evaluation.comparing",
    "from_preset": "treetop.estimators",
    "from_pretrained": "treetop.estimators",
    "load": "treetop.estimators",
    "presets": "treetop.estimators",
    "Tuned": "treetop.tuning.choosing",
    "scorer": "treetop.evaluation.scorer",
    "tune": "treetop.tuning.tuning",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that ``import treetop`` takes no time."""
    if name in _HOMES:
        if name != "TreetopError":
            import_module("treetop.runtime.scipy_first").import_scipy()
        return getattr(import_module(_HOMES[name]), name)
    if name == "metrics":
        return import_module("treetop.metrics")
    raise AttributeError(f"module 'treetop' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
