"""Every setting, frozen, with its default; presets; strict JSON in and out."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar

from treetop.errors import TreetopError
from treetop.settings.notation import Counted, parse_budget, parse_views

Kind = TypeVar("Kind", bound="LinearSettings")


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
    first: int | None = None  # look only at so many characters, those a text begins with


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
    head_share: float = 0.0


@dataclass(frozen=True)
class LinearSettings:
    """Settings of XRLinear."""

    # Text features
    ngrams: str = "auto"  # word:1-2+word:1@300 (in 300 characters)|char:3 (next tree); auto: by length
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
    trees: int = 3  # models with different trees, averaged; a flat one is there once a view
    # Rankers: ½‖w‖² + Σ C R̂ loss, C = 1/(2 lambda_)
    loss: str = "squared-hinge"  # squared-hinge, hinge or logistic
    lambda_: float | None = None  # λ of the paper; null: 0.35, over labels a document if cost_sensitive
    alpha: float | None = None  # α of the paper: a negative's weight; null: 0.3, or 1 without R̂
    cost_sensitive: bool | None = None  # R̂ of the paper; null: unless few documents hold most labels
    bias: float | None = None  # value of a constant feature; 0: none; null: 1 if flat, else 0
    passes: int = 20  # passes of coordinate descent at most
    tolerance: float = 0.3  # stop when no step is larger
    threshold: float = 0.1  # weights below are dropped
    max_weights: int | None = None  # weights kept a label, the largest
    shortlist: str = "true"  # negatives from true parents (true), the beam (beam), or both
    beam: int = 10  # nodes followed at each level
    score_transform: str = "auto"  # what a raw score is worth; auto: l3-ordered, sigmoid if flat
    # The run
    keep_documents: bool = False  # keep the documents' beginnings, to show which ones are alike
    seed: int = 0
    threads: int | None = None  # null: every core

    def analysers(self) -> tuple[Analyser, ...]:
        """The analysers that `ngrams` names, all with the same limits."""
        return tuple(
            Analyser(
                unit,
                ngrams,
                self.min_df,
                self.max_df,
                self.max_features,
                self.sublinear,
                tuple(self.stop_words),
                self.lowercase,
                self.shortest_word if unit == "word" else 1,
                first,
            )
            for unit, ngrams, first in self._counted()
        )

    def views(self) -> list[list[int]]:
        """The analysers, by number, that each tree sees; after the last the first is next."""
        counted = self._counted()
        return [[counted.index(one) for one in view] for view in self._parsed()]

    def _parsed(self) -> list[list[Counted]]:
        return parse_views(self.ngrams)[: self.trees]  # there is no tree for the others

    def _counted(self) -> list[Counted]:
        return list(dict.fromkeys(one for view in self._parsed() for one in view))

    def ranker(self) -> RankerSettings:
        """The part that concerns the rankers."""
        names = (one.name for one in fields(RankerSettings))
        return RankerSettings(**{name: getattr(self, name) for name in names if hasattr(self, name)})


@dataclass(frozen=True)
class TransformerSettings(LinearSettings):
    """Settings of XRTransformer: those of XRLinear for words, refined tree and rankers, and these."""

    # Encoder
    encoder: str = "minilm"  # name on the Hub, a folder, or a file of word vectors
    pooling: str = "auto"  # token vectors to one vector: mean, cls, pooler, last; auto: by model
    max_length: int = 256  # tokens of a text that the encoder reads
    words: bool = True  # words beside the encoder in the rankers; False: Φ_dnn alone
    dense_weight: float = 0.35  # length of the encoder's half of Φ_cat; the paper's is 1
    center: bool = True  # subtract the mean vector from that half first; not in the paper
    head_share: float = 0.15  # of W, learned with the encoder, in the labels' rankers; the paper's is 0
    fine_tune: bool = True  # False: the encoder stays as it is, the paper's Pre-Trained
    # Refined tree and rankers, where they differ from XRLinear's
    branching: int = 64  # children a node of an auto tree has at most
    threshold: float = 0.07  # weights below are dropped
    # Fine-tuning on the levels of a preliminary tree
    first_tree: str = "auto"  # such as 16-256-L; without the L the labels are left to the ranker
    largest_level: int = 32_768  # a level with more nodes is left to the ranker
    budget: str = "5 epochs"  # epochs, samples or steps, in all or by level: 300/400/600 steps
    batch: int = 256  # documents a step
    learning_rate: float | None = None  # the largest, after the warm-up; None: by the encoder's width
    head_learning_rate: float | None = 2e-3  # that of W; None: as the encoder's
    warmup: float = 0.1  # share of a level's steps in which the learning rate grows
    weight_decay: float = 0.0  # of the encoder's matrices
    clip: float = 1.0  # largest norm of a gradient
    dropout: float = 0.1  # share of values left out at random
    tune_loss: str = "squared-hinge"  # squared-hinge, hinge or bce
    tune_lambda: float = 0.1  # λ of the paper, for the head
    tune_alpha: float = 0.3  # α of the paper: weight of a negative
    tune_cost_sensitive: bool = True  # R̂ of the paper; False: every positive weighs 1
    tune_shortlist: str = "all"  # nodes to learn on: all, or children of P and of true parents (beam)
    tune_beam: int = 10  # beam: nodes of P, from the level above, whose children are shortlisted
    matcher_passes: int = 5  # beam: solver passes at most for the rankers that make P
    bootstrap: bool = True  # begin a level with W from the linear solver instead of zeros
    bootstrap_first: bool = False  # the first level too, from the encoder as it comes
    # Validation
    validation: float = 0.0  # share of the documents held back, if none are given
    validate_every: float = 0.2  # of a level's steps
    patience: int = 0  # validations without a better P@1 that end a level; 0: never
    # The machine
    device: str = "auto"  # auto, cpu, cuda, cuda:1, mps
    precision: str = "auto"  # auto: bf16 where the GPU has it, else fp32; fp32 or bf16
    cuda_graphs: bool = True  # on a GPU record a step and replay it: small encoders wait for the host
    fused_layers: bool = True  # on a GPU with Triton: faster gradients of layer norms and biases
    fallback: bool = False  # go on with the CPU if the GPU fails
    checkpoint_minutes: float = 5.0  # between checkpoints of a run that has a folder
    tensorboard: str | None = None  # folder for TensorBoard


SCORES = (
    "auto",
    "l1-hinge",
    "l2-hinge",
    "l3-hinge",
    "l4-hinge",
    "sigmoid",
    "identity",
    "log-l1-hinge",
    "log-l2-hinge",
    "log-l3-hinge",
    "log-l4-hinge",
    "log-sigmoid",
    "l1-ordered",
    "l2-ordered",
    "l3-ordered",
    "l4-ordered",
    "log-l1-ordered",
    "log-l2-ordered",
    "log-l3-ordered",
    "log-l4-ordered",
)
CHOICES = {
    "loss": ("squared-hinge", "hinge", "logistic"),
    "shortlist": ("true", "beam", "both"),
    "label_features": ("pifa", "pifa-pecos"),
    "pooling": ("auto", "mean", "cls", "pooler", "last"),
    "tune_loss": ("squared-hinge", "hinge", "bce"),
    "tune_shortlist": ("beam", "all"),
    "precision": ("auto", "fp32", "bf16"),
    "score_transform": SCORES,
}
POSITIVE = (
    "lambda_",
    "alpha",
    "tolerance",
    "beam",
    "passes",
    "trees",
    "tree_passes",
    "leaf",
    "max_length",
    "largest_level",
    "batch",
    "learning_rate",
    "head_learning_rate",
    "clip",
    "tune_alpha",
    "tune_lambda",
    "tune_beam",
    "matcher_passes",
    "validate_every",
    "checkpoint_minutes",
)


def unknown_setting(name: str, known: Iterable[str]) -> TreetopError:
    """The error for a setting that does not exist, with the nearest that does."""
    near = difflib.get_close_matches(name, list(known), 1, 0.4)
    hint = f": did you mean {near[0]!r}?" if near else ""
    return TreetopError(f"unknown setting {name!r}{hint}")


def make_settings(values: Mapping[str, Any], kind: type[Kind] = LinearSettings) -> Kind:  # type: ignore[assignment]
    """Settings from names and values; an unknown name or an impossible value is an error."""
    known = {one.name: one for one in fields(kind)}
    for name in values:
        if name not in known:
            raise unknown_setting(name, known)
    values = {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
    }
    settings = kind(**values)
    for name, one in known.items():
        check_type(name, getattr(settings, name), str(one.type))
    for name, choices in CHOICES.items():
        if name in known and getattr(settings, name) not in choices:
            raise TreetopError(
                f"{name} is {getattr(settings, name)!r}: choose one of {', '.join(choices)}"
            )
    for name in POSITIVE:
        if name in known and (value := getattr(settings, name)) is not None and value <= 0:
            raise TreetopError(f"{name} is {getattr(settings, name)}: it must be above 0")
    check_rest(settings)
    parse_views(settings.ngrams)
    if isinstance(settings, TransformerSettings):
        check_shares(settings)
        parse_budget(settings.budget)
    return settings


def check_rest(settings: LinearSettings) -> None:
    """Raise if a setting with limits of its own is outside them."""
    if settings.branching < 2:
        raise TreetopError(f"branching is {settings.branching}: it must be at least 2")
    if settings.seed < 0:
        raise TreetopError(f"seed is {settings.seed}: it must be at least 0")


def check_shares(settings: TransformerSettings) -> None:
    """Raise if a share is not between 0 and 1."""
    for name in ("dropout", "warmup", "validation", "head_share"):
        if not 0 <= getattr(settings, name) < 1:
            raise TreetopError(f"{name} is {getattr(settings, name)}: it must be at least 0, below 1")


def check_type(name: str, value: Any, annotation: str) -> None:
    """Raise if `value` is not of the type a setting is declared with."""
    allowed: dict[str, tuple[type, ...]] = {
        "int": (int,),
        "float": (int, float),
        "str": (str,),
        "bool": (bool,),
        "None": (type(None),),
        "tuple[str, ...]": (tuple,),
    }
    kinds = [part.strip() for part in annotation.split("|")]
    for kind in kinds:
        if isinstance(value, allowed[kind]) and (kind == "bool" or not isinstance(value, bool)):
            return
    raise TreetopError(f"{name} is {value!r}: it must be of type {' or '.join(kinds)}")


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
