"""Estimators that hold a fitted model: saved to folders and loaded from them."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from treetop.errors import TreetopError
from treetop.model.folder import read_model, write_model
from treetop.model.hub import DownloadOptions, HubMixin, fetch
from treetop.model.predictor import Predictor
from treetop.runtime import Runtime


class NotFittedTreetopError(TreetopError, AttributeError):
    """A method was called that needs a fitted estimator, before `fit`."""


class SavingMixin(HubMixin):
    """Methods that save and load the model in `model_`."""

    kind: ClassVar[str]
    model_: Predictor

    @property
    def classes_(self) -> np.ndarray:
        """Label names, in the order of the columns of scores: array of shape (L,)."""
        return self._fitted().classes

    @property
    def train_counts_(self) -> np.ndarray:
        """Number of training documents per label: array of shape (L,)."""
        return self._fitted().label_counts

    @property
    def train_documents_(self) -> int:
        """Number of training documents."""
        return self._fitted().train_documents

    def save(self, folder: str | Path, measured: dict[str, Any] | None = None) -> None:
        """Write the model to a folder that `treetop.load` reads.

        The folder holds JSON, text and safetensors files with checksums, and a model card. It is
        written atomically: an earlier model stays complete until the new one is. Nothing that treetop
        did not write is replaced.

        Parameters
        ----------
        folder : str or Path
            A new or empty folder, or one that holds a treetop model, which is replaced.
        measured : dict, optional
            Metrics to save with the model and show in its card, such as a result of `evaluate`.

        Examples
        --------
        >>> import treetop
        >>> model = treetop.XRLinear().fit(["red apple", "green grass"] * 5, [["red"], ["green"]] * 5)
        >>> model.save("my-model")
        >>> treetop.load("my-model")
        XRLinear()
        """
        write_model(self._fitted(), Path(folder), measured)

    @classmethod
    def load(
        cls, folder: str | Path, verify: bool | None = None, runtime: Runtime | None = None
    ) -> Self:
        """Load a model of this class from a folder; `treetop.load` loads any.

        Parameters and errors are those of `treetop.load`.
        """
        model = read_model(Path(folder), verify, runtime)
        if model.kind != cls.kind:
            raise TreetopError(f"{folder}: holds the model {model.kind!r}, not {cls.kind!r}")
        return cls.holding(model, runtime)

    @classmethod
    def from_pretrained(
        cls,
        name: str | Path,
        verify: bool | None = None,
        runtime: Runtime | None = None,
        **options: Unpack[DownloadOptions],
    ) -> Self:
        """Load a model of this class from the Hub or a folder; `treetop.from_pretrained` loads any.

        Parameters and errors are those of `treetop.from_pretrained`.
        """
        return cls.load(fetch(name, **options), verify, runtime)

    @classmethod
    @abstractmethod
    def holding(cls, model: Predictor, runtime: Runtime | None = None) -> Self:
        """Make an estimator that holds a model."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def _fitted(self) -> Predictor:
        """The model, or an error if there is none yet."""
        if not self.__sklearn_is_fitted__():
            raise not_fitted(type(self).__name__)
        return self.model_


def not_fitted(name: str) -> Exception:
    """Make scikit-learn's NotFittedError if it is installed, else one that is like it."""
    message = f"This {name} instance is not fitted yet: call fit first"
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return NotFittedTreetopError(message)
    error: Exception = NotFittedError(message)
    return error
