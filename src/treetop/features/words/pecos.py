"""PECOS's TF-IDF vectorizer: tokens are separated by spaces and keep their case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.features.words.tokens import check_text
from treetop.runtime.checking import Column, check_arrays

COLUMNS = {
    "tokens": Column("uint8", ("letters",)),
    "idf": Column("float64", ("features",)),
    "sizes": Column("int64", ("features",), least=1, below="grams+1"),
    "grams": Column("int64", ("grams",), least=0),
}


class PecosWords:
    """A vectorizer that was trained by PECOS, for prediction."""

    kind: ClassVar[str] = "pecos"

    def __init__(
        self, tokens: list[str], idf: np.ndarray, sizes: np.ndarray, grams: np.ndarray
    ) -> None:
        """`sizes` are the numbers of tokens per feature, `grams` the tokens of all features."""
        self.tokens, self.idf, self.sizes, self.grams = tokens, idf, sizes, grams
        self.numbers = {token: number for number, token in enumerate(tokens)}
        ends = np.cumsum(sizes)
        self.feature_of = {
            tuple(grams[end - size : end].tolist()): feature
            for feature, (end, size) in enumerate(zip(ends.tolist(), sizes.tolist(), strict=True))
        }
        self.lengths = sorted(set(sizes.tolist()))

    @property
    def features(self) -> int:
        """Number of features."""
        return self.sizes.size

    def feature_name(self, feature: int) -> str:
        """The words of a feature."""
        end = int(self.sizes[: feature + 1].sum())
        return " ".join(self.tokens[n] for n in self.grams[end - int(self.sizes[feature]) : end])

    def transform(self, texts: Iterable[str], threads: int | None = None) -> sp.csr_matrix:
        """float32 CSR, one row of length 1 per text."""
        features, values, ends = [], [], [0]
        for number, text in enumerate(texts):
            check_text(text, number)
            counts = self.counts(text)
            features_of_text = sorted(counts)
            weights = np.array([counts[feature] * self.idf[feature] for feature in features_of_text])
            features += features_of_text
            values.append(weights / max(np.linalg.norm(weights), 1e-12))
            ends.append(len(features))
        data = np.concatenate(values) if values else np.zeros(0)
        csr = (data.astype(np.float32), np.array(features, np.int64), np.array(ends))
        return sp.csr_matrix(csr, shape=(len(ends) - 1, self.features))

    def counts(self, text: str) -> Counter[int]:
        """The number of occurrences of each feature in a text."""
        ids = [self.numbers.get(token, -1) for token in text.split(" ") if token]
        counts: Counter[int] = Counter()
        for length in self.lengths:
            for start in range(len(ids) - length + 1):
                feature = self.feature_of.get(tuple(ids[start : start + length]))
                if feature is not None:
                    counts[feature] += 1
        return counts

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that was learned, as arrays by name."""
        text = "\n".join(self.tokens).encode("utf-8")
        return {
            "tokens": np.frombuffer(text, np.uint8),
            "idf": self.idf,
            "sizes": self.sizes,
            "grams": self.grams,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> PecosWords:
        """The inverse of `arrays`, which may be from a stranger."""
        checked = check_arrays(arrays, COLUMNS, {})
        tokens = bytes(checked["tokens"]).decode("utf-8", "replace").split("\n")
        return cls.checked(tokens, *(checked[name] for name in ("idf", "sizes", "grams")))

    @classmethod
    def checked(
        cls, tokens: list[str], idf: np.ndarray, sizes: np.ndarray, grams: np.ndarray
    ) -> PecosWords:
        """A vectorizer made of parts of a file; raise unless the features have tokens that exist."""
        parts = {"idf": idf, "sizes": sizes, "grams": grams}
        check_arrays(parts, {name: COLUMNS[name] for name in parts}, {})
        if grams.size and grams.max() >= len(tokens):
            raise TreetopError(f"grams holds {grams.max():,}, but there are {len(tokens):,} tokens")
        if sizes.sum() != grams.size:
            raise TreetopError("the sizes of the features do not add up to their tokens")
        return cls(tokens, idf, sizes, grams)


def no_words() -> PecosWords:
    """A vectorizer without features, for models that use the encoder only."""
    return PecosWords([], np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64))
