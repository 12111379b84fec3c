"""Models that PECOS (libpecos 1.2) saved, as models of treetop.

PECOS stores neither the vectoriser nor the label names with a model: both can be given. Nothing is
unpickled; the pickled head of an XR-Transformer takes no part in its predictions.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from treetop.data.dataset import check_label_names
from treetop.data.files import lines_of
from treetop.errors import TreetopError
from treetop.estimators import XRLinear, XRTransformer
from treetop.features.words.pecos import PecosWords, no_words, read_words
from treetop.interop.pecos_ranker import COSTS, read_json, read_ranker
from treetop.ranking.ranker import Ranker
from treetop.runtime.parallel import thread_count
from treetop.settings.schema import LinearSettings, TransformerSettings

# Families whose vector in PECOS is the pooler's; others have weights of their own between.
POOLED = ("bert", "roberta", "xlm-roberta")


def import_model(folder: Path, words: Path | None = None, labels: Path | None = None) -> Any:
    """XRLinear or XRTransformer, whichever PECOS saved in `folder`.

    `words`: folder of PECOS's TF-IDF, to predict from texts. `labels`: names, a line each.
    """
    if not folder.is_dir():
        raise TreetopError(f"{folder}: no such folder")
    names = list(lines_of(labels)) if labels is not None else None
    if (folder / "text_encoder").is_dir():
        return import_transformer(folder, words, names)
    if (folder / "ranker").is_dir():
        return import_linear(folder, words, names)
    raise TreetopError(f"{folder}: no model that PECOS saved: ranker or text_encoder is missing")


def import_linear(folder: Path, words: Path | None, names: list[str] | None) -> XRLinear:
    """PECOS's XLinearModel."""
    ranker, width = read_ranker(folder / "ranker", 0, thread_count(None))
    settings = with_ranker(LinearSettings(), ranker)
    model = XRLinear(**differing(settings))
    model.tfidf_ = None if words is None else checked_words(words, width)
    return filled(model, settings, ranker, (width, 0), names, folder)


def import_transformer(folder: Path, words: Path | None, names: list[str] | None) -> XRTransformer:
    """PECOS's XTransformer: encoder, tokenizer and the ranker on Φ_cat."""
    inner = folder / "text_encoder"
    config = read_json(inner / "text_encoder" / "config.json")
    family = config.get("model_type")
    if family not in POOLED:
        raise TreetopError(
            f"{folder}: encoders of the family {family!r} cannot be imported, only {', '.join(POOLED)}"
        )
    if not (folder / "concat_model").is_dir():
        raise TreetopError(f"{folder}: it has no concat_model: PECOS cannot predict with it either")
    width = int(config["hidden_size"])
    ranker, sparse = read_ranker(folder / "concat_model" / "ranker", width, thread_count(None))
    length = read_json(inner / "param.json").get("pred_params", {}).get("truncate_length", 128)
    settings = replace(
        with_ranker(TransformerSettings(), ranker),
        encoder=str(inner / "text_encoder"),
        pooling="pooler",
        max_length=int(length),
        dense_weight=1.0,
        center=False,
        precision="fp32",
    )
    model = XRTransformer(**differing(settings))
    if sparse and words is None:
        raise TreetopError(
            f"{folder}: the model reads {sparse:,} word features beside the encoder: give the folder "
            "of its TF-IDF (--words)"
        )
    vectoriser: Any = no_words() if words is None else checked_words(words, sparse)
    model.tfidf_ = vectoriser
    model.center_, model.history_ = None, []
    model.encoder_ = read_encoder(inner, settings)
    return filled(model, settings, ranker, (sparse, width), names, folder)


def read_encoder(inner: Path, settings: TransformerSettings) -> Any:
    """The encoder, with the tokenizer that PECOS keeps in another folder."""
    from treetop.features.encoders.opening import open_encoder

    with tempfile.TemporaryDirectory() as both:
        for part in ("text_tokenizer", "text_encoder"):
            if not (inner / part).is_dir():
                raise TreetopError(f"{inner / part}: missing")
            for file in (inner / part).iterdir():
                shutil.copy(file, both)
        return open_encoder(
            both,
            settings.pooling,
            settings.max_length,
            settings.dropout,
            settings.device,
            settings.precision,
            to_learn=False,
        )


def checked_words(folder: Path, width: int) -> Any:
    """The vectoriser, if it has as many features as the model reads."""
    made: PecosWords = read_words(folder)
    if made.features != width:
        raise TreetopError(f"{folder}: {made.features:,} features, the model reads {width:,}")
    return made


def with_ranker(settings: Any, ranker: Ranker) -> Any:
    """Settings that say how the imported ranker is searched."""
    how = ranker.settings
    return replace(
        settings,
        score_transform=how.score_transform,
        beam=how.beam,
        bias=how.bias,
        trees=1,
        tree=str(ranker.tree).rpartition("-")[0] + "-L" if ranker.tree.depth > 1 else "flat",
        **COSTS,
    )


def differing(settings: Any) -> dict[str, Any]:
    """Settings that are not the default."""
    plain = type(settings)()
    return {name: value for name, value in vars(settings).items() if value != getattr(plain, name)}


def filled(
    model: Any,
    settings: Any,
    ranker: Ranker,
    widths: tuple[int, int],
    names: list[str] | None,
    folder: Path,
) -> Any:
    """The model with all that `fit` would have left; how often labels occurred is not known."""
    labels = ranker.tree.label_of.size
    if names is not None:
        check_label_names(folder, names, labels)
    model.settings_, model.rankers_ = settings, [Ranker(ranker.tree, ranker.weights, settings.ranker())]
    model.classes_ = np.array(names or [str(number) for number in range(labels)], dtype=object)
    model.feature_widths_, model.n_features_in_ = widths, sum(widths)
    model.train_counts_, model.train_documents_ = np.zeros(labels, np.int64), 0
    model.documents_ = None
    return model
