"""Models that PECOS (libpecos 1.2) saved, as models of treetop.

PECOS stores neither the vectoriser nor the label names with a model: both can be given. Nothing is
unpickled; the pickled head of an XR-Transformer takes no part in its predictions.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from treetop.data.dataset import check_label_names
from treetop.data.files import lines_of
from treetop.errors import TreetopError
from treetop.estimators import XRLinear, XRTransformer
from treetop.features.encoders.handle import EncoderHandle
from treetop.features.encoders.opening import TextEncoder, open_encoder
from treetop.features.feature_map import FeatureMap
from treetop.features.words.pecos import PecosWords, no_words
from treetop.interop.pecos_ranker import COSTS, read_json, read_pecos_ranker
from treetop.interop.pecos_words import read_words
from treetop.model.model import Model
from treetop.ranking.ranker import Ranker
from treetop.runtime import Runtime
from treetop.runtime.parallel import thread_count
from treetop.settings.notation import written_tree
from treetop.settings.schema import LinearSettings, TransformerSettings

Kind = TypeVar("Kind", bound=LinearSettings)
# Families whose vector in PECOS is the pooler's; others have weights of their own between.
POOLED = ("bert", "roberta", "xlm-roberta")


def import_model(
    folder: Path, words: Path | None = None, labels: Path | None = None
) -> XRLinear | XRTransformer:
    """XRLinear or XRTransformer, whichever PECOS saved in `folder`.

    `words`: folder of PECOS's TF-IDF, to predict from texts. `labels`: names, one per line.
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
    ranker, width = read_pecos_ranker(folder / "ranker", 0, thread_count(None))
    feature_map = FeatureMap((width, 0), None if words is None else checked_words(words, width))
    return XRLinear.holding(
        imported_model(
            "xr-linear", with_ranker(LinearSettings(), ranker), ranker, feature_map, names, folder
        )
    )


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
    ranker, sparse = read_pecos_ranker(folder / "concat_model" / "ranker", width, thread_count(None))
    if sparse and words is None:
        raise TreetopError(
            f"{folder}: the model reads {sparse:,} word features alongside the encoder: give the "
            "folder of its TF-IDF (--words)"
        )
    length = read_json(inner / "param.json").get("pred_params", {}).get("truncate_length", 128)
    settings = replace(
        with_ranker(TransformerSettings(), ranker),
        encoder=str(inner / "text_encoder"),
        pooling="pooler",
        max_length=int(length),
        dense_weight=1.0,
        center=False,
    )
    feature_map = FeatureMap(
        (sparse, width),
        no_words() if words is None else checked_words(words, sparse),
        EncoderHandle.holding(read_encoder(inner, settings), settings.max_length, settings.dropout),
        settings.dense_weight,
    )
    return XRTransformer.holding(
        imported_model("xr-transformer", settings, ranker, feature_map, names, folder)
    )


def read_encoder(inner: Path, settings: TransformerSettings) -> TextEncoder:
    """The encoder, with the tokenizer that PECOS keeps in another folder."""
    with tempfile.TemporaryDirectory() as both:
        for part in ("text_tokenizer", "text_encoder"):
            if not (inner / part).is_dir():
                raise TreetopError(f"{inner / part}: missing")
            for file in (inner / part).iterdir():
                shutil.copy(file, both)
        return open_encoder(
            both,
            Runtime(precision="fp32"),
            pooling=settings.pooling,
            max_length=settings.max_length,
            dropout=settings.dropout,
            to_learn=False,
        )


def checked_words(folder: Path, width: int) -> PecosWords:
    """The vectoriser, if it has as many features as the model reads."""
    words = read_words(folder)
    if words.features != width:
        raise TreetopError(f"{folder}: {words.features:,} features, the model reads {width:,}")
    return words


def with_ranker(settings: Kind, ranker: Ranker) -> Kind:
    """Settings that say how the imported ranker is searched."""
    how = ranker.settings
    return replace(
        settings,
        score_transform=how.score_transform,
        beam=how.beam,
        bias=how.bias,
        trees=1,
        tree=written_tree(ranker.tree.sizes),
        lambda_=COSTS["lambda_"],
        alpha=COSTS["alpha"],
        cost_sensitive=bool(COSTS["cost_sensitive"]),
    )


def imported_model(
    kind: str,
    settings: LinearSettings,
    ranker: Ranker,
    feature_map: FeatureMap,
    names: list[str] | None,
    folder: Path,
) -> Model:
    """The model as `fit` would have left it; how often labels occurred is not known."""
    labels = ranker.tree.label_of.size
    if names is not None:
        check_label_names(folder, names, labels)
    return Model(
        kind=kind,
        settings=settings,
        classes=np.array(names or [str(number) for number in range(labels)], dtype=object),
        feature_map=feature_map,
        rankers=(Ranker(ranker.tree, ranker.weights, settings.ranker()),),
        label_counts=np.zeros(labels, np.int64),
        train_documents=0,
    )
