"""Convert a ``params.json`` of PECOS to settings, with a reason for every key that has none.

PECOS leaves out much that is a setting here: `FIXED` has the values that it uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from treetop.errors import TreetopError
from treetop.interop.pecos_keys import RULES, TREE, Rule, pooling_of
from treetop.interop.pecos_ranker import read_json
from treetop.settings.making import make_settings
from treetop.settings.schema import LinearSettings, TransformerSettings

# Defaults of PECOS for keys that a file may leave out.
DEFAULTS: dict[str, Any] = {
    "lambda_": 0.5,
    "alpha": 1.0,
    "cost_sensitive": False,
    "bias": 1.0,
    "passes": 100,
    "tolerance": 0.1,
    "prune_below": 0.1,
    "shortlist": "true",
    "beam": 20,
    "score_transform": "l3-hinge",
}
# What PECOS does without a key for it. It reads features; `ngrams` are those of its own TF-IDF.
FIXED: dict[str, Any] = {
    "ngrams": "word:1-2",
    "max_features": None,
    "label_features": "pifa-pecos",
    "tree_features": None,
    "balanced": True,
    "trees": 1,
    "flat_labels": 0,
    "competition": False,
    "calibration": False,
}
FIXED_TRANSFORMER: dict[str, Any] = {
    "words": True,
    "dense_weight": 1.0,
    "center": False,
    "head_share": 0.0,
    "precision": "fp32",
    "head_learning_rate": None,
    "clip_separately": True,
    "max_length": 128,
    "tune_loss": "squared-hinge",
    "tune_weighting": "equal",
    "tune_beam": 20,
    "tune_shortlist": "true",
    "bootstrap_weighting": "equal",
    "bootstrap_first": False,
    "bootstrap_lambda": 0.005,  # Cp = 100
    "bootstrap_alpha": 1.0,  # Cn = 100
    "bootstrap_passes": 100,
    "bootstrap_tolerance": 0.1,
    "matcher_lambda": 0.5,  # Cp = 1
    "matcher_alpha": 1.0,  # Cn = 1
    "matcher_cost_sensitive": False,
    "matcher_prune_below": 0.1,
    "matcher_score_transform": "identity",
    "matcher_bias": 1.0,
    "matcher_passes": 100,
    "matcher_tolerance": 0.1,
}


class ImportedParams(NamedTuple):
    """The kind of model and its settings; every key is either in `honoured` or in `ignored`."""

    model: str
    settings: dict[str, Any]
    honoured: dict[str, tuple[str, ...]]  # key → the settings that follow from it
    ignored: dict[str, str]  # key → the reason why it has none


class Key(NamedTuple):
    """A key of the file: its section in `RULES`, its name and its values by level."""

    path: str
    section: str
    name: str
    values: tuple[Any, ...]  # a single one, unless the file has a list with a value per level


def read_params(path: Path, devices: int = 1) -> ImportedParams:
    """Read the ``params.json`` of an XR-Linear or XR-Transformer model.

    PECOS's batch size is that of one device: it is multiplied by `devices`.
    """
    keys = [key_of(names, values) for names, values in leaves(read_json(path), ())]
    if not any(key.path.startswith(("train_params", "pred_params", "indexer_params")) for key in keys):
        raise TreetopError(f"{path}: not a params.json of PECOS: train_params is missing")
    transformer = any(key.section in ("matcher", "matching") for key in keys)
    overridden = length_of(keys)
    made: dict[str, Any] = {}
    source: dict[str, str] = {}
    honoured: dict[str, tuple[str, ...]] = {}
    ignored: dict[str, str] = {}
    for key in keys:
        rule = RULES.get(key.section, {}).get(key.name)
        own = {} if rule is None else settings_of_key(path, key, rule)
        taken = [name for name in own if made.get(name, own[name]) != own[name]]
        if taken:
            ignored[key.path] = f"{taken[0]} is that of {source[taken[0]]}"
        elif key.name in overridden:
            ignored[key.path] = f"{overridden[key.name]} decides"
        elif own or (rule is not None and rule.joint):
            made |= own
            source |= dict.fromkeys(own, key.path)
            honoured[key.path] = tuple(own) or rule.joint if rule else ()
        else:
            ignored[key.path] = reason(key, rule)
    joint = joint_settings(path, {(key.section, key.name): key for key in keys}, devices, transformer)
    settings = {**DEFAULTS, **FIXED, **(FIXED_TRANSFORMER if transformer else {}), **made, **joint}
    kind = TransformerSettings if transformer else LinearSettings
    make_settings({name: value for name, value in settings.items() if name != "precision"}, kind)
    return ImportedParams("xr-transformer" if transformer else "xr-linear", settings, honoured, ignored)


def length_of(keys: Sequence[Key]) -> dict[str, str]:
    """Return which of ``max_steps`` and ``num_train_epochs`` has no effect, and the other one."""
    steps = max((max(key.values) for key in keys if key.name == "max_steps"), default=0)
    names = ("max_steps", "num_train_epochs")
    kept, idle = names if steps > 0 else names[::-1]
    return {idle: kept}


def leaves(value: object, names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], tuple[Any, ...]]]:
    """Yield every key with its values; a chain, a list with an entry per level, has one per level."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "__meta__":
                continue
            if name.endswith("_chain") and isinstance(inner, list) and inner:
                yield from chain_leaves(inner, (*names, name))
            else:
                yield from leaves(inner, (*names, name))
    else:
        yield names, (value,)


def chain_leaves(
    levels: list[Any], names: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], tuple[Any, ...]]]:
    """Yield the keys of a chain with their values by level."""
    if not all(isinstance(level, dict) for level in levels):
        yield names, tuple(levels)
        return
    for name in dict.fromkeys(name for level in levels for name in level if name != "__meta__"):
        yield (*names, name), tuple(level.get(name) for level in levels)


def key_of(names: tuple[str, ...], values: tuple[Any, ...]) -> Key:
    """Find the section of a key by the names above it."""
    above, name = names[:-1], names[-1]
    predicting = names[0] == "pred_params"
    section = ""
    if name == "neg_mining_chain":
        section = "negatives"
    elif "model_chain" in above:
        section = "search" if predicting else "model"
    elif "matcher_params_chain" in above:
        section = "matching" if predicting else "matcher"
    elif "preliminary_indexer_params" in above:
        section = "preliminary"
    elif above and above[-1] in ("refined_indexer_params", "indexer_params"):
        section = "indexer"
    elif above == ("train_params",):
        section = "train" if name in RULES["train"] else "ranker"
    elif above == ("train_params", "ranker_params"):
        section = "ranker"
    return Key(".".join(names), section, name, values)


def settings_of_key(path: Path, key: Key, rule: Rule) -> dict[str, Any]:
    """Return the settings that follow from a key alone."""
    try:
        if rule.several is not None:
            return rule.several[single(path, key)]
        if rule.convert is None:
            return {}
        if not rule.by_level:
            return {rule.setting: rule.convert(single(path, key))}
        values = key.values
        if rule.setting == "beam" and len(values) > 1:
            values = values[:-1]  # the last is the number of labels to return
        return {rule.setting: written_by_level([rule.convert(value) for value in values])}
    except (KeyError, ValueError, TypeError):
        raise unsupported(path, key) from None


def unsupported(path: Path, key: Key) -> TreetopError:
    """Return the error for values that have no counterpart."""
    value = key.values[0] if len(key.values) == 1 else list(key.values)
    return TreetopError(f"{path}: {key.path} is {value!r}, which treetop does not support")


def single(path: Path, key: Key) -> Any:
    """Return the value of a key that must be the same on all levels."""
    if any(value != key.values[0] for value in key.values):
        raise unsupported(path, key)
    return key.values[0]


def written_by_level(values: Sequence[Any]) -> Any:
    """Return the value of all levels, or else one per level in the notation of settings."""
    if all(value == values[0] for value in values):
        return values[0]
    return "/".join(map(str, values))


def reason(key: Key, rule: Rule | None) -> str:
    """Say why a key has no setting."""
    if rule is None:
        return "PECOS silently ignores it too"
    if rule.only and any(value not in rule.only for value in key.values):
        return f"{rule.otherwise}; {key.values[0]!r} is not supported"
    return rule.reason


def joint_settings(
    path: Path, keys: dict[tuple[str, str], Key], devices: int, transformer: bool
) -> dict[str, Any]:
    """Return the settings that depend on several keys; what is missing has PECOS's default."""

    def values(section: str, name: str, default: object) -> tuple[Any, ...]:
        key = keys.get((section, name))
        return (default,) if key is None else key.values

    def one(section: str, name: str, default: object) -> Any:
        key = keys.get((section, name))
        return default if key is None else single(path, key)

    def tree(section: str) -> str:
        splits, top, leaf = (one(section, name, None) for name in TREE)
        splits = splits or 16
        return f"pecos:nr_splits={splits},min_codes={top or splits},max_leaf_size={leaf or 100}"

    settings: dict[str, Any] = {"tree": tree("indexer")}
    settings |= pecos_costs(values("model", "Cp", 1.0), values("model", "Cn", 1.0))
    mode, norm = one("ranker", "rel_mode", "disable"), one("ranker", "rel_norm", "no-norm")
    settings["cost_sensitive"] = mode == "induce"
    if mode == "induce":
        if norm not in ("l1", "no-norm", None):
            raise unsupported(path, keys["ranker", "rel_norm"])
        settings["relevance_norm"] = "l1" if norm == "l1" else "none"
    if not transformer:
        return settings
    encoder = str(one("matcher", "model_shortcut", "bert-base-cased"))
    batch = int(one("matcher", "batch_size", 8)) * int(one("matcher", "gradient_accumulation_steps", 1))
    steps = values("matcher", "max_steps", 0)
    epochs = values("matcher", "num_train_epochs", 5)
    return settings | {
        "first_tree": tree("preliminary"),
        "encoder": encoder,
        "pooling": pooling_of(encoder),
        "batch": batch * devices,
        "budget": f"{figures_by_level(steps)} steps"
        if max(steps) > 0
        else f"{figures_by_level(epochs)} epochs",
        "warmup": f"{written_by_level(values('matcher', 'warmup_steps', 0))} steps",
    }


def figures_by_level(values: Sequence[int]) -> str:
    """Write a figure per level: a single one is that of every level."""
    return "/".join(map(str, values)) if len(values) > 1 else f"{values[0]}/..."


def pecos_costs(positive: Sequence[float], negative: Sequence[float]) -> dict[str, Any]:
    """Convert Cp and Cn: ½‖w‖² + C Σ loss is Σ loss + λ‖w‖² with C = 1/(2λ), and Cn is α Cp."""
    count = max(len(positive), len(negative))
    pairs = [(positive[at % len(positive)], negative[at % len(negative)]) for at in range(count)]
    return {
        "lambda_": written_by_level([1 / (2 * float(p)) for p, _ in pairs]),
        "alpha": written_by_level([float(n) / float(p) for p, n in pairs]),
    }
