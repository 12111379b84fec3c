"""The settings that are searched, and their bounds: the one place for both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from treetop.settings import auto
from treetop.settings.schema import LinearSettings, TransformerSettings


class Suggests(Protocol):
    """The part of an optuna trial that chooses values."""

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        """A number between the bounds."""

    def suggest_categorical(self, name: str, choices: list[Any]) -> Any:
        """One of the choices."""


class Factor(NamedTuple):
    """A number, searched log-uniformly from the default divided by `most` to `most` times it."""

    most: float


class Choice(NamedTuple):
    """A setting that takes one of several values."""

    values: tuple[Any, ...]


Dimension = Factor | Choice

PORTFOLIO = (
    "word:1",
    "word:1-2",
    "char:3-5",
    "word:1+char:4",
    "word:1-2+char:3-5",
    auto.TITLES,
    auto.SHORT_TEXTS,
    auto.LONG_TEXTS,
    "word:1-2|word:1-2+char:3-5|char:3-5",
    "word:1-2+char:4|word:1+char:3-5|word:1-2",
)
OF_ALL: dict[str, Dimension] = {
    "ngrams": Choice(PORTFOLIO),
    "lambda_": Factor(8.0),
    "alpha": Factor(8.0),
    "cost_sensitive": Choice((True, False)),
    "max_features": Choice((100_000, 500_000, 2_000_000)),
    "prune_below": Factor(4.0),
    "trees": Choice((1, 2, 3, 5)),
}
OF_TREES: dict[str, Dimension] = {
    "leaf": Choice((50, 100, 200, 400)),
    "branching": Choice((8, 16, 32)),
    "beam": Choice((10, 20, 40)),
    "bias": Choice((0.0, 1.0)),
}
OF_ENCODERS: dict[str, Dimension] = {"dense_weight": Factor(4.0)}


def dimensions(settings: LinearSettings, given: Mapping[str, Any], labels: int) -> dict[str, Dimension]:
    """The settings to search for data with so many labels; those that are `given` are left alone."""
    space = dict(OF_ALL)
    if not auto.is_flat(settings, labels):
        space |= OF_TREES
    if isinstance(settings, TransformerSettings):
        space |= OF_ENCODERS
    return {
        name: dimension
        for name, dimension in space.items()
        if name not in given and (name == "ngrams" or isinstance(getattr(settings, name), int | float))
    }


def choices_of(choice: Dimension, default: object) -> list[Any]:
    """The values of a setting, with the default of the data first."""
    assert isinstance(choice, Choice)
    return [default, *(value for value in choice.values if value != default)]


def suggested(
    trial: Suggests,
    space: Mapping[str, Dimension],
    default: LinearSettings,
    costs: Mapping[bool, LinearSettings],
) -> dict[str, Any]:
    """Let a trial choose a value for each setting.

    `costs` are the defaults with and without cost-sensitive learning, which need another λ and α.
    """
    values: dict[str, Any] = {}
    if "cost_sensitive" in space:
        choices = choices_of(OF_ALL["cost_sensitive"], default.cost_sensitive)
        values["cost_sensitive"] = trial.suggest_categorical("cost_sensitive", choices)
    base = costs[values.get("cost_sensitive", bool(default.cost_sensitive))]
    for name, dimension in space.items():
        own = getattr(base, name)
        if name == "cost_sensitive":
            continue
        if isinstance(dimension, Choice):
            values[name] = trial.suggest_categorical(name, choices_of(dimension, own))
        else:
            factor = trial.suggest_float(name, 1 / dimension.most, dimension.most, log=True)
            values[name] = own * factor
    return values


def of_default(space: Mapping[str, Dimension], default: LinearSettings) -> dict[str, Any]:
    """What optuna is told to try first: the default of each setting."""
    return {
        name: getattr(default, name) if isinstance(dimension, Choice) else 1.0
        for name, dimension in space.items()
    }
