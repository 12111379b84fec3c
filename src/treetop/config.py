"""Every setting, frozen, with its default; presets; strict JSON in and out."""

from __future__ import annotations

import difflib
import inspect
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from treetop.errors import TreetopError


@dataclass(frozen=True)
class Analyser:
    """What to count in a text: n-grams of words or of characters."""

    unit: str = "word"  # word or char
    ngrams: tuple[int, int] = (1, 1)  # shortest and longest n-gram
    min_df: int | float = 1  # documents an n-gram must be in: a count, or a share if a float
    max_df: int | float = 1.0  # documents it may be in at most
    max_features: int | None = None  # keep only so many, the most frequent
    sublinear: bool = False  # 1 + ln(count) instead of the count
    stop_words: tuple[str, ...] = ()  # words left out before n-grams are formed
    lowercase: bool = True
    shortest: int = 1  # characters a word must have


@dataclass(frozen=True)
class RankerSettings:
    """How the linear rankers are trained and searched."""

    loss: str = "squared-hinge"
    lambda_: float = 0.35
    alpha: float = 1.0
    cost_sensitive: bool = False
    bias: float | None = None
    passes: int = 20
    tolerance: float = 0.3
    threshold: float = 0.1
    max_weights: int | None = None
    shortlist: str = "true"
    beam: int = 10
    score_transform: str = "auto"


@dataclass(frozen=True)
class LinearSettings:
    """Settings of XRLinear."""

    # Text features
    ngrams: str = "word:1-2"  # analysers joined by +, such as word:1-2+char:3
    min_df: int | float = 1  # documents an n-gram must be in: a count, or a share if a float
    max_df: int | float = 1.0  # documents an n-gram may be in at most
    max_features: int | None = 500_000  # features kept an analyser, the most frequent
    sublinear: bool = True  # 1 + ln(count) instead of the count
    stop_words: tuple[str, ...] = ()  # words left out before n-grams are formed
    lowercase: bool = True  # fold case
    shortest_word: int = 1  # characters a word must have
    # Label tree
    tree: str = "auto"  # level sizes such as 16-256-L; flat: no tree; auto: by the next four
    flat_labels: int = 3000  # up to so many labels an auto tree is flat: all labels are negatives
    branching: int = 16  # children a node of an auto tree has at most
    leaf: int = 100  # labels a cluster of an auto tree has at most
    balanced: bool = True  # sibling clusters of the same size; False: k-means as in Bonsai
    label_features: str = "pifa"  # pifa as in the paper; pifa-pecos scales rows of Y first
    tree_features: int | None = 256  # largest features of a label that decide its cluster; null: all
    tree_passes: int = 20  # passes of k-means at most
    trees: int = 3  # models with different trees, averaged; a flat tree needs only one
    # Rankers: ½‖w‖² + Σ C R̂ loss, C = 1/(2 lambda_)
    loss: str = "squared-hinge"  # squared-hinge, hinge or logistic
    lambda_: float = 0.35  # λ of the paper
    alpha: float = 1.0  # α of the paper: weight of a negative
    cost_sensitive: bool = False  # R̂ of the paper; False: every positive weighs 1
    bias: float | None = None  # value of a constant feature; 0: none; null: 1 if flat, else 0
    passes: int = 20  # passes of coordinate descent at most
    tolerance: float = 0.3  # stop when no step is larger
    threshold: float = 0.1  # weights below are dropped
    max_weights: int | None = None  # weights kept a label, the largest
    shortlist: str = "true"  # negatives from true parents (true), the beam (beam), or both
    beam: int = 10  # nodes followed at each level
    score_transform: str = "auto"  # what a raw score is worth; auto: l3-hinge, sigmoid if flat
    # The run
    seed: int = 0
    threads: int | None = None  # null: every core

    def analysers(self) -> tuple[Analyser, ...]:
        """The analysers that `ngrams` names, all with the same limits."""
        return tuple(
            Analyser(
                unit, ngrams, self.min_df, self.max_df, self.max_features, self.sublinear,
                tuple(self.stop_words), self.lowercase, self.shortest_word if unit == "word" else 1,
            )
            for unit, ngrams in parse_ngrams(self.ngrams)
        )  # fmt: skip

    def ranker(self) -> RankerSettings:
        """The part that concerns the rankers."""
        return RankerSettings(**{one.name: getattr(self, one.name) for one in fields(RankerSettings)})


PRESETS: dict[str, dict[str, Any]] = {
    "xr-linear": {},
    "parabel": {
        "flat_labels": 0, "branching": 2, "leaf": 100,
    },
    "bonsai": {
        "flat_labels": 0, "branching": 100, "leaf": 100, "balanced": False,
    },
    "one-vs-all": {"tree": "flat", "threshold": 0.01},
    "fast": {"ngrams": "word:1", "trees": 1, "tolerance": 1.0, "passes": 5},
    "paper": {
        "trees": 1, "flat_labels": 0, "shortlist": "both", "cost_sensitive": True, "lambda_": 0.5,
    },
}  # fmt: skip

CHOICES = {
    "loss": ("squared-hinge", "hinge", "logistic"),
    "shortlist": ("true", "beam", "both"),
    "label_features": ("pifa", "pifa-pecos"),
}
POSITIVE = ("lambda_", "alpha", "tolerance", "beam", "passes", "trees", "tree_passes", "leaf")


def parse_ngrams(spec: str) -> list[tuple[str, tuple[int, int]]]:
    """``word:1-2+char:3`` as [("word", (1, 2)), ("char", (3, 3))]."""
    found = []
    for part in str(spec).replace(" ", "").split("+"):
        match = re.fullmatch(r"(word|char):([1-9]\d?)(?:-([1-9]\d?))?", part)
        if not match or int(match[3] or match[2]) < int(match[2]):
            raise TreetopError(
                f"ngrams {spec!r} is not understood: write word:1-2, char:3, or several joined by +"
            )
        found.append((match[1], (int(match[2]), int(match[3] or match[2]))))
    return found


def unknown_setting(name: str, known: Iterable[str]) -> TreetopError:
    """The error for a setting that does not exist, with the nearest that does."""
    near = difflib.get_close_matches(name, list(known), 1, 0.4)
    hint = f": did you mean {near[0]!r}?" if near else ""
    return TreetopError(f"unknown setting {name!r}{hint}")


def make_settings(values: Mapping[str, Any]) -> LinearSettings:
    """Settings from names and values; an unknown name or an impossible value is an error."""
    known = {one.name: one for one in fields(LinearSettings)}
    for name in values:
        if name not in known:
            raise unknown_setting(name, known)
    values = {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
    }
    settings = LinearSettings(**values)
    for name, one in known.items():
        check_type(name, getattr(settings, name), str(one.type))
    for name, choices in CHOICES.items():
        if getattr(settings, name) not in choices:
            raise TreetopError(
                f"{name} is {getattr(settings, name)!r}: choose one of {', '.join(choices)}"
            )
    for name in POSITIVE:
        if getattr(settings, name) <= 0:
            raise TreetopError(f"{name} is {getattr(settings, name)}: it must be above 0")
    if settings.branching < 2:
        raise TreetopError(f"branching is {settings.branching}: it must be at least 2")
    parse_ngrams(settings.ngrams)
    return settings


def check_type(name: str, value: Any, annotation: str) -> None:
    """Raise if `value` is not of the type a setting is declared with."""
    allowed: dict[str, tuple[type, ...]] = {
        "int": (int,), "float": (int, float), "str": (str,), "bool": (bool,), "None": (type(None),),
        "tuple[str, ...]": (tuple,),
    }  # fmt: skip
    kinds = [part.strip() for part in annotation.split("|")]
    for kind in kinds:
        if isinstance(value, allowed[kind]) and (kind == "bool" or not isinstance(value, bool)):
            return
    raise TreetopError(f"{name} is {value!r}: it must be of type {' or '.join(kinds)}")


def preset(name: str) -> dict[str, Any]:
    """The settings a preset changes."""
    if name not in PRESETS:
        raise TreetopError(f"unknown preset {name!r}: choose one of {', '.join(PRESETS)}")
    return dict(PRESETS[name])


def parse_assignment(text: str) -> tuple[str, Any]:
    """``alpha=0.5`` as ("alpha", 0.5); a value that is no JSON is a string."""
    name, equals, value = text.partition("=")
    if not equals:
        raise TreetopError(f"{text!r} is no setting: write name=value")
    try:
        return name.strip(), json.loads(value)
    except ValueError:
        return name.strip(), value


def to_json(settings: LinearSettings) -> dict[str, Any]:
    """Settings as plain values."""
    return {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(settings).items()}


def signature_of(settings: type) -> inspect.Signature:
    """The constructor's signature an estimator shows for its settings."""
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return inspect.Signature(
        [own]
        + [
            inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default)
            for one in fields(settings)
        ]
    )
