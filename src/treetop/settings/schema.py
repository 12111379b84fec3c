"""Every setting of the method, once: its default, its help, its bounds and its choices.

Where the work is done (threads, device, precision) is not a setting of the method but a `Runtime`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from treetop.fields import documented
from treetop.settings.notation import parse_budget, parse_first_tree, parse_tree, parse_views
from treetop.settings.parts import Analyser, RankerSettings, analysers_of, ranker_of, views_by_tree

text = partial(documented, section="Text features")
label_tree = partial(documented, section="Label tree")
ranker = partial(documented, section="Rankers: ½‖w‖² + Σ C R̂ loss, C = 1/(2 lambda_)")
run = partial(documented, section="The run")
encoder_half = partial(documented, section="Encoder")
refined = partial(documented, section="Refined tree and rankers, where they differ from XRLinear's")
tuning = partial(documented, section="Fine-tuning on the levels of a preliminary tree")
held_out = partial(documented, section="Validation")

POWERS = tuple(f"l{power}-{shape}" for shape in ("hinge", "ordered") for power in (1, 2, 3, 4))
MULTIPLIED = ("sigmoid", *POWERS)
ADDED = tuple(f"log-{name}" for name in MULTIPLIED)
SCORE_TRANSFORMS = ("auto", "identity", *MULTIPLIED, *ADDED)


@dataclass(frozen=True, kw_only=True)
class LinearSettings:
    """Settings of XRLinear."""

    ngrams: str = text(
        "auto",
        "n-grams to count, such as word:1-2+char:3; word:1@300 reads the first 300 characters only; "
        "after | what further trees count; auto decides by the length of the texts",
        parse=parse_views,
    )
    min_df: int | float = text(
        1,
        "documents an n-gram must occur in: a count, or a share of all documents if a float",
        at_least=0,
    )
    max_df: int | float = text(
        1.0, "documents an n-gram may occur in at most: a count, or a share if a float", at_least=0
    )
    max_features: int | None = text(
        500_000, "maximum number of features per analyzer; the most frequent are kept", at_least=1
    )
    sublinear: bool = text(True, "use 1 + ln(count) instead of the count")
    stop_words: tuple[str, ...] = text((), "words removed before n-grams are formed")
    lowercase: bool = text(True, "convert all text to lower case")
    shortest_word: int = text(1, "minimum number of characters of a word", at_least=1)
    tree: str = label_tree(
        "auto",
        "label tree: level sizes such as 16-256-L, flat for no tree, or auto, which decides by "
        "flat_labels, branching, leaf and balanced",
        parse=parse_tree,
    )
    flat_labels: int = label_tree(
        3000, "an auto tree over at most this many labels is flat: all labels are negatives", at_least=0
    )
    branching: int = label_tree(16, "maximum number of children of a node of an auto tree", at_least=2)
    leaf: int = label_tree(100, "maximum number of labels in a cluster of an auto tree", at_least=1)
    balanced: bool = label_tree(
        True, "sibling clusters of the same size; false uses plain k-means, as in Bonsai"
    )
    label_features: str = label_tree(
        "pifa",
        "label features: pifa as in the paper, or pifa-pecos, which scales the rows of Y first",
        choices=("pifa", "pifa-pecos"),
    )
    tree_features: int | None = label_tree(
        256, "number of a label's largest features that decide its cluster; null uses all", at_least=1
    )
    tree_passes: int = label_tree(20, "maximum number of k-means iterations", at_least=1)
    trees: int = label_tree(
        3, "number of models with different trees to average; of a flat tree one per view", at_least=1
    )
    loss: str = ranker(
        "squared-hinge", "loss of the rankers", choices=("squared-hinge", "hinge", "logistic")
    )
    lambda_: float | None = ranker(
        None,
        "regularization, λ of the paper; null: 0.35 / mean labels per document if cost-sensitive, "
        "else 0.35",
        above=0,
    )
    alpha: float | None = ranker(
        None, "weight of a negative, α of the paper; null: 0.3 if cost-sensitive, else 1", above=0
    )
    cost_sensitive: bool | None = ranker(
        None,
        "weight positives by R̂ of the paper; null: yes, unless a few documents have most of the labels",
    )
    bias: float | None = ranker(
        None, "value of a constant feature, 0 for none; null: 1 for a flat tree, else 0", at_least=0
    )
    passes: int = ranker(20, "maximum number of passes of coordinate descent", at_least=1)
    tolerance: float = ranker(0.3, "stop when no step is larger", above=0)
    prune_below: float = ranker(
        0.1,
        "drop weights with a smaller absolute value; a larger value makes a smaller model",
        at_least=0,
    )
    max_weights: int | None = ranker(
        None, "maximum number of weights per label; the largest are kept; null keeps all", at_least=1
    )
    shortlist: str = ranker(
        "true",
        "negatives come from the true parents (true), the beam (beam), or both",
        choices=("true", "beam", "both"),
    )
    beam: int = ranker(10, "number of nodes followed at each level in prediction", at_least=1)
    score_transform: str = ranker(
        "auto",
        "what a raw score counts for; auto is l3-ordered, or sigmoid for a flat tree",
        choices=SCORE_TRANSFORMS,
    )
    keep_documents: bool = run(
        False, "keep the beginnings of the training documents, so that explanations show similar ones"
    )
    seed: int = run(0, "seed of everything random", at_least=0)

    def analysers(self) -> tuple[Analyser, ...]:
        """The analysers that `ngrams` names, all with the same limits."""
        return analysers_of(self)

    def views(self) -> list[list[int]]:
        """The analysers, by number, that each tree sees; after the last the first is next."""
        return views_by_tree(self)

    def ranker(self) -> RankerSettings:
        """The part that concerns the rankers."""
        return ranker_of(self)


@dataclass(frozen=True, kw_only=True)
class TransformerSettings(LinearSettings):
    """Settings of XRTransformer: those of XRLinear for TF-IDF, refined trees and rankers, and these."""

    encoder: str = encoder_half(
        "minilm", "name on the Hugging Face Hub, a folder, or a file of word vectors"
    )
    pooling: str = encoder_half(
        "auto",
        "how token vectors become one vector; auto asks the encoder's own files",
        choices=("auto", "mean", "cls", "pooler", "last"),
    )
    max_length: int = encoder_half(256, "number of tokens of a text that the encoder reads", at_least=1)
    words: bool = encoder_half(
        True, "use TF-IDF features alongside the encoder in the rankers; false uses the encoder alone"
    )
    dense_weight: float = encoder_half(
        0.35, "length of the encoder's half of Φ_cat; 1 in the paper", above=0
    )
    center: bool = encoder_half(
        True, "subtract the mean vector from that half first; the paper does not"
    )
    head_share: float = encoder_half(
        0.15,
        "share of W, learned with the encoder, in the scores of the labels; 0 in the paper",
        at_least=0,
        below=1,
    )
    fine_tune: bool = encoder_half(
        True, "fine-tune the encoder; false keeps it frozen, the paper's Pre-Trained"
    )
    branching: int = refined(64, "maximum number of children of a node of an auto tree", at_least=2)
    prune_below: float = refined(
        0.07,
        "drop weights with a smaller absolute value; a larger value makes a smaller model",
        at_least=0,
    )
    first_tree: str = tuning(
        "auto",
        "level sizes of the preliminary tree, such as 16-256-L; without the L the labels are "
        "left to the rankers",
        parse=parse_first_tree,
    )
    largest_level: int = tuning(
        32_768, "levels with more nodes are not fine-tuned but left to the rankers", at_least=1
    )
    budget: str = tuning(
        "5 epochs",
        "epochs, samples or steps of training: in total, or by level as in 300/400/600 steps",
        parse=parse_budget,
    )
    batch: int = tuning(256, "number of documents per step", at_least=1)
    learning_rate: float | None = tuning(
        None, "largest learning rate, reached after the warm-up; null: by the encoder's width", above=0
    )
    head_learning_rate: float | None = tuning(
        2e-3, "learning rate of W; null: that of the encoder", above=0
    )
    warmup: float = tuning(
        0.1, "share of a level's steps in which the learning rate grows", at_least=0, below=1
    )
    weight_decay: float = tuning(0.0, "weight decay of the encoder's matrices", at_least=0)
    clip: float = tuning(1.0, "largest norm of a gradient", above=0)
    dropout: float = tuning(0.1, "dropout in encoder and head", at_least=0, below=1)
    tune_loss: str = tuning(
        "squared-hinge", "loss of fine-tuning", choices=("squared-hinge", "hinge", "bce")
    )
    tune_lambda: float = tuning(0.1, "regularization of the head, λ of the paper", above=0)
    tune_alpha: float = tuning(0.3, "weight of a negative in fine-tuning, α of the paper", above=0)
    tune_cost_sensitive: bool = tuning(
        True, "weight positives by R̂ of the paper; false: every positive weighs 1"
    )
    tune_shortlist: str = tuning(
        "all",
        "nodes to learn on: all, or the children of P and of the true parents (beam, as in the paper)",
        choices=("beam", "all"),
    )
    tune_beam: int = tuning(
        10, "with tune_shortlist=beam: size of P, whose children are shortlisted", at_least=1
    )
    matcher_passes: int = tuning(
        5,
        "with tune_shortlist=beam: maximum number of solver passes for the rankers that make P",
        at_least=1,
    )
    bootstrap: bool = tuning(True, "start each level with W from the linear solver instead of zeros")
    bootstrap_first: bool = tuning(
        False, "the same for the first level, on the vectors of the encoder before fine-tuning"
    )
    validation: float = held_out(
        0.0, "share of the documents held back for validation, if none are given", at_least=0, below=1
    )
    validate_every: float = held_out(0.2, "share of a level's steps between validations", above=0)
    patience: int = held_out(
        0, "validations without a better P@1 that end a level; 0 never ends one early", at_least=0
    )
