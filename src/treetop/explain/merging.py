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
        parts[0].label,
        mean(parts, share, "score"),
        sorted(words, key=lambda word: -abs(word.value)),
        mean(parts, share, "other_words"),
        mean(parts, share, "encoder"),
        mean(parts, share, "bias"),
        [path for part in parts for path in part.paths],
        [neighbour for part in parts for neighbour in part.neighbours],
    )


def mean(parts: Sequence[Explanation], share: Sequence[float], name: str) -> float:
    """The weighted mean of one number."""
    return float(sum(weight * getattr(part, name) for part, weight in zip(parts, share, strict=True)))
