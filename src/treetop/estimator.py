"""What XRLinear and XRTransformer share: settings, prediction, the model folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import scipy.sparse as sp

from treetop import metrics, presets, store
from treetop.config import LinearSettings, make_settings, to_json, unknown_setting
from treetop.errors import TreetopError
from treetop.explain.documents import KeptDocuments
from treetop.explain.explaining import explain
from treetop.explain.explanation import Explanation
from treetop.features.hybrid import Features
from treetop.features.tfidf import Tfidf
from treetop.hub import Shared
from treetop.inputs import check_shape, is_text, labels_in_order, read_features
from treetop.labels.tree import Tree
from treetop.model_card import card
from treetop.parallel import thread_count
from treetop.ranking.combining import average
from treetop.ranking.packing import pack, unpack
from treetop.ranking.ranker import Ranker
from treetop.ranking.weights import Weights

Own = TypeVar("Own", bound="Estimator")
Prediction = list[tuple[Any, float]]


class Estimator(Shared):
    """Settings in the constructor, scikit-learn's conventions, and all that follows `fit`."""

    kind: ClassVar[str]
    settings_type: ClassVar[type[LinearSettings]]
    settings_: LinearSettings  # those that `fit` was called with
    classes_: np.ndarray
    rankers_: list[Ranker]
    tfidf_: Tfidf | None
    feature_widths_: tuple[int, ...]
    n_features_in_: int
    train_counts_: np.ndarray
    train_documents_: int
    documents_: KeptDocuments | None

    def __init__(self, **settings: Any) -> None:
        known = {one.name: one.default for one in fields(self.settings_type)}
        for name in settings:
            if name not in known:
                raise unknown_setting(name, known)
        for name, default in known.items():
            setattr(self, name, settings.get(name, default))

    @classmethod
    def from_preset(cls: type[Own], name: str, **settings: Any) -> Own:
        """An estimator with a preset's settings, some of them changed."""
        return cls(**{**presets.settings_of(name, cls.kind), **settings})

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Settings by name, as scikit-learn wants them."""
        return {one.name: getattr(self, one.name) for one in fields(self.settings_type)}

    def set_params(self: Own, **settings: Any) -> Own:
        """Change settings."""
        for name, value in settings.items():
            if name not in self.get_params():
                raise unknown_setting(name, self.get_params())
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        changed = {
            one.name: getattr(self, one.name)
            for one in fields(self.settings_type)
            if getattr(self, one.name) != one.default
        }
        listed = ", ".join(f"{name}={value!r}" for name, value in changed.items())
        return f"{type(self).__name__}({listed})"

    def __sklearn_tags__(self) -> Any:
        from treetop.sklearn_tags import text_tags

        return text_tags()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "rankers_")

    # Prediction

    def predict(self, X: Any, k: int = 5, **options: Any) -> list[Prediction]:
        """For each document its best `k` labels as (name, score), best first.

        Options as for `predict_scores`.
        """
        return named(self.predict_scores(X, k, **options), self.classes_)

    def predict_scores(
        self,
        X: Any,
        k: int = 100,
        *,
        beam: int | None = None,
        allow: Iterable[Any] | None = None,
        candidates: sp.csr_matrix | None = None,
        threads: int | None = None,
    ) -> sp.csr_matrix:
        """Scores N x L of the best `k` labels, best first in each row.

        `beam`: nodes followed at each level, more is slower and better. `allow`: names of the only
        labels that may be predicted. `candidates`: N x L, the only labels a document may get.
        """
        self._check_fitted()
        if k < 1:
            raise TreetopError(f"k is {k}: it must be at least 1")
        made = self._features(X)
        threads = thread_count(threads if threads is not None else self.settings_.threads)
        allowed = None if allow is None else self._numbers(allow)
        if candidates is not None:
            candidates = sp.csr_matrix(candidates)
            check_shape(candidates, (made.rows, len(self.classes_)), "candidates")
        # A forest's trees disagree at the end of their lists: look further than k before averaging.
        top = k if len(self.rankers_) == 1 else 2 * k
        parts = [
            ranker.predict(made, top, threads, beam, allowed, candidates) for ranker in self.rankers_
        ]
        return parts[0] if len(parts) == 1 else average(parts, k)

    def explain(
        self,
        text: Any,
        label: Any = None,
        *,
        k: int = 5,
        words: int = 20,
        neighbours: int = 3,
    ) -> Explanation | list[Explanation]:
        """Why `text` gets `label`: the words that carried it, the encoder's part, the way to it.

        `label` is a name, a list of names, or None for the best `k`. At most `words` words and, if the
        model was trained with ``keep_documents=True``, `neighbours` training documents are listed. A
        model that learned from a matrix takes a matrix of one row instead of a text.
        """
        self._check_fitted()
        one_text = isinstance(text, str)
        X = self._features([text] if one_text else text)
        if X.rows != 1:
            raise TreetopError(f"explain takes one document, not {X.rows}")
        if label is None:
            numbers = self.predict_scores(X, k).indices.tolist()
        else:
            numbers = self._numbers([label] if isinstance(label, str) else label).tolist()
        made = explain(self, text if one_text else None, X, numbers, words, neighbours)
        return made[0] if isinstance(label, str) else made

    def score(self, X: Any, y: Any) -> float:
        """P@1."""
        Y = labels_in_order(y, self.classes_)
        return float(metrics.evaluate(Y, self.predict_scores(X, 1), k=(1,))["P@1"])

    def _text_features(self, texts: Any) -> Features:
        """Features of texts as `fit` made them."""
        raise NotImplementedError

    def _features(self, X: Any) -> Features:
        if is_text(X):
            return self._checked(self._text_features(X))
        return self._checked(read_features(X))

    def _checked(self, made: Features) -> Features:
        widths = (made.sparse.shape[1], made.dense.shape[1])
        if widths != self.feature_widths_:
            raise TreetopError(
                f"X has {sum(widths)} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        return made

    def _note_widths(self, X: Features) -> None:
        self.feature_widths_ = (X.sparse.shape[1], X.dense.shape[1])
        self.n_features_in_ = sum(self.feature_widths_)

    def _note_documents(
        self, X: Features, Y: sp.csr_matrix, texts: Sequence[str] | None, threads: int
    ) -> None:
        self.train_counts_ = metrics.frequencies(Y)
        self.train_documents_ = Y.shape[0]
        self.documents_ = None
        if self.settings_.keep_documents:
            self.documents_ = KeptDocuments.of(X, Y, texts, threads)

    def _numbers(self, names: Iterable[Any]) -> np.ndarray:
        known = {name: number for number, name in enumerate(self.classes_)}
        for name in (names := list(names)):
            if name not in known:
                raise TreetopError(f"label {name!r} is not known to the model")
        return np.array([known[name] for name in names], np.int64)

    def _check_fitted(self) -> None:
        if not hasattr(self, "rankers_"):
            raise not_fitted(type(self).__name__)

    # The model folder

    def save(self, folder: str | Path, measured: dict[str, Any] | None = None) -> None:
        """Write the model folder; what was there stays whole until the new one is complete."""
        self._check_fitted()
        with store.replacing_folder(Path(folder)) as target:
            names = "".join(f"{name}\n" for name in self.classes_)
            (target / "labels.txt").write_text(names, encoding="utf-8", newline="")
            if self.tfidf_ is not None:
                store.write_arrays(target / "tfidf.safetensors", self.tfidf_.arrays())
            shape = {"train_counts": self.train_counts_}
            weights: dict[str, np.ndarray] = {}
            for number, ranker in enumerate(self.rankers_):
                shape |= store.prefixed(str(number), ranker.tree.arrays())
                plain = ranker.storage == "float32"
                saved = ranker.weights.arrays if plain else pack(ranker.weights, ranker.storage)
                weights |= store.prefixed(str(number), saved)
            store.write_arrays(target / "tree.safetensors", shape)
            store.write_arrays(target / "ranker.safetensors", weights)
            if self.documents_ is not None:
                store.write_arrays(target / "documents.safetensors", self.documents_.arrays)
            self._save_more(target)
            facts = {
                "model": self.kind,
                "settings": to_json(self.settings_),
                "trees": [str(ranker.tree) for ranker in self.rankers_],
                "storage": self.rankers_[0].storage,
                "text": False if self.tfidf_ is None else self.tfidf_.kind,
                "feature_widths": list(self.feature_widths_),
                "train_documents": self.train_documents_,
                "labels": len(self.classes_),
                "data": {
                    "labels_a_document": self.train_counts_.sum() / max(1, self.train_documents_),
                    "labels_of_one": int((self.train_counts_ == 1).sum()),
                    "most_frequent": int(self.train_counts_.max(initial=0)),
                },
                "metrics": measured or {},
            }
            store.write_card(target, card(facts))
            store.write_config(target, facts)

    def _save_more(self, folder: Path) -> None:
        """Write what only this kind of model has."""

    def _load_more(self, folder: Path) -> None:
        """Read what only this kind of model has."""

    @classmethod
    def load(cls: type[Own], folder: str | Path, verify: bool | None = None) -> Own:
        """The model in a folder. Weights stay on disk until they are needed."""
        folder = Path(folder)
        config = store.read_config(folder, verify)
        if config.get("model") != cls.kind:
            raise TreetopError(f"{folder}: holds the model {config.get('model')!r}, not {cls.kind!r}")
        settings = make_settings(config["settings"], cls.settings_type)
        model = cls(**{one.name: getattr(settings, one.name) for one in fields(settings)})
        names = (folder / "labels.txt").read_bytes().decode("utf-8").split("\n")[:-1]
        model.classes_ = np.array(names, dtype=object)
        arrays = store.read_arrays(folder / "ranker.safetensors")
        shape = store.read_arrays(folder / "tree.safetensors")
        storage = config.get("storage", "float32")
        model.rankers_ = [
            read_ranker(
                store.part(shape, str(number)), store.part(arrays, str(number)), settings, storage
            )
            for number in range(len(config["trees"]))
        ]
        model.tfidf_ = None
        if config["text"]:
            learned = store.read_arrays(folder / "tfidf.safetensors")
            model.tfidf_ = read_vectoriser(config["text"], learned, settings)
        model.feature_widths_ = tuple(config["feature_widths"])
        model.n_features_in_ = sum(model.feature_widths_)
        model.train_counts_ = shape["train_counts"]
        model.train_documents_ = config["train_documents"]
        model.settings_, model.documents_ = settings, None
        if (folder / "documents.safetensors").is_file():
            model.documents_ = KeptDocuments(store.read_arrays(folder / "documents.safetensors"))
        model._load_more(folder)
        return model


def read_ranker(
    shape: dict[str, np.ndarray], arrays: dict[str, np.ndarray], settings: LinearSettings, storage: str
) -> Ranker:
    """A tree and its weights, unpacked if they are packed."""
    tree = Tree.from_arrays(shape)
    plain = storage == "float32"
    weights = Weights(**arrays) if plain else unpack(arrays, tree, thread_count(settings.threads))
    return Ranker(tree, weights, settings.ranker(), storage)


def read_vectoriser(kind: Any, learned: dict[str, np.ndarray], settings: LinearSettings) -> Any:
    """What makes features of texts: ours, or one that was imported."""
    if kind == "pecos":
        from treetop.interop.pecos_words import PecosWords

        return PecosWords.from_arrays(learned)
    return Tfidf.from_arrays(settings.analysers(), learned, settings.threads)


def named(scores: sp.csr_matrix, names: np.ndarray) -> list[Prediction]:
    """Rows of scores as lists of (label name, score)."""
    return [
        [
            (names[label], float(score))
            for label, score in zip(
                scores.indices[start:end].tolist(), scores.data[start:end], strict=True
            )
        ]
        for start, end in zip(scores.indptr[:-1], scores.indptr[1:], strict=True)
    ]


def not_fitted(name: str) -> Exception:
    """scikit-learn's error where it is installed, ours else."""
    message = f"This {name} instance is not fitted yet: call fit first"
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return TreetopError(message)
    made: Exception = NotFittedError(message)
    return made
