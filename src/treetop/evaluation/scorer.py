"""Scorers for scikit-learn's searches and cross-validation."""

from __future__ import annotations

from typing import Any

from treetop.errors import TreetopError
from treetop.evaluation import metrics
from treetop.evaluation.context import ranking_context
from treetop.evaluation.evaluating import known_labels
from treetop.evaluation.propensity import propensity_constants


class scorer:  # noqa: N801 - called like a function, and picklable, as parallel searches need it
    """Make a scikit-learn scorer of a metric: pass it as ``scoring=`` or call it with a model.

    A metric for which smaller values are better is negated, as scikit-learn's own scorers do.

    Parameters
    ----------
    measure : str
        A metric of `treetop.metrics.METRICS` and a number of ranks, such as ``"P@5"`` or ``"PSP@3"``.
    propensity : str, default="default"
        Propensity model for PSP and PSnDCG: ``"default"``, ``"wikipedia"`` or ``"amazon"``.

    Examples
    --------
    >>> import treetop
    >>> from sklearn.model_selection import GridSearchCV
    >>> texts = ["a red apple", "a green pear", "blue sky"] * 6
    >>> labels = [["red", "fruit"], ["green", "fruit"], ["blue"]] * 6
    >>> model = treetop.XRLinear().fit(texts, labels)
    >>> treetop.scorer("P@1")(model, texts, labels)
    1.0
    >>> search = GridSearchCV(treetop.XRLinear(), {"beam": [5, 10]}, scoring=treetop.scorer("P@3"))
    """

    def __init__(self, measure: str, propensity: str = "default") -> None:
        name, _, depth = measure.partition("@")
        if name not in metrics.METRICS or not depth.isdecimal() or int(depth) < 1:
            known = ", ".join(f"{metric}@k" for metric in metrics.METRICS)
            raise TreetopError(f"unknown metric {measure!r}: choose one of {known}, such as P@5")
        propensity_constants(propensity)
        self.measure, self.propensity, self.k = measure, propensity, int(depth)
        # Kept: a process that unpickles this scorer may not have registered the metric.
        self.metric = metrics.METRICS[name]

    def __repr__(self) -> str:
        return f"scorer({self.measure!r})"

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Score an estimator, or a pipeline that ends in one.

        Parameters
        ----------
        estimator : XRLinear, XRTransformer, Ensemble or Pipeline
            A fitted model.
        X : texts or feature matrix
            Documents.
        y : list of lists of label names, or matrix
            True labels.

        Returns
        -------
        float
            The metric; the greater, the better.
        """
        model = estimator[-1] if hasattr(estimator, "steps") else estimator
        if hasattr(estimator, "steps"):
            X = estimator[:-1].transform(X)
        scores = model.predict_scores(X, self.k)
        context = ranking_context(y, scores, self.k, **known_labels(model), propensity=self.propensity)
        value = float(self.metric.function(context))
        return value if self.metric.greater_is_better else -value
