"""PECOS's TF-IDF: tokens are what spaces separate, as they are written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.features.words.tokens import check_text
from treetop.interop.pecos_ranker import read_json

WORD = 10
SIMPLE = {"binary": False, "sublinear_tf": False, "use_idf": True, "norm_p": "l2"}


class PecosWords:
    """A vectoriser that PECOS trained, for prediction."""

    kind = "pecos"

    def __init__(
        self, tokens: list[str], idf: np.ndarray, sizes: np.ndarray, grams: np.ndarray
    ) -> None:
        """`grams`: token numbers of all features, one after the other; `sizes`: how many each has."""
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

    def transform(self, texts: Iterable[str]) -> sp.csr_matrix:
        """float32 CSR, a row of length 1 a text."""
        features, values, ends = [], [], [0]
        for number, text in enumerate(texts):
            check_text(text, number)
            counts = self.counts(text)
            found = sorted(counts)
            weights = np.array([counts[one] * self.idf[one] for one in found])
            features += found
            values.append(weights / max(np.linalg.norm(weights), 1e-12))
            ends.append(len(features))
        data = np.concatenate(values) if values else np.zeros(0)
        cells = (data.astype(np.float32), np.array(features, np.int64), np.array(ends))
        return sp.csr_matrix(cells, shape=(len(ends) - 1, self.features))

    def counts(self, text: str) -> Counter[int]:
        """How often each feature occurs in a text."""
        ids = [self.numbers.get(token, -1) for token in text.split(" ") if token]
        found: Counter[int] = Counter()
        for length in self.lengths:
            for start in range(len(ids) - length + 1):
                feature = self.feature_of.get(tuple(ids[start : start + length]))
                if feature is not None:
                    found[feature] += 1
        return found

    def arrays(self) -> dict[str, np.ndarray]:
        """All that is needed to make it again."""
        text = "\n".join(self.tokens).encode("utf-8")
        return {
            "tokens": np.frombuffer(text, np.uint8),
            "idf": self.idf,
            "sizes": self.sizes,
            "grams": self.grams,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> PecosWords:
        """The inverse of `arrays`."""
        tokens = bytes(arrays["tokens"]).decode("utf-8").split("\n")
        return cls(tokens, *(np.asarray(arrays[name]) for name in ("idf", "sizes", "grams")))


def read_words(folder: Path) -> PecosWords:
    """The vectoriser that PECOS saved in a folder."""
    base = folder / "0.base"
    how = read_json(base / "vectorizer" / "config.json").get("kwargs", {})
    kind = read_json(base / "tokenizer" / "config.json").get("token_type")
    if (folder / "1.base").exists() or kind != WORD or any(how.get(k) != v for k, v in SIMPLE.items()):
        raise TreetopError(
            f"{folder}: only PECOS's default TF-IDF of words can be read: give features instead"
        )
    tokens: dict[int, str] = {}
    for _, line in numbered(base / "tokenizer" / "vocab.txt"):
        token_number, _, token = line.partition("\t")
        tokens[int(token_number)] = token
    path = base / "vectorizer" / "tfidf-model.txt"
    features: dict[int, tuple[float, list[int]]] = {}
    for number, line in numbered(path):
        try:
            feature, idf, size, spelled = line.split("\t")
            ids = list(map(int, spelled.split()))
            features[int(feature)] = (float(idf), ids)
            if len(ids) != int(size):
                raise ValueError(line)
        except ValueError:
            raise TreetopError(f"{path}:{number}: not a line of PECOS's TF-IDF") from None
    if sorted(tokens) != list(range(len(tokens))) or sorted(features) != list(range(len(features))):
        raise TreetopError(f"{folder}: numbers of words or features are missing")
    grams = [features[number][1] for number in range(len(features))]
    return PecosWords(
        [tokens[number] for number in range(len(tokens))],
        np.array([features[number][0] for number in range(len(features))]),
        np.array([len(gram) for gram in grams], np.int64),
        np.array([token for gram in grams for token in gram], np.int64),
    )


def numbered(path: Path) -> list[tuple[int, str]]:
    """Lines after the first, which is a count, with their numbers."""
    try:
        lines = path.read_bytes().decode("utf-8", "replace").split("\n")
    except OSError:
        raise TreetopError(f"{path}: missing") from None
    return [(number, line) for number, line in enumerate(lines[1:], start=2) if line]


def no_words() -> PecosWords:
    """A vectoriser without features: the model reads the encoder alone."""
    return PecosWords([], np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64))
