"""A model as a folder: names, words, trees, weights, and a card for people."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from treetop.errors import TreetopError
from treetop.features.words.tfidf import Tfidf
from treetop.labels.tree import Tree
from treetop.model import layout as store
from treetop.model.card import card
from treetop.model.documents import KeptDocuments
from treetop.ranking.packing import pack, unpack
from treetop.ranking.ranker import Ranker
from treetop.ranking.weights import Weights
from treetop.runtime.files import replacing_folder
from treetop.runtime.parallel import thread_count
from treetop.settings.schema import LinearSettings, make_settings, to_json


def write_model(model: Any, folder: Path, measured: dict[str, Any] | None) -> None:
    """Write what both kinds of estimators have, and what only this kind has."""
    with replacing_folder(folder, store.check_target) as target:
        names = "".join(f"{name}\n" for name in model.classes_)
        (target / "labels.txt").write_text(names, encoding="utf-8", newline="")
        if model.tfidf_ is not None:
            store.write_arrays(target / "tfidf.safetensors", model.tfidf_.arrays())
        shape = {"train_counts": model.train_counts_}
        weights: dict[str, np.ndarray] = {}
        for number, ranker in enumerate(model.rankers_):
            shape |= store.prefixed(str(number), ranker.tree.arrays())
            plain = ranker.storage == "float32"
            saved = ranker.weights.arrays if plain else pack(ranker.weights, ranker.storage)
            weights |= store.prefixed(str(number), saved)
        store.write_arrays(target / "tree.safetensors", shape)
        store.write_arrays(target / "ranker.safetensors", weights)
        if model.documents_ is not None:
            store.write_arrays(target / "documents.safetensors", model.documents_.arrays)
        model.save_more(target)
        facts = facts_of(model, measured)
        store.write_card(target, card(facts))
        store.write_config(target, facts)


def facts_of(model: Any, measured: dict[str, Any] | None) -> dict[str, Any]:
    """What config.json and the card say."""
    return {
        "model": model.kind,
        "settings": to_json(model.settings_),
        "trees": [str(ranker.tree) for ranker in model.rankers_],
        "storage": model.rankers_[0].storage,
        "text": False if model.tfidf_ is None else model.tfidf_.kind,
        "feature_widths": list(model.feature_widths_),
        "train_documents": model.train_documents_,
        "labels": len(model.classes_),
        "data": {
            "labels_a_document": model.train_counts_.sum() / max(1, model.train_documents_),
            "labels_of_one": int((model.train_counts_ == 1).sum()),
            "most_frequent": int(model.train_counts_.max(initial=0)),
        },
        "metrics": measured or {},
    }


def read_model(kind: Any, folder: Path, verify: bool | None) -> Any:
    """The model of a kind in a folder. Weights stay on disk until they are needed."""
    config = store.read_config(folder, verify)
    if config.get("model") != kind.kind:
        raise TreetopError(f"{folder}: holds the model {config.get('model')!r}, not {kind.kind!r}")
    settings = make_settings(config["settings"], kind.settings_type)
    model = kind(**{one.name: getattr(settings, one.name) for one in fields(settings)})
    names = (folder / "labels.txt").read_bytes().decode("utf-8").split("\n")[:-1]
    model.classes_ = np.array(names, dtype=object)
    arrays = store.read_arrays(folder / "ranker.safetensors")
    shape = store.read_arrays(folder / "tree.safetensors")
    storage = config.get("storage", "float32")
    model.rankers_ = [
        read_ranker(store.part(shape, str(number)), store.part(arrays, str(number)), settings, storage)
        for number in range(len(config["trees"]))
    ]
    model.tfidf_ = None
    if config["text"]:
        learned = store.read_arrays(folder / "tfidf.safetensors")
        model.tfidf_ = read_vectoriser(config["text"], learned, settings)
    model.feature_widths_ = tuple(config["feature_widths"])
    model.n_features_in_ = sum(model.feature_widths_)
    model.train_counts_ = shape["train_counts"]
    model.train_documents_ = config["train_documents"]
    model.settings_, model.documents_ = settings, None
    if (folder / "documents.safetensors").is_file():
        model.documents_ = KeptDocuments(store.read_arrays(folder / "documents.safetensors"))
    model.load_more(folder)
    return model


def read_ranker(
    shape: dict[str, np.ndarray], arrays: dict[str, np.ndarray], settings: LinearSettings, storage: str
) -> Ranker:
    """A tree and its weights, unpacked if they are packed."""
    tree = Tree.from_arrays(shape)
    plain = storage == "float32"
    weights = Weights(**arrays) if plain else unpack(arrays, tree, thread_count(settings.threads))
    return Ranker(tree, weights, settings.ranker(), storage)


def read_vectoriser(kind: Any, learned: dict[str, np.ndarray], settings: LinearSettings) -> Any:
    """What makes features of texts: ours, or one that was imported."""
    if kind == "pecos":
        from treetop.features.words.pecos import PecosWords

        return PecosWords.from_arrays(learned)
    return Tfidf.from_arrays(settings.analysers(), learned, settings.threads)
