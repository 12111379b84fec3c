"""What config.json says about a model or an ensemble, checked: it may come from a stranger."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from treetop.errors import TreetopError
from treetop.features.words.pecos import PecosWords
from treetop.features.words.tfidf import Tfidf
from treetop.ranking.combining import COMBINE
from treetop.ranking.packing import STORAGES
from treetop.settings.making import PARAMETERS, from_json
from treetop.settings.schema import LinearSettings

Value = TypeVar("Value")
LABEL_TYPES = ("str", "int", "float", "bool")
# Columns are numbered in 32 bits.
MOST_FEATURES = 2**31 - 1


@dataclass(frozen=True)
class ModelFacts:
    """A model that is not an ensemble."""

    kind: str
    settings: LinearSettings
    asked: Mapping[str, Any]
    trees: int
    widths: tuple[int, int]
    words: str | None  # kind of the vectorizer
    storage: str
    label_type: str
    train_documents: int
    encoder_files: dict[str, Any]  # sizes and checksums by name
    preset: str
    competition: str

    @property
    def imported(self) -> bool:
        """Whether the model was made by PECOS, which does not say on how many documents."""
        return self.train_documents == 0

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> ModelFacts:
        """Read config.json; older ones have no storage, label type and original values of settings."""
        kind = str(config["model"])
        settings = entry(config, "settings", dict)
        asked: dict[str, Any] = entry(config, "asked", dict, {})
        settings_type = PARAMETERS[kind].settings_type
        from_json({**settings, **asked}, settings_type)
        words = config.get("text")
        widths = entry(config, "feature_widths", list)
        if len(widths) != 2 or not all(is_count(width, MOST_FEATURES) for width in widths):
            raise TreetopError(f"feature_widths is {brief(widths)}: it must be two numbers of columns")
        if not is_count(config.get("train_documents")):
            raise TreetopError("train_documents must be a number of at least 0")
        return cls(
            kind=kind,
            settings=from_json(settings, settings_type),
            asked=asked,
            trees=len(entry(config, "trees", list)),
            widths=(widths[0], widths[1]),
            words=None if words is False else chosen("text", words, (Tfidf.kind, PecosWords.kind)),
            storage=chosen("storage", config.get("storage", STORAGES[0]), STORAGES),
            label_type=chosen("label_type", config.get("label_type", "str"), LABEL_TYPES),
            train_documents=config["train_documents"],
            encoder_files={n: e for n, e in config["files"].items() if n.startswith("encoder/")},
            preset=entry(config, "preset", str, ""),
            competition=entry(config, "competition", str, ""),
        )


@dataclass(frozen=True)
class EnsembleFacts:
    """An ensemble of models."""

    members: int
    combine: str
    weights: tuple[float, ...]

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> EnsembleFacts:
        """Read config.json."""
        members = len(entry(config, "members", list))
        weights = entry(config, "weights", list)
        fine = all(type(weight) in (int, float) and 0 <= weight < math.inf for weight in weights)
        if not fine or len(weights) != members or not any(weights):
            raise TreetopError("weights must be one number of at least 0 per member, and not all 0")
        return cls(members, chosen("combine", config.get("combine"), COMBINE), tuple(weights))


def entry(config: Mapping[str, Any], name: str, kind: type[Value], default: object = None) -> Value:
    """Return a value of config.json; raise unless it is of this type."""
    value = config.get(name, default)
    if not isinstance(value, kind):
        raise TreetopError(f"{name} must be of type {kind.__name__}, but is {brief(value)}")
    return value


def chosen(name: str, value: object, choices: tuple[str, ...]) -> str:
    """Return a value of config.json; raise unless it is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise TreetopError(f"{name} is {brief(value)}: this treetop knows {', '.join(choices)}")
    return value


def is_count(value: object, most: int = 2**62) -> bool:
    """Whether a value is a number of things; True and False are none."""
    return type(value) is int and 0 <= value <= most


def brief(value: object) -> str:
    """The beginning of a value as JSON, for a message."""
    return json.dumps(value, default=str)[:100]


def read_history(path: Path) -> tuple[dict[str, Any], ...]:
    """Read the history of fine-tuning, a JSON object per line; empty if there is none."""
    if not path.is_file():
        return ()
    try:
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    except (ValueError, RecursionError):
        lines = [None]
    if not all(isinstance(line, dict) for line in lines):
        raise TreetopError(f"{path}: damaged: not a JSON object per line: copy the model folder again")
    return tuple(lines)
