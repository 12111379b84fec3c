"""Scorers for scikit-learn's searches and cross-validation: P@k, R@k, nDCG@k, PSP@k and the others.

GridSearchCV(XRLinear(), {"beam": [5, 10, 20]}, scoring=scorer("P@3"))
"""

from __future__ import annotations

from typing import Any

from treetop import metrics
from treetop.errors import TreetopError
from treetop.inputs import labels_in_order

NAMES = ("P", "R", "RP", "nDCG", "PSP", "PSnDCG")


class scorer:  # noqa: N801 - called like a function, and picklable, as parallel searches need it
    """A measure as ``scorer(estimator, X, y)``; `measure` is such as ``P@5`` or ``PSP@3``."""

    def __init__(self, measure: str, propensity: str = "default") -> None:
        name, _, depth = measure.partition("@")
        if name not in NAMES or not depth.isdecimal() or int(depth) < 1:
            known = ", ".join(f"{one}@k" for one in NAMES)
            raise TreetopError(f"unknown measure {measure!r}: choose one of {known}")
        if propensity not in metrics.PROPENSITIES:
            known = ", ".join(metrics.PROPENSITIES)
            raise TreetopError(f"unknown propensity preset {propensity!r}: choose one of {known}")
        self.measure, self.propensity, self.k = measure, propensity, int(depth)

    def __repr__(self) -> str:
        return f"scorer({self.measure!r})"

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """The measure of an estimator, or of a pipeline that ends in one, on these documents."""
        model = estimator[-1] if hasattr(estimator, "steps") else estimator
        if hasattr(estimator, "steps"):
            X = estimator[:-1].transform(X)
        result = metrics.evaluate(
            labels_in_order(y, model.classes_), model.predict_scores(X, self.k), (self.k,),
            propensity=self.propensity,
            train_counts=model.train_counts_, train_documents=model.train_documents_,
        )  # fmt: skip
        return float(result[self.measure])
