"""What each key of a ``params.json`` of PECOS becomes: settings, or a reason why it has none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from treetop.interop.pecos_ranker import SCORE_NAMES

LOSSES = {
    "L2R_L2LOSS_SVC_DUAL": "squared-hinge",
    "L2R_L1LOSS_SVC_DUAL": "hinge",
    "L2R_LR_DUAL": "logistic",
}
TUNE_LOSSES: dict[str, dict[str, Any]] = {
    "weighted-squared-hinge": {"tune_loss": "squared-hinge", "tune_weighting": "counts"},
    "weighted-hinge": {"tune_loss": "hinge", "tune_weighting": "counts"},
    "squared-hinge": {"tune_loss": "squared-hinge", "tune_weighting": "equal"},
    "hinge": {"tune_loss": "hinge", "tune_weighting": "equal"},
    "cross-entropy": {"tune_loss": "bce", "tune_weighting": "equal"},
}
BOOTSTRAPS: dict[str, dict[str, Any]] = {
    "weighted-linear": {"bootstrap": True, "bootstrap_weighting": "counts"},
    "linear": {"bootstrap": True, "bootstrap_weighting": "equal"},
    "no-bootstrap": {"bootstrap": False},
}
NEGATIVES = {"tfn": "true", "man": "beam", "tfn+man": "both", "man+tfn": "both"}
TUNE_NEGATIVES = {"tfn": "true", "tfn+man": "beam", "man+tfn": "beam"}


@dataclass(frozen=True)
class Rule:
    """How a key is accounted for.

    Either `convert` makes settings of its value, one per level if `by_level`; or it is part of `joint`
    settings, which depend on several keys; or it has none, and `reason` says why. A key that treetop
    fixes at the value `only` is accounted for by `reason` at that value, by `otherwise` at others.
    """

    setting: str = ""
    convert: Callable[[Any], Any] | None = None
    by_level: bool = False
    several: dict[str, dict[str, Any]] | None = None
    joint: tuple[str, ...] = ()
    reason: str = ""
    only: tuple[Any, ...] = ()
    otherwise: str = ""


def setting(name: str, convert: Callable[[Any], Any]) -> Rule:
    """A setting with one value for all levels."""
    return Rule(name, convert)


def levels(name: str, convert: Callable[[Any], Any]) -> Rule:
    """A setting with a value for each level."""
    return Rule(name, convert, by_level=True)


def score_name(value: Any) -> str:
    """The name of a score transform."""
    return SCORE_NAMES.get(value, str(value))


def pooling_of(encoder: str) -> str:
    """How PECOS makes one vector of an encoder's: by its family."""
    if "xlnet" in encoder.lower():
        return "summary"
    return "cls" if "distilbert" in encoder.lower() else "pooler"


MACHINE = "a matter of the machine, not of the method: see `treetop train --help`"
SHOWN = "it concerns what is printed"
COMPLETE = "it would complete an incomplete tree, and that of the indexer is complete"
TREE = ("nr_splits", "min_codes", "max_leaf_size")
FIXED_TREES = {
    "spherical": Rule(
        only=(True,), reason="clusters are always by direction", otherwise="clusters are by direction"
    ),
    "do_sample": Rule(
        only=(False,), reason="clusters are made of all labels", otherwise="labels are not sampled"
    ),
    **dict.fromkeys(
        ("max_sample_rate", "min_sample_rate", "warmup_ratio"),
        Rule(reason="it has no effect unless do_sample is true"),
    ),
    "threads": Rule(reason=MACHINE),
}
RULES: dict[str, dict[str, Rule]] = {
    "preliminary": {
        **dict.fromkeys(TREE, Rule(joint=("first_tree",))),
        "seed": setting("seed", int),
        "kmeans_max_iter": setting("tree_passes", int),
        **FIXED_TREES,
    },
    "indexer": {
        **dict.fromkeys(TREE, Rule(joint=("tree",))),
        "seed": setting("seed", int),
        "kmeans_max_iter": setting("tree_passes", int),
        **FIXED_TREES,
    },
    "matcher": {
        "model_shortcut": Rule(joint=("encoder", "pooling")),
        "negative_sampling": setting("tune_shortlist", TUNE_NEGATIVES.__getitem__),
        "loss_function": Rule(several=TUNE_LOSSES),
        "bootstrap_method": Rule(several=BOOTSTRAPS),
        "lr_schedule": Rule(
            only=("linear",),
            reason="the learning rate always rises and falls linearly",
            otherwise="the learning rate rises and falls linearly",
        ),
        "threshold": setting("matcher_prune_below", float),
        "hidden_dropout_prob": setting("dropout", float),
        **dict.fromkeys(("batch_size", "gradient_accumulation_steps"), Rule(joint=("batch",))),
        **dict.fromkeys(("max_steps", "num_train_epochs"), Rule(joint=("budget",))),
        "warmup_steps": Rule(joint=("warmup",)),
        "max_no_improve_cnt": setting("patience", lambda value: max(0, int(value))),
        "weight_decay": setting("weight_decay", float),
        "max_grad_norm": setting("clip", float),
        "learning_rate": setting("learning_rate", float),
        "adam_epsilon": Rule(
            only=(1e-8,), reason="Adam's epsilon is 1e-8", otherwise="Adam's epsilon is 1e-8"
        ),
        "cost_sensitive_ranker": setting("matcher_cost_sensitive", bool),
        "save_steps": Rule(joint=(), reason="the weights of the last step are kept"),
        "logging_steps": Rule(reason=SHOWN),
        "max_active_matching_labels": Rule(reason="it has no effect in PECOS either"),
        "eval_by_true_shorlist": Rule(reason="it concerns validation alone"),
        **dict.fromkeys(
            (
                "batch_gen_workers",
                "max_num_labels_in_gpu",
                "pre_tokenize",
                "pre_tensorize_labels",
                "use_gpu",
                "checkpoint_dir",
                "cache_dir",
            ),
            Rule(reason=MACHINE),
        ),
        "init_model_dir": Rule(
            only=("",),
            reason="there is no earlier model to start from",
            otherwise="give the folder of its text_encoder as encoder",
        ),
    },
    "matching": {
        "only_topk": levels("tune_beam", int),
        "post_processor": setting("matcher_score_transform", score_name),
        "truncate_length": setting("max_length", int),
        "ensemble_method": Rule(
            only=("concat-only",),
            reason="P comes from the rankers on Φ_cat alone, as in the paper",
            otherwise="P comes from the rankers on Φ_cat alone (concat-only), as in the paper",
        ),
    },
    "train": {
        "do_fine_tune": setting("fine_tune", bool),
        "max_match_clusters": setting("largest_level", int),
        "only_encoder": Rule(
            only=(False,), reason="rankers are always trained", otherwise="rankers are always trained"
        ),
        "fix_clustering": Rule(
            only=(False,),
            reason="the refined tree is always built from Φ_cat",
            otherwise="the refined tree is always built from Φ_cat",
        ),
    },
    "ranker": {
        "mode": Rule(
            only=("full-model",),
            reason="all levels are trained",
            otherwise="all levels are trained (full-model)",
        ),
        "ranker_level": Rule(reason="it has no effect with mode full-model"),
        **dict.fromkeys(("nr_splits", "min_codes", "shallow"), Rule(reason=COMPLETE)),
        **dict.fromkeys(("rel_mode", "rel_norm"), Rule(joint=("cost_sensitive", "relevance_norm"))),
    },
    "negatives": {"neg_mining_chain": levels("shortlist", NEGATIVES.__getitem__)},
    "model": {
        "threshold": setting("prune_below", float),
        "max_nonzeros_per_label": setting("max_weights", lambda value: value),
        "solver_type": setting("loss", LOSSES.__getitem__),
        **dict.fromkeys(("Cp", "Cn"), Rule(joint=("lambda_", "alpha"))),
        "max_iter": setting("passes", int),
        "eps": setting("tolerance", float),
        "bias": levels("bias", lambda value: max(0.0, float(value))),
        "newton_eps": Rule(reason="it has no effect on dual solvers"),
        "threads": Rule(reason=MACHINE),
        "verbose": Rule(reason=SHOWN),
    },
    "search": {
        "only_topk": levels("beam", int),
        "post_processor": levels("score_transform", score_name),
    },
}
