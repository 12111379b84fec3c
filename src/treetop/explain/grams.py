"""The features of a document as n-grams."""

from __future__ import annotations

from typing import Any

import numpy as np

from treetop.explain.characters import share_with_words
from treetop.explain.contributions import Contributions, NamedGrams, together
from treetop.explain.spans import Gram, Occurrences, SearchedText
from treetop.features.words.tfidf import Tfidf
from treetop.model.model import Model
from treetop.settings.parts import Analyser

PECOS_ANALYZER = Analyser()
# Features of a label that are named, largest contributions first; the others only count in sums.
MAX_NAMED = 1000


class DocumentGrams:
    """The n-grams that one model counts in one document.

    Names and places are looked up once, however many labels are explained.
    """

    def __init__(
        self, model: Model, features: np.ndarray, named: NamedGrams, occurrences: Occurrences | None
    ) -> None:
        self.tfidf, self.features = model.feature_map.words, features
        self.named, self.occurrences = named, occurrences
        self.number_of: dict[int, int] = {}  # by feature
        # By number: 0, or of an n-gram whose value goes to words, which others are searched with it.
        self.group_of: dict[int, int] = {}
        self.groups: dict[tuple[int, bool, int], int] = {}
        self.places: dict[int, np.ndarray] = {}  # by number of an n-gram of characters
        self.words: dict[tuple[bool, int], np.ndarray] = {}  # numbers of the words of a reading
        self.attributes = isinstance(self.tfidf, Tfidf) and counts_words(self.tfidf)

    def contributions(self, values: np.ndarray) -> Contributions:
        """The n-grams with the values (float64) of the document's features.

        A model that counts words attributes the values of its character n-grams to words too.
        """
        places = np.flatnonzero(values)
        order = np.argsort(-np.abs(values[places]), kind="stable")
        unnamed = float(values[places[order[MAX_NAMED:]]].sum())
        places = np.sort(places[order[:MAX_NAMED]])
        numbers = np.array([self.number(one) for one in self.features[places].tolist()], np.int64)
        values, groups = (
            values[places],
            np.array([self.group_of[one] for one in numbers.tolist()], np.int64),
        )
        own = groups == 0
        parts = [Contributions(numbers[own], values[own], unnamed)]
        parts += [
            self.attributed(numbers[groups == group], values[groups == group])
            for group in np.unique(groups[~own])
        ]
        return together(parts)

    def attributed(self, numbers: np.ndarray, values: np.ndarray) -> Contributions:
        """The values of character n-grams of one group, divided among words."""
        assert self.occurrences is not None
        gram, reach = self.named.grams[numbers[0]]
        reading = self.occurrences.reading(gram.lowercase)
        places = self.places_of(reading, numbers.tolist())
        given, kept = share_with_words(reading, places, len(gram.name), values)
        names = np.flatnonzero(given)
        words = self.words.setdefault(
            (gram.lowercase, reach), np.full(len(reading.names), -1, np.int64)
        )
        for name in names[words[names] < 0].tolist():
            words[name] = self.named.number(Gram(reading.names[name], "word", gram.lowercase), reach)
        stays = kept != 0
        return Contributions(
            np.concatenate([words[names], numbers[stays]]), np.concatenate([given[names], kept[stays]])
        )

    def places_of(self, reading: SearchedText, numbers: list[int]) -> list[np.ndarray]:
        """Where character n-grams of one group start."""
        if missing := [number for number in numbers if number not in self.places]:
            assert self.occurrences is not None
            grams = [self.named.grams[number] for number in missing]
            end = self.occurrences.end_of(grams[0][1])
            found = reading.places_of([gram.name for gram, _ in grams], end)
            self.places.update(zip(missing, found, strict=True))
        return [self.places[number] for number in numbers]

    def number(self, feature: int) -> int:
        """The number of the n-gram of a feature."""
        if feature not in self.number_of:
            gram, reach = self.gram_of(feature)
            number = self.number_of[feature] = self.named.number(gram, reach)
            stays = gram.unit == "word" or not self.attributes or self.occurrences is None
            key = len(gram.name), gram.lowercase, reach
            self.group_of[number] = 0 if stays else self.groups.setdefault(key, 1 + len(self.groups))
        return self.number_of[feature]

    def gram_of(self, feature: int) -> tuple[Gram, int]:
        """The n-gram of a feature, and in how many characters of the text it is counted."""
        if self.tfidf is None or self.occurrences is None:
            return Gram(f"feature {feature}"), 0
        analyzer = analyzer_of(self.tfidf, feature)
        gram = Gram(self.tfidf.feature_name(feature), analyzer.unit, analyzer.lowercase)
        return gram, len(self.occurrences.text) if analyzer.first is None else analyzer.first


def counts_words(tfidf: Tfidf) -> bool:
    """Whether any analyzer counts words."""
    return any(fitted.analyser.unit == "word" for fitted in tfidf.fitted)


def analyzer_of(tfidf: Any, feature: int) -> Analyser:
    """The analyzer that counts a feature; PECOS's vectorizer counts words."""
    for fitted in getattr(tfidf, "fitted", ()):
        if feature < fitted.features:
            analyzer: Analyser = fitted.analyser
            return analyzer
        feature -= fitted.features
    return PECOS_ANALYZER
