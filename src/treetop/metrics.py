"""The metrics under their public name."""

from treetop.evaluation.metrics import (
    METRICS,
    PROPENSITIES,
    Context,
    Metric,
    evaluate,
    figures,
    frequencies,
    inverse_propensity,
    propensity_constants,
    register,
)

__all__ = [
    "METRICS",
    "PROPENSITIES",
    "Context",
    "Metric",
    "evaluate",
    "figures",
    "frequencies",
    "inverse_propensity",
    "propensity_constants",
    "register",
]
