"""Scorers for scikit-learn's searches and cross-validation: every metric of `treetop.metrics`.

GridSearchCV(XRLinear(), {"beam": [5, 10, 20]}, scoring=scorer("P@3"))
"""

from __future__ import annotations

from typing import Any

from treetop.errors import TreetopError
from treetop.evaluation import metrics


class scorer:  # noqa: N801 - called like a function, and picklable, as parallel searches need it
    """A metric as ``scorer(estimator, X, y)``; `measure` is such as ``P@5`` or ``PSP@3``.

    A metric for which smaller values are better is negated, as scikit-learn's scorers do.
    """

    def __init__(self, measure: str, propensity: str = "default") -> None:
        name, _, depth = measure.partition("@")
        if name not in metrics.METRICS or not depth.isdecimal() or int(depth) < 1:
            known = ", ".join(f"{metric}@k" for metric in metrics.METRICS)
            raise TreetopError(f"unknown measure {measure!r}: choose one of {known}")
        metrics.propensity_constants(propensity)
        self.measure, self.propensity, self.k = measure, propensity, int(depth)
        # Kept: a process that unpickles this scorer may not have registered the metric.
        self.metric = metrics.METRICS[name]

    def __repr__(self) -> str:
        return f"scorer({self.measure!r})"

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """The metric of an estimator, or of a pipeline that ends in one, on these documents."""
        model = estimator[-1] if hasattr(estimator, "steps") else estimator
        if hasattr(estimator, "steps"):
            X = estimator[:-1].transform(X)
        context = metrics.ranking_context(
            y,
            model.predict_scores(X, self.k),
            self.k,
            classes=model.classes_,
            train_counts=model.train_counts_,
            train_documents=model.train_documents_,
            propensity=self.propensity,
        )
        value = float(self.metric.function(context))
        return value if self.metric.greater_is_better else -value
