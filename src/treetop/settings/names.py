"""Names of settings: those of before, and what other libraries call the same thing."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from treetop.errors import TreetopError

# Old name: today's. Model folders, presets and calls with the old one keep working.
RENAMED = {"threshold": "prune_below"}
# What users of other libraries write: scikit-learn, transformers, PECOS, omikuji, fastText.
ELSEWHERE = {
    "random_state": "seed",
    "random_seed": "seed",
    "n_jobs": "threads",
    "num_threads": "threads",
    "n_threads": "threads",
    "num_workers": "threads",
    "thread": "threads",
    "epochs": "budget",
    "epoch": "budget",
    "n_epochs": "budget",
    "max_epochs": "budget",
    "num_train_epochs": "budget",
    "max_steps": "budget",
    "steps": "budget",
    "class_weight": "cost_sensitive",
    "max_iter": "passes",
    "n_iter": "passes",
    "tol": "tolerance",
    "eps": "tolerance",
    "C": "lambda_",
    "Cp": "lambda_",
    "lambda": "lambda_",
    "l2": "lambda_",
    "reg_lambda": "lambda_",
    "Cn": "alpha",
    "lr": "learning_rate",
    "eta": "learning_rate",
    "batch_size": "batch",
    "per_device_train_batch_size": "batch",
    "model": "encoder",
    "model_name": "encoder",
    "model_name_or_path": "encoder",
    "model_shortcut": "encoder",
    "max_seq_length": "max_length",
    "truncate_length": "max_length",
    "ngram_range": "ngrams",
    "wordNgrams": "ngrams",
    "analyzer": "ngrams",
    "n_estimators": "trees",
    "n_trees": "trees",
    "beam_size": "beam",
    "only_topk": "beam",
    "max_leaf_size": "leaf",
    "nr_splits": "branching",
    "arity": "branching",
    "warmup_steps": "warmup",
    "warmup_ratio": "warmup",
    "max_grad_norm": "clip",
    "hidden_dropout_prob": "dropout",
    "sublinear_tf": "sublinear",
    "weight_threshold": "prune_below",
    "fp16": "precision",
    "bf16": "precision",
    "use_gpu": "device",
    "early_stopping_patience": "patience",
}
OWN_HINTS = {
    "preset": "use XRLinear.from_preset(NAME) or XRTransformer.from_preset(NAME)",
    "k": "the number of labels is an argument of predict",
    "verbose": "progress is shown by runtime=Runtime(reporter=…) in fit",
}


def unknown_name(name: str, known: Iterable[str]) -> TreetopError:
    """The error for a setting that does not exist, with the one that was probably meant."""
    known = list(known)
    if name in OWN_HINTS:
        return TreetopError(f"unknown setting {name!r}: {OWN_HINTS[name]}")
    meant = ELSEWHERE.get(name)
    if meant not in known:
        near = difflib.get_close_matches(name, known, 1, 0.6)
        meant = near[0] if near else None
    hint = f": did you mean {meant!r}?" if meant else ""
    return TreetopError(f"unknown setting {name!r}{hint}")
