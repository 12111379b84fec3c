"""Convert a ``params.json`` of PECOS to settings, with a reason for every key that is ignored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from treetop.errors import TreetopError
from treetop.interop.pecos_ranker import COSTS, SCORE_NAMES, read_json
from treetop.settings.making import make_settings
from treetop.settings.schema import LinearSettings, TransformerSettings

LOSSES = {
    "L2R_L2LOSS_SVC_DUAL": "squared-hinge",
    "L2R_L1LOSS_SVC_DUAL": "hinge",
    "L2R_LR_DUAL": "logistic",
}
TUNE_LOSSES = {"squared-hinge": "squared-hinge", "hinge": "hinge", "cross-entropy": "bce"}
SHORTLISTS = {"tfn": "true", "man": "beam", "tfn+man": "both"}
# Section and key of PECOS -> setting, and the function that converts the value.
Convert = Callable[[Any], Any]
RANKER: dict[str, tuple[str, Convert]] = {
    "model_chain.threshold": ("prune_below", float),
    "model_chain.max_nonzeros_per_label": ("max_weights", lambda value: value),
    "model_chain.solver_type": ("loss", lambda value: LOSSES[value]),
    "model_chain.max_iter": ("passes", int),
    "model_chain.eps": ("tolerance", float),
    "model_chain.bias": ("bias", lambda value: max(0.0, float(value))),
    "model_chain.only_topk": ("beam", int),
    "model_chain.post_processor": ("score_transform", lambda value: SCORE_NAMES.get(value, value)),
    "hlm_args.neg_mining_chain": ("shortlist", lambda value: SHORTLISTS[value]),
    "train_params.rel_mode": ("cost_sensitive", lambda value: value != "disable"),
    "ranker_params.rel_mode": ("cost_sensitive", lambda value: value != "disable"),
    "indexer_params.nr_splits": ("branching", int),
    "indexer_params.max_leaf_size": ("leaf", int),
    "indexer_params.kmeans_max_iter": ("tree_passes", int),
    "indexer_params.seed": ("seed", int),
}
MATCHER: dict[str, tuple[str, Convert]] = {
    "matcher_params_chain.model_shortcut": ("encoder", str),
    "matcher_params_chain.loss_function": ("tune_loss", lambda value: TUNE_LOSSES[value]),
    "matcher_params_chain.bootstrap_method": ("bootstrap", lambda value: value == "linear"),
    "matcher_params_chain.hidden_dropout_prob": ("dropout", float),
    "matcher_params_chain.weight_decay": ("weight_decay", float),
    "matcher_params_chain.max_grad_norm": ("clip", float),
    "matcher_params_chain.learning_rate": ("learning_rate", float),
    "matcher_params_chain.cost_sensitive_ranker": ("tune_cost_sensitive", bool),
    "matcher_params_chain.only_topk": ("tune_beam", int),
    "matcher_params_chain.truncate_length": ("max_length", int),
    "train_params.do_fine_tune": ("fine_tune", bool),
    "train_params.max_match_clusters": ("largest_level", int),
}
JOINTLY = (
    "model_chain.Cp",
    "model_chain.Cn",
    "matcher_params_chain.batch_size",
    "matcher_params_chain.gradient_accumulation_steps",
    "matcher_params_chain.max_steps",
    "matcher_params_chain.num_train_epochs",
    "matcher_params_chain.warmup_steps",
)
# Why keys without a counterpart are ignored.
REASONS = {
    "max_active_matching_labels": "it has no effect in PECOS either",
    "preliminary_indexer_params": "the preliminary tree is chosen by first_tree",
    "negative_sampling": "fine-tuning always shortlists the beam and the true parents",
    "ensemble_method": "P comes from the ranker on words and encoder, as in the paper",
    "threads": "set threads when you train",
    "use_gpu": "set device when you train",
}
# Keys that PECOS reads and treetop has no setting for.
PECOS_KEYS = {
    "nr_splits",
    "min_codes",
    "max_leaf_size",
    "spherical",
    "seed",
    "kmeans_max_iter",
    "threads",
    "do_sample",
    "max_sample_rate",
    "min_sample_rate",
    "warmup_ratio",
    "negative_sampling",
    "lr_schedule",
    "threshold",
    "batch_gen_workers",
    "max_active_matching_labels",
    "use_gpu",
    "max_num_labels_in_gpu",
    "max_no_improve_cnt",
    "adam_epsilon",
    "logging_steps",
    "save_steps",
    "pre_tokenize",
    "pre_tensorize_labels",
    "eval_by_true_shorlist",
    "checkpoint_dir",
    "cache_dir",
    "init_model_dir",
    "mode",
    "ranker_level",
    "shallow",
    "rel_norm",
    "verbose",
    "newton_eps",
    "only_encoder",
    "fix_clustering",
    "post_processor",
    "ensemble_method",
    "beam_size",
    "only_topk",
    "max_steps",
    "num_train_epochs",
}


class ImportedParams(NamedTuple):
    """The kind of model, its settings, and the ignored keys with the reason for each."""

    model: str
    settings: dict[str, Any]
    ignored: dict[str, str]


def read_params(path: Path) -> ImportedParams:
    """Read the ``params.json`` of an XR-Linear or XR-Transformer model."""
    values = dict(leaves(read_json(path), ()))
    if not any(key[0] in ("train_params", "pred_params", "indexer_params") for key in values):
        raise TreetopError(f"{path}: not a params.json of PECOS: train_params is missing")
    transformer = any("matcher_params_chain" in key for key in values)
    known = RANKER | (MATCHER if transformer else {})
    settings: dict[str, Any] = {}
    ignored: dict[str, str] = {}
    joint: dict[str, Any] = {}
    for key, value in values.items():
        section = section_of(key)
        if section in JOINTLY:
            joint[section.split(".")[1]] = value
        elif section not in known:
            ignored[".".join(key)] = reason(key)
        elif value is not None:
            setting, convert = known[section]
            settings[setting] = converted(path, key, value, convert)
    settings |= joint_settings(joint, transformer)
    # Defaults of PECOS.
    if transformer:
        own = {f"tune_{name.rstrip('_')}": value for name, value in COSTS.items()}
        settings = {**own, **settings, "head_learning_rate": None, "tune_shortlist": "beam"}
    settings = {**COSTS, **settings}
    make_settings(settings, TransformerSettings if transformer else LinearSettings)
    return ImportedParams("xr-transformer" if transformer else "xr-linear", settings, ignored)


def leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every value with its path; a chain, one object per level, becomes lists of values."""
    if isinstance(value, list) and value and all(isinstance(level, dict) for level in value):
        merged = {name: [level.get(name) for level in value] for name in value[0] if name != "__meta__"}
        value = {name: vs[0] if all(v == vs[0] for v in vs) else vs for name, vs in merged.items()}
    if isinstance(value, dict):
        for name, inner in value.items():
            if name != "__meta__":
                yield from leaves(inner, (*path, name))
    else:
        yield path, value


def section_of(key: tuple[str, ...]) -> str:
    """The section that holds a key, and the key, joined by a dot."""
    section = key[-2] if len(key) > 1 else ""
    return f"{section.removeprefix('refined_')}.{key[-1]}"


def reason(key: tuple[str, ...]) -> str:
    """Why a key is ignored."""
    if key[-1] not in PECOS_KEYS:
        return "PECOS silently ignores it too"
    return next((text for part, text in REASONS.items() if part in key), "no counterpart")


def converted(path: Path, key: tuple[str, ...], value: Any, convert: Convert) -> Any:
    """Convert a value, or the last of a list of values by level, to that of the setting."""
    try:
        return convert(value[-1] if isinstance(value, list) else value)
    except (KeyError, ValueError, TypeError):
        raise TreetopError(
            f"{path}: {'.'.join(key)} is {value!r}, which treetop does not support"
        ) from None


def joint_settings(joint: dict[str, Any], transformer: bool) -> dict[str, Any]:
    """Settings that depend on several keys."""
    settings: dict[str, Any] = {}

    def last(name: str, default: Any) -> Any:
        value = joint.get(name, default)
        return value[-1] if isinstance(value, list) else value

    if "Cp" in joint or "Cn" in joint:
        # ½‖w‖² + C Σ loss is Σ loss + λ‖w‖² with C = 1/(2λ)
        positive, negative = float(last("Cp", 1.0)), float(last("Cn", 1.0))
        settings |= {"lambda_": 1 / (2 * positive), "alpha": negative / positive}
    if not transformer:
        return settings
    if "batch_size" in joint:
        settings["batch"] = int(last("batch_size", 8)) * int(last("gradient_accumulation_steps", 1))
    steps = joint.get("max_steps")
    if steps and steps != [0]:
        by_level = steps if isinstance(steps, list) else [steps]
        settings["budget"] = "/".join(map(str, by_level)) + " steps"
        if warmup := last("warmup_steps", 0):
            settings["warmup"] = min(0.9, warmup / by_level[-1])
    elif "num_train_epochs" in joint:
        settings["budget"] = f"{last('num_train_epochs', 5)} epochs"
    return settings
