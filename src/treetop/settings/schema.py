"""Every setting of the method, defined once: default, help, bounds and choices.

Where the work is done (threads, device, precision) is not a setting of the method but a `Runtime`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from treetop.fields import documented
from treetop.settings.notation import Ngrams, parse_budget, parse_first_tree, parse_tree, parse_views
from treetop.settings.parts import RANKER, Analyser, RankerSettings

text = partial(documented, section="Text features")
label_tree = partial(documented, section="Label tree")
ranker = partial(
    documented, section="Linear rankers: minimize ½‖w‖² + Σ C·R̂·loss with C = 1/(2 lambda_)"
)
general = partial(documented, section="General")
encoder_half = partial(documented, section="Encoder")
refined = partial(documented, section="Label tree and rankers: defaults that differ from XRLinear's")
tuning = partial(documented, section="Fine-tuning, level by level on a preliminary tree")
held_out = partial(documented, section="Validation")

POWERS = tuple(f"l{power}-{shape}" for shape in ("hinge", "ordered") for power in (1, 2, 3, 4))
MULTIPLIED = ("sigmoid", *POWERS)
ADDED = tuple(f"log-{name}" for name in MULTIPLIED)
SCORE_TRANSFORMS = ("auto", "identity", *MULTIPLIED, *ADDED)
# Help of the settings whose defaults depend on the kind of model.
BRANCHING = (
    "Maximum number of children per node of an auto tree. A larger value makes a shallower tree: "
    "slower, and often more precise."
)
PRUNE_BELOW = (
    "Drop weights whose absolute value is below this. Raise it for a smaller and faster model; "
    "lower it if precision suffers."
)


@dataclass(frozen=True, kw_only=True)
class LinearSettings:
    """Settings of XRLinear."""

    ngrams: str = text(
        "auto",
        "N-grams to use as features, such as word:1-2+char:3. A suffix such as word:1@300 reads only "
        "the first 300 characters; | separates the features of one tree from those of the next. By "
        "default (auto), chosen by the median length of the texts.",
        parse=parse_views,
    )
    min_df: int | float = text(
        1,
        "Minimum number of documents an n-gram must occur in; a float is a fraction of all documents. "
        "Raise it to drop rare n-grams, which saves time and memory on large collections.",
        at_least=0,
    )
    max_df: int | float = text(
        1.0,
        "Maximum number of documents an n-gram may occur in; a float is a fraction of all documents. "
        "Lower it to drop n-grams that occur nearly everywhere. By default, none are dropped.",
        at_least=0,
    )
    max_features: int | None = text(
        500_000,
        "Maximum number of features per analyzer; the most frequent n-grams are kept. null keeps all. "
        "Lower it to save memory.",
        at_least=1,
    )
    sublinear: bool = text(
        True, "Replace the count tf of an n-gram by 1 + ln(tf), so that repetitions matter less."
    )
    stop_words: tuple[str, ...] = text(
        (), "Words to remove before n-grams are formed. By default, none are removed."
    )
    lowercase: bool = text(
        True, "Convert all text to lowercase. Disable it where case carries meaning."
    )
    shortest_word: int = text(
        1,
        "Minimum length of a word in characters; shorter words are ignored. 2 is scikit-learn's "
        "convention.",
        at_least=1,
    )
    tree: str = label_tree(
        "auto",
        "Label tree: level sizes such as 16-256-L, flat for no tree (one-vs-all), or auto. By default "
        "(auto), flat_labels, branching, leaf and balanced determine it.",
        parse=parse_tree,
    )
    flat_labels: int = label_tree(
        3000,
        "Maximum number of labels for which an auto tree is flat. Without a tree, training takes "
        "longer and precision is slightly higher. 0 always builds a tree.",
        at_least=0,
    )
    branching: int = label_tree(
        16,
        BRANCHING,
        at_least=2,
    )
    leaf: int = label_tree(
        100, "Maximum number of labels per cluster on the lowest level of an auto tree.", at_least=1
    )
    balanced: bool = label_tree(
        True,
        "Build clusters of equal size by balanced k-means. false uses plain k-means, as Bonsai does.",
    )
    label_features: str = label_tree(
        "pifa",
        "Label features that the tree is built from: pifa, as in the paper, or pifa-pecos, which first "
        "scales each document's row of labels to unit length, as PECOS does.",
        choices=("pifa", "pifa-pecos"),
    )
    tree_features: int | None = label_tree(
        256,
        "Number of features per label used for clustering; the largest are used. null uses all, which "
        "takes longer and gives clusters of the same quality.",
        at_least=1,
    )
    tree_passes: int = label_tree(20, "Maximum number of k-means iterations.", at_least=1)
    trees: int = label_tree(
        3,
        "Number of trees whose scores are averaged. 1 trains faster and makes a smaller model at a "
        "small cost in precision. Where the tree is flat, one model is trained per part of ngrams "
        "instead.",
        at_least=1,
    )
    loss: str = ranker(
        "squared-hinge",
        "Loss of the rankers: squared-hinge, hinge or logistic.",
        choices=("squared-hinge", "hinge", "logistic"),
    )
    lambda_: float | None = ranker(
        None,
        "Strength of the L2 regularization, λ in the paper. A larger value makes smaller models that "
        "overfit less. By default, 0.35 divided by the mean number of labels per document if "
        "cost-sensitive, otherwise 0.35.",
        above=0,
    )
    alpha: float | None = ranker(
        None,
        "Weight of negative examples, α in the paper. By default, 0.3 if cost-sensitive, otherwise 1.",
        above=0,
    )
    cost_sensitive: bool | None = ranker(
        None,
        "Weight the positive labels of each document so that they sum to 1, R̂ in the paper. By "
        "default, enabled unless a few documents have most of the labels.",
    )
    bias: float | None = ranker(
        None,
        "Value of a constant feature that acts as the intercept; 0 disables it. By default, 1 for a "
        "flat tree and 0 otherwise.",
        at_least=0,
    )
    passes: int = ranker(
        20,
        "Maximum number of passes of coordinate descent. Raise it together with a smaller tolerance "
        "for a more exact solution.",
        at_least=1,
    )
    tolerance: float = ranker(
        0.3,
        "Stopping criterion of coordinate descent: stop when no step is larger than this.",
        above=0,
    )
    prune_below: float = ranker(
        0.1,
        PRUNE_BELOW,
        at_least=0,
    )
    max_weights: int | None = ranker(
        None,
        "Maximum number of weights per label; the largest are kept. By default (null), no limit.",
        at_least=1,
    )
    shortlist: str = ranker(
        "true",
        "Where negative examples come from: true (siblings of the positive labels), beam (labels that "
        "beam search reaches), or both, as in the paper. beam and both take longer to train.",
        choices=("true", "beam", "both"),
    )
    beam: int = ranker(
        10,
        "Beam width of prediction: the number of nodes kept per level. A larger value finds slightly "
        "more and takes longer; it can also be changed in predict.",
        at_least=1,
    )
    score_transform: str = ranker(
        "auto",
        "Function that maps a ranker's raw score to its factor of the label's score. By default "
        "(auto), l3-ordered, or sigmoid for a flat tree.",
        choices=SCORE_TRANSFORMS,
    )
    keep_documents: bool = general(
        False,
        "Store the beginning of each training document in the model, so that explanations can show "
        "similar documents. Leave it disabled if the texts are confidential.",
    )
    seed: int = general(
        0, "Seed of all random numbers. The same seed gives the same model.", at_least=0
    )

    def ngrams_by_tree(self) -> list[list[Ngrams]]:
        """Return the n-grams that each tree uses; parts of `ngrams` beyond `trees` are ignored."""
        return parse_views(self.ngrams)[: self.trees]

    def distinct_ngrams(self) -> list[Ngrams]:
        """Return the n-grams that at least one tree uses, without duplicates."""
        return list(dict.fromkeys(ngrams for view in self.ngrams_by_tree() for ngrams in view))

    def analysers(self) -> tuple[Analyser, ...]:
        """Return one analyzer for each of `distinct_ngrams`; all share the other text settings."""
        return tuple(
            Analyser(
                unit=ngrams.unit,
                ngrams=ngrams.lengths,
                min_df=self.min_df,
                max_df=self.max_df,
                max_features=self.max_features,
                sublinear=self.sublinear,
                stop_words=tuple(self.stop_words),
                lowercase=self.lowercase,
                shortest=self.shortest_word if ngrams.unit == "word" else 1,
                first=ngrams.first,
            )
            for ngrams in self.distinct_ngrams()
        )

    def views(self) -> list[list[int]]:
        """Return the indices into `analysers` that each tree uses; trees take the views in turn."""
        number = {ngrams: index for index, ngrams in enumerate(self.distinct_ngrams())}
        return [[number[ngrams] for ngrams in view] for view in self.ngrams_by_tree()]

    def ranker(self) -> RankerSettings:
        """Return the settings that concern the rankers."""
        return RankerSettings(**{name: getattr(self, name) for name in RANKER if hasattr(self, name)})


@dataclass(frozen=True, kw_only=True)
class TransformerSettings(LinearSettings):
    """Settings of XRTransformer. Its final trees and rankers use those of XRLinear."""

    encoder: str = encoder_half(
        "minilm",
        "Text encoder: a short name such as minilm, a model name on the Hugging Face Hub, a folder, or "
        "a file of word vectors.",
    )
    pooling: str = encoder_half(
        "auto",
        "How token vectors are pooled into one vector: mean, cls, pooler or last. By default (auto), "
        "as the encoder's own files specify.",
        choices=("auto", "mean", "cls", "pooler", "last"),
    )
    max_length: int = encoder_half(
        256,
        "Maximum number of tokens per text; the rest is truncated for the encoder, while the TF-IDF "
        "features use the whole text. A smaller value is faster.",
        at_least=1,
    )
    words: bool = encoder_half(
        True,
        "Use TF-IDF features alongside the encoder in the rankers. false uses the encoder alone, which "
        "is usually less precise.",
    )
    dense_weight: float = encoder_half(
        0.35,
        "Weight of the encoder relative to the TF-IDF features: the length of its half of Φ_cat, 1 in "
        "the paper. With a small value the model relies more on TF-IDF.",
        above=0,
    )
    center: bool = encoder_half(
        True,
        "Subtract the mean of all document vectors from the encoder's half of Φ_cat. The paper does "
        "not.",
    )
    head_share: float = encoder_half(
        0.15,
        "Share of the fine-tuned classification head in the score of each label; the rankers "
        "contribute the rest. 0 in the paper. Set it to 0 if fine-tuning is very short.",
        at_least=0,
        below=1,
    )
    fine_tune: bool = encoder_half(
        True,
        "Fine-tune the encoder. false keeps it frozen (Pre-Trained in the paper): much faster, and "
        "practical without a GPU.",
    )
    branching: int = refined(
        64,
        BRANCHING,
        at_least=2,
    )
    prune_below: float = refined(
        0.07,
        PRUNE_BELOW,
        at_least=0,
    )
    first_tree: str = tuning(
        "auto",
        "Level sizes of the preliminary tree, such as 16-256-L, on which the encoder is fine-tuned. "
        "Without the final L, the encoder is not fine-tuned on the labels themselves. By default "
        "(auto), each level has at most 32 times as many nodes as the one above.",
        parse=parse_first_tree,
    )
    largest_level: int = tuning(
        32_768,
        "Maximum number of nodes of a level that is fine-tuned; larger levels are left to the rankers. "
        "Lower it if the GPU runs out of memory.",
        at_least=1,
    )
    budget: str = tuning(
        "5 epochs",
        "Length of fine-tuning in epochs, samples or steps: a total such as 5 epochs, or one figure "
        "per level such as 300/400/600 steps. A total is divided so that finer levels get more.",
        parse=parse_budget,
    )
    batch: int = tuning(
        256,
        "Batch size: number of documents per step. A batch that does not fit into memory is split "
        "automatically.",
        at_least=1,
    )
    learning_rate: float | None = tuning(
        None,
        "Peak learning rate of the encoder. By default, 2e-4 for a width of up to 384, falling with "
        "the square of the width (5e-5 for BERT-base).",
        above=0,
    )
    head_learning_rate: float | None = tuning(
        2e-3,
        "Peak learning rate of the classification head. null uses that of the encoder, as in the "
        "paper.",
        above=0,
    )
    warmup: float = tuning(
        0.1,
        "Fraction of each level's steps during which the learning rate rises; it then falls linearly.",
        at_least=0,
        below=1,
    )
    weight_decay: float = tuning(0.0, "Weight decay of the encoder's weight matrices.", at_least=0)
    clip: float = tuning(1.0, "Maximum norm of the gradient; larger gradients are clipped.", above=0)
    dropout: float = tuning(
        0.1, "Dropout probability in the encoder and the classification head.", at_least=0, below=1
    )
    tune_loss: str = tuning(
        "squared-hinge",
        "Loss of fine-tuning: squared-hinge, hinge or bce (binary cross-entropy).",
        choices=("squared-hinge", "hinge", "bce"),
    )
    tune_lambda: float = tuning(
        0.1, "Strength of the L2 regularization of the classification head, λ in the paper.", above=0
    )
    tune_alpha: float = tuning(
        0.3, "Weight of negative examples in fine-tuning, α in the paper.", above=0
    )
    tune_cost_sensitive: bool = tuning(
        True,
        "Weight the positive examples of fine-tuning by R̂, as in the paper. false gives each of them "
        "a weight of 1.",
    )
    tune_shortlist: str = tuning(
        "all",
        "Nodes that a document is trained on: all nodes of the level, or beam, as in the paper: the "
        "children of its predicted and true parents. Use beam for levels of very many nodes.",
        choices=("beam", "all"),
    )
    tune_beam: int = tuning(
        10,
        "With tune_shortlist=beam, number of nodes predicted per document whose children are "
        "shortlisted.",
        at_least=1,
    )
    matcher_passes: int = tuning(
        5,
        "With tune_shortlist=beam, maximum number of solver passes of the rankers that predict these "
        "nodes.",
        at_least=1,
    )
    bootstrap: bool = tuning(
        True,
        "Initialize the classification head of each level but the first with the solution of the "
        "linear solver, as in the paper. false starts from zeros.",
    )
    bootstrap_first: bool = tuning(
        False,
        "Initialize the classification head of the first level in the same way, on the vectors of the "
        "encoder before fine-tuning.",
    )
    validation: float = held_out(
        0.0,
        "Fraction of the training documents to hold out for validation when none are passed to fit. "
        "With validation, each level keeps the weights with the best P@1.",
        at_least=0,
        below=1,
    )
    validate_every: float = held_out(
        0.2, "Interval between validations, as a fraction of a level's steps.", above=0
    )
    patience: int = held_out(
        0,
        "Early stopping: end a level after this many validations without a better P@1. 0 disables it.",
        at_least=0,
    )
