"""Explanations of single predictions."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from treetop.base.predicting import PredictingMixin
from treetop.runtime import Runtime

if TYPE_CHECKING:
    from treetop.explain.explanation import Explanation


class ExplainingMixin(PredictingMixin):
    """The method that explains scores."""

    @overload
    def explain(
        self,
        text: object,
        label: str | float,
        *,
        features: object = ...,
        k: int = ...,
        words: int = ...,
        neighbours: int = ...,
        runtime: Runtime | None = ...,
    ) -> Explanation: ...
    @overload
    def explain(
        self,
        text: object,
        label: Sequence[Any] | None = ...,
        *,
        features: object = ...,
        k: int = ...,
        words: int = ...,
        neighbours: int = ...,
        runtime: Runtime | None = ...,
    ) -> list[Explanation]: ...
    def explain(
        self,
        text: Any,
        label: Any = None,
        *,
        features: Any = None,
        k: int = 5,
        words: int = 20,
        neighbours: int = 3,
        runtime: Runtime | None = None,
    ) -> Explanation | list[Explanation]:
        """Explain the score of a label: words, the encoder's part, the path through the label tree.

        Parameters
        ----------
        text : str, or feature matrix of one row
            One document.
        label : name or list of names, optional
            Labels to explain; by default the best `k`.
        features : matrix of one row, optional
            Precomputed features of the text, for a model that was trained with them.
        k : int, default=5
            Number of labels to explain if `label` is not given.
        words : int, default=20
            Maximum number of words listed.
        neighbours : int, default=3
            Number of similar training documents listed, if the model was trained with
            ``keep_documents=True``.
        runtime : Runtime, optional
            Threads, device and precision.

        Returns
        -------
        Explanation or list of Explanation
            One explanation if `label` is a single name, else a list.

        Examples
        --------
        >>> import treetop
        >>> model = treetop.XRLinear().fit(["red apple", "green grass"] * 5, [["red"], ["green"]] * 5)
        >>> explanation = model.explain("a red car", "red")
        >>> [word.name for word in explanation.words]
        ['red']
        """
        model = self._fitted()
        single = isinstance(label, str | Real | np.bool_)
        # Imported on use: a process that only predicts starts faster.
        from treetop.explain.explaining import explain

        given = text if features is None else self._documents([text], features)
        explanations = explain(
            model,
            given,
            [label] if single else label,
            self._place(runtime),
            k=k,
            words=words,
            neighbours=neighbours,
        )
        return explanations[0] if single else explanations
