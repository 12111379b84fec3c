"""Import models that PECOS (libpecos 1.2) saved.

PECOS stores neither the vectorizer nor the label names with a model: pass both. Nothing is unpickled;
the pickled head of an XR-Transformer is not used for prediction by PECOS either.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from treetop.data.dataset import check_label_count
from treetop.data.files import lines_of
from treetop.data.labelnames import numbered_names
from treetop.data.sizes import LARGEST
from treetop.errors import TreetopError
from treetop.estimators import XRLinear, XRTransformer
from treetop.features.encoders.handle import EncoderHandle
from treetop.features.encoders.opening import TextEncoder, open_encoder
from treetop.features.feature_map import FeatureMap
from treetop.features.words.pecos import PecosWords, no_words
from treetop.interop.pecos_ranker import COSTS, number_of_json, read_json, read_pecos_ranker, section
from treetop.interop.pecos_words import read_words
from treetop.model.model import Model
from treetop.ranking.ranker import Ranker
from treetop.runtime import Runtime
from treetop.runtime.parallel import thread_count
from treetop.runtime.temporary import scratch_folder
from treetop.settings.notation import written_tree
from treetop.settings.schema import LinearSettings, TransformerSettings

Kind = TypeVar("Kind", bound=LinearSettings)


class Family(NamedTuple):
    """How PECOS makes one vector of a text with encoders of a family."""

    pooling: str
    width: str  # the key of the vector's length in the encoder's config.json


FAMILIES = {
    "bert": Family("pooler", "hidden_size"),
    "roberta": Family("pooler", "hidden_size"),
    "xlm-roberta": Family("pooler", "hidden_size"),
    "xlnet": Family("summary", "d_model"),
    "distilbert": Family("cls", "dim"),
}
# PECOS's XLNet: the tanh of the last token, without the projection that XLNet has by default.
SUMMARY = {"summary_type": "last", "summary_use_proj": False, "summary_activation": "tanh"}


def import_model(
    folder: Path, words: Path | None = None, labels: Path | None = None
) -> XRLinear | XRTransformer:
    """Import the model in a folder that PECOS saved.

    Parameters
    ----------
    folder : Path
        Folder of an ``XLinearModel`` or an ``XTransformer``.
    words : Path, optional
        Folder of PECOS's TF-IDF vectorizer, required to predict from texts. Without it, an
        ``XLinearModel`` takes feature matrices, and an ``XTransformer`` texts with ``features=``.
    labels : Path, optional
        File of label names, one per line; by default labels are named by their numbers.

    Returns
    -------
    XRLinear or XRTransformer
    """
    if not folder.is_dir():
        raise TreetopError(f"{folder}: no such folder")
    if (folder / "text_encoder").is_dir():
        return import_transformer(folder, words, labels)
    if (folder / "ranker").is_dir():
        return import_linear(folder, words, labels)
    raise TreetopError(f"{folder}: not a model that PECOS saved: ranker or text_encoder is missing")


def import_linear(folder: Path, words: Path | None, labels: Path | None) -> XRLinear:
    """Import an ``XLinearModel``."""
    ranker, width = read_pecos_ranker(folder / "ranker", 0, thread_count(None))
    feature_map = FeatureMap((width, 0), None if words is None else checked_words(words, width))
    settings = with_ranker(LinearSettings(), ranker)
    return XRLinear.holding(imported_model("xr-linear", settings, ranker, feature_map, labels))


def import_transformer(folder: Path, words: Path | None, labels: Path | None) -> XRTransformer:
    """Import an ``XTransformer``: encoder, tokenizer and the ranker on Φ_cat."""
    inner = folder / "text_encoder"
    file = inner / "text_encoder" / "config.json"
    family, width = read_family(file, read_json(file))
    if not (folder / "concat_model").is_dir():
        raise TreetopError(
            f"{folder}: concat_model is missing: PECOS cannot predict with this model either"
        )
    ranker, sparse = read_pecos_ranker(folder / "concat_model" / "ranker", width, thread_count(None))
    parameters = inner / "param.json"
    predicting = section(parameters, read_json(parameters), "pred_params")
    length = number_of_json(parameters, predicting, "truncate_length", 128)
    settings = replace(
        with_ranker(TransformerSettings(), ranker),
        encoder=str(inner / "text_encoder"),
        pooling=family.pooling,
        max_length=int(length),
        dense_weight=1.0,
        center=False,
    )
    vectoriser = no_words() if not sparse else None  # None: the features are passed with the texts
    feature_map = FeatureMap(
        (sparse, width),
        vectoriser if words is None else checked_words(words, sparse),
        EncoderHandle.holding(read_encoder(inner, settings), settings.max_length, settings.dropout),
        settings.dense_weight,
    )
    return XRTransformer.holding(
        imported_model("xr-transformer", settings, ranker, feature_map, labels)
    )


def read_family(file: Path, config: dict[str, Any]) -> tuple[Family, int]:
    """The family of an encoder, and the length of its vectors."""
    name = str(config.get("model_type"))
    family = FAMILIES.get(name)
    if family is None:
        raise TreetopError(
            f"{file}: encoders of the family {name!r} cannot be imported, only {', '.join(FAMILIES)}"
        )
    width = config.get(family.width)
    if type(width) is not int or not 0 < width < LARGEST:
        raise TreetopError(f"{file}: {family.width} is not a size")
    for key, value in SUMMARY.items() if family.pooling == "summary" else ():
        if config.get(key) != value:
            raise TreetopError(f"{file}: {key} is {config.get(key)!r}, but PECOS trains with {value!r}")
    return family, width


def read_encoder(inner: Path, settings: TransformerSettings) -> TextEncoder:
    """Open the encoder together with the tokenizer, which PECOS keeps in another folder."""
    with scratch_folder("pecos") as folder:
        for part in ("text_tokenizer", "text_encoder"):
            if not (inner / part).is_dir():
                raise TreetopError(f"{inner / part}: missing")
            for file in (inner / part).iterdir():
                shutil.copy(file, folder)
        take_as_saved(folder)
        return open_encoder(
            str(folder),
            Runtime(precision="fp32"),
            pooling=settings.pooling,
            max_length=settings.max_length,
            dropout=settings.dropout,
            to_learn=False,
        )


def take_as_saved(folder: Path) -> None:
    """Have transformers read tokenizer.json as it is.

    From version 5 on it builds the tokenizers of some families anew, with the pieces alone: XLNet's
    would lose the token of a space at the end of a text.
    """
    file = folder / "tokenizer_config.json"
    if file.is_file() and (folder / "tokenizer.json").is_file():
        config = {**read_json(file), "tokenizer_class": "PreTrainedTokenizerFast"}
        file.write_text(json.dumps(config), "utf-8")


def checked_words(folder: Path, width: int) -> PecosWords:
    """Read the vectorizer and check that it has as many features as the model."""
    words = read_words(folder)
    if words.features != width:
        raise TreetopError(f"{folder}: {words.features:,} features, but the model has {width:,}")
    return words


def with_ranker(settings: Kind, ranker: Ranker) -> Kind:
    """Settings that describe the imported ranker."""
    own = ranker.settings
    return replace(
        settings,
        score_transform=own.score_transform,
        beam=own.beam,
        bias=own.bias,
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
    labels: Path | None,
) -> Model:
    """The model as `fit` would have returned it, except that label counts are unknown (zero)."""
    count = ranker.tree.label_of.size
    names = [str(number) for number in range(count)]
    if labels is not None:
        names = numbered_names(list(lines_of(labels)))
        check_label_count(labels, len(names), count)
    return Model(
        kind=kind,
        settings=settings,
        classes=np.array(names, dtype=object),
        feature_map=feature_map,
        rankers=(Ranker(ranker.tree, ranker.weights, settings.ranker()),),
        label_counts=np.zeros(count, np.int64),
        train_documents=0,
    )
