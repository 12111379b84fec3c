"""Names of settings: deprecated ones, and their equivalents in other libraries."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Container, Iterable, Mapping
from typing import Any

from treetop.errors import TreetopError

# Deprecated name → current name. Model folders, presets and calls may still use the former.
RENAMED = {"threshold": "prune_below", "calibrate": "calibration"}
# Another spelling → the name. Both are current.
SPELLINGS = {"optimise": "optimize"}
# Setting → its names in scikit-learn, transformers, PECOS, omikuji and fastText.
FOREIGN = {
    "seed": "random_state random_seed",
    "threads": "n_jobs num_threads n_threads num_workers thread",
    "budget": "epochs epoch n_epochs max_epochs num_train_epochs max_steps steps",
    "cost_sensitive": "class_weight",
    "passes": "max_iter n_iter",
    "tolerance": "tol eps",
    "lambda_": "C Cp lambda l2 reg_lambda",
    "alpha": "Cn",
    "learning_rate": "lr eta",
    "batch": "batch_size per_device_train_batch_size",
    "encoder": "model model_name model_name_or_path model_shortcut",
    "max_length": "max_seq_length truncate_length",
    "ngrams": "ngram_range wordNgrams analyzer",
    "trees": "n_estimators n_trees",
    "tree": "max_depth depth",
    "beam": "beam_size only_topk",
    "leaf": "max_leaf_size",
    "branching": "nr_splits arity",
    "warmup": "warmup_steps warmup_ratio",
    "clip": "max_grad_norm",
    "dropout": "hidden_dropout_prob",
    "sublinear": "sublinear_tf",
    "prune_below": "weight_threshold",
    "precision": "fp16 bf16",
    "device": "use_gpu",
    "patience": "early_stopping_patience",
}
ELSEWHERE = {name: ours for ours, names in FOREIGN.items() for name in names.split()}
OWN_HINTS = {
    "preset": "use XRLinear.from_preset(NAME) or XRTransformer.from_preset(NAME)",
    "k": "the number of labels is an argument of predict",
}


class RenamedSettingWarning(FutureWarning):
    """Warns that a setting was passed by its deprecated name."""


def renamed(values: Mapping[str, Any], stacklevel: int = 2) -> dict[str, Any]:
    """Return `values` by current names, with a warning for each deprecated name.

    A deprecated name together with its current one is an error.
    """
    current = {}
    for name, value in values.items():
        new = RENAMED.get(name) or SPELLINGS.get(name, name)
        notice = f"{name} is now called {new}"
        if new != name and new in values:
            said = notice if name in RENAMED else f"{name} is another spelling of {new}"
            raise TreetopError(f"{said}: give one of them")
        if name in RENAMED:
            warnings.warn(notice, RenamedSettingWarning, stacklevel=stacklevel + 1)
        current[new] = value
    return current


# Characters of an unknown name in a message.
LONGEST_SHOWN = 60


def unknown_name(name: str, known: Iterable[str], of_transformer: Container[str] = ()) -> TreetopError:
    """Return the error for an unknown setting, which suggests a similar one.

    `of_transformer` are the settings of XRTransformer, for the error that names the right class.
    """
    known = list(known)
    shown = repr(name[:LONGEST_SHOWN])
    if name in OWN_HINTS:
        return TreetopError(f"unknown setting {shown}: {OWN_HINTS[name]}")
    suggestion = ELSEWHERE.get(name)
    own = name if name in of_transformer else suggestion
    if own in of_transformer and own not in known:
        return TreetopError(
            f"unknown setting {shown}: {own!r} is a setting of XRTransformer: "
            "use that class, or leave it out"
        )
    if suggestion not in known:
        suggestion = next(iter(difflib.get_close_matches(name, known, 1, 0.6)), None)
    hint = f": did you mean {suggestion!r}?" if suggestion else ": `treetop settings` lists all"
    return TreetopError(f"unknown setting {shown}{hint}")
