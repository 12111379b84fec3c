"""Settings of XRLinear: text features, label tree, rankers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from treetop.fields import documented
from treetop.settings.notation import (
    Ngrams,
    names_by_level,
    numbers_by_level,
    parse_tree,
    parse_views,
)
from treetop.settings.parts import RANKER, Analyser, RankerSettings

text = partial(documented, section="Text features")
label_tree = partial(documented, section="Label tree")
ranker = partial(
    documented,
    section="Linear rankers: minimize ½‖w‖² + Σ C·R̂·loss with C = 1/(2 lambda_). "
    "lambda_, alpha, bias, shortlist, beam and score_transform take one value, or one per level "
    "such as 0.5/0.5/0.25 (the labels last; beam without them), or true/.../both to repeat the first",
)
automatic = partial(documented, section="Automatic settings")
general = partial(documented, section="General")

# Factors of the objective beyond these do not fit into float32.
LEAST_FACTOR, LARGEST_FACTOR = 1e-15, 1e15
# The rankers derive seeds of 64 bits from this one.
SEEDS = 2**43

POWERS = tuple(f"l{power}-{shape}" for shape in ("hinge", "ordered") for power in (1, 2, 3, 4))
MULTIPLIED = ("sigmoid", *POWERS)
ADDED = tuple(f"log-{name}" for name in MULTIPLIED)
SCORE_TRANSFORMS = ("auto", "identity", *MULTIPLIED, *ADDED)
# What a competition may maximize.
OBJECTIVES = ("nDCG@5", "P@1", "PSP@5", "macro-F1")
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
        "default (auto), a competition on a part of the training data chooses them.",
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
    lambda_: float | str | None = ranker(
        None,
        "Strength of the L2 regularization, λ in the paper. A larger value makes smaller models that "
        "overfit less. By default, 0.35 divided by the mean number of labels per document if "
        "cost-sensitive, otherwise 0.35.",
        above=0,
        at_least=LEAST_FACTOR,
        below=LARGEST_FACTOR,
        by_level=numbers_by_level("lambda_", float),
    )
    alpha: float | str | None = ranker(
        None,
        "Weight of negative examples, α in the paper. By default, 0.3 if cost-sensitive, otherwise 1.",
        above=0,
        at_least=LEAST_FACTOR,
        below=LARGEST_FACTOR,
        by_level=numbers_by_level("alpha", float),
    )
    cost_sensitive: bool | None = ranker(
        None,
        "Weight the positive labels of each document so that they sum to 1, R̂ in the paper. By "
        "default, enabled unless a few documents have most of the labels.",
    )
    relevance_norm: str = ranker(
        "l1",
        "With cost_sensitive, how the relevances of a document's positive labels are normalized: l1 "
        "divides them by their sum, as in the paper; none keeps the counts, as PECOS's no-norm does.",
        choices=("l1", "none"),
    )
    bias: float | str | None = ranker(
        None,
        "Value of a constant feature that acts as the intercept; 0 disables it. By default, 1 for a "
        "flat tree or for more than 250,000 labels, and 0 otherwise.",
        at_least=0,
        by_level=numbers_by_level("bias", float),
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
    weight_type: str = ranker(
        "auto",
        "Type of the stored weights: float32, or bfloat16 with half as many bits. By default (auto), "
        "bfloat16 for more than 100,000 labels.",
        choices=("auto", "float32", "bfloat16"),
    )
    shortlist: str = ranker(
        "true",
        "Where negative examples come from: true (siblings of the positive labels), beam (labels that "
        "beam search reaches), or both, as in the paper. beam and both take longer to train.",
        choices=("true", "beam", "both"),
        by_level=names_by_level("shortlist"),
    )
    beam: int | str | None = ranker(
        None,
        "Beam width of prediction: the number of nodes kept per level above the labels. A larger value "
        "finds slightly more and takes longer; it can also be changed in predict. By default, 10, or "
        "20 for more than 250,000 labels.",
        at_least=1,
        by_level=numbers_by_level("beam", int),
    )
    score_transform: str = ranker(
        "auto",
        "Function that maps a ranker's raw score to its factor of the label's score. By default "
        "(auto), l3-ordered, or sigmoid for a flat tree.",
        choices=SCORE_TRANSFORMS,
        by_level=names_by_level("score_transform"),
    )
    competition: bool = automatic(
        True,
        "If ngrams is auto, choose the features of each tree by a short competition on a part of the "
        "training data, if that has at least 500 documents. Disable it to train faster: the median "
        "length of the texts then decides.",
    )
    optimize: str = automatic(
        "nDCG@5",
        "Metric that the competition maximizes. PSP@5 and macro-F1 favor rare labels.",
        choices=OBJECTIVES,
    )
    calibration: bool = general(
        True,
        "Fit probabilities and thresholds to a part of the training documents, which a second set of "
        "rankers has not seen. Training takes some 20% longer; the model predicts the same scores. "
        "With more than 100,000 labels, training does not calibrate.",
    )
    keep_documents: bool = general(
        False,
        "Store the beginning of each training document in the model, so that explanations can show "
        "similar documents. Leave it disabled if the texts are confidential.",
    )
    seed: int = general(
        0, "Seed of all random numbers. The same seed gives the same model.", at_least=0, below=SEEDS
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
        values = {name: getattr(self, name) for name in RANKER if hasattr(self, name)}
        if values["beam"] is None:
            del values["beam"]
        return RankerSettings(**values)
