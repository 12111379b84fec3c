"""Explanations of several models as one."""

from __future__ import annotations

from collections.abc import Sequence

from treetop.explain.explanation import Explanation, Word


def merged(parts: Sequence[Explanation], weights: Sequence[float]) -> Explanation:
    """The weighted mean of explanations of one label; ways and neighbours of all."""
    share = [weight / sum(weights) for weight in weights]
    values: dict[str, float] = {}
    spans = {}
    for part, weight in zip(parts, share, strict=True):
        for word in part.words:
            values[word.name] = values.get(word.name, 0.0) + weight * word.value
            spans[word.name] = word.spans
    words = [Word(name, value, spans[name]) for name, value in values.items()]
    return Explanation(
        label=parts[0].label,
        score=weighted_mean(share, [part.score for part in parts]),
        words=sorted(words, key=lambda word: -abs(word.value)),
        other_words=weighted_mean(share, [part.other_words for part in parts]),
        encoder=weighted_mean(share, [part.encoder for part in parts]),
        bias=weighted_mean(share, [part.bias for part in parts]),
        paths=[path for part in parts for path in part.paths],
        neighbours=[neighbour for part in parts for neighbour in part.neighbours],
    )


def weighted_mean(share: Sequence[float], values: Sequence[float]) -> float:
    """The mean of values, each with its share."""
    return sum(weight * value for weight, value in zip(share, values, strict=True))
