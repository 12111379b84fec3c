"""Metrics of extreme multi-label classification: `evaluate`, and the registry of metrics."""

from treetop.evaluation.context import Context, frequencies, ranking_context
from treetop.evaluation.evaluating import evaluate, known_labels
from treetop.evaluation.metrics import METRICS, Metric, register
from treetop.evaluation.propensity import PROPENSITIES, inverse_propensity, propensity_constants
from treetop.evaluation.result import Evaluation, compared, figures
from treetop.evaluation.sums import f1

__all__ = [
    "METRICS",
    "PROPENSITIES",
    "Context",
    "Evaluation",
    "Metric",
    "compared",
    "evaluate",
    "f1",
    "figures",
    "frequencies",
    "inverse_propensity",
    "known_labels",
    "propensity_constants",
    "ranking_context",
    "register",
]
