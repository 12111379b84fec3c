"""Models as folders: labels, text features, trees, weights and a model card."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from treetop.errors import TreetopError
from treetop.features.encoders.handle import EncoderHandle
from treetop.features.feature_map import FeatureMap, Vectoriser
from treetop.features.words.pecos import PecosWords
from treetop.features.words.tfidf import Tfidf
from treetop.labels.tree import Tree
from treetop.labels.types import parsed_names
from treetop.model import layout
from treetop.model.card import card
from treetop.model.model import OPTIONAL_PARTS, EnsembleModel, Model, Predictor
from treetop.ranking.packing import pack, unpack
from treetop.ranking.ranker import Ranker
from treetop.ranking.weights import Weights
from treetop.runtime import Runtime
from treetop.runtime.arrays import Arrays, part, prefixed, read_arrays, write_arrays
from treetop.runtime.files import json_lines, replacing_folder
from treetop.runtime.pinned import read_pinned
from treetop.settings.making import PARAMETERS, from_json
from treetop.settings.schema import LinearSettings, TransformerSettings

FLOAT32 = "float32"
ENCODER = "encoder"


def write_model(model: Predictor, folder: Path, metrics: Mapping[str, Any] | None = None) -> None:
    """Write a model or an ensemble atomically; an earlier model stays until the new one is complete."""
    with replacing_folder(folder, layout.check_target) as target:
        if isinstance(model, EnsembleModel):
            for number, member in enumerate(model.members):
                write_model(member, target / f"member-{number}")
        elif isinstance(model, Model):
            write_parts(model, target)
        facts = {**model.describe(), "metrics": dict(metrics or {})}
        layout.write_card(target, card(facts))
        layout.write_config(target, facts)


def write_parts(model: Model, target: Path) -> None:
    """Write the files of a model other than config.json and the model card."""
    names = "".join(f"{name}\n" for name in model.classes.tolist())
    (target / "labels.txt").write_text(names, encoding="utf-8", newline="")
    shape: Arrays = {"train_counts": model.label_counts}
    weights: Arrays = {}
    for number, ranker in enumerate(model.rankers):
        shape |= prefixed(str(number), ranker.tree.arrays())
        plain = model.storage == FLOAT32
        saved = ranker.weights.arrays if plain else pack(ranker.weights, model.storage)
        weights |= prefixed(str(number), saved)
    write_arrays(target / "tree.safetensors", shape)
    write_arrays(target / "ranker.safetensors", weights)
    for name in OPTIONAL_PARTS:
        if (saved := getattr(model, name)) is not None:
            write_arrays(target / f"{name}.safetensors", saved.arrays)
    write_feature_map(model.feature_map, target, half=model.storage != FLOAT32)
    if model.has_encoder:
        (target / "history.jsonl").write_text(json_lines(model.history), "utf-8")


def write_feature_map(feature_map: FeatureMap, target: Path, half: bool) -> None:
    """Write text features, encoder and center; `half` stores float32 weights as float16."""
    if feature_map.words is not None:
        write_arrays(target / "tfidf.safetensors", feature_map.words.arrays())
    if feature_map.encoder is not None:
        feature_map.encoder.save(target / ENCODER, half)
    if feature_map.center is not None:
        write_arrays(target / "center.safetensors", {"center": feature_map.center})


def read_model(folder: Path, verify: bool | None = None, runtime: Runtime | None = None) -> Predictor:
    """Read the model in a folder, whatever its kind. Weights are memory-mapped.

    All files are of one model, even if another process replaces it meanwhile.
    """
    return read_pinned(folder, lambda place: read_files(place, folder, verify, runtime or Runtime()))


def read_files(folder: Path, home: Path, verify: bool | None, runtime: Runtime) -> Predictor:
    """Read the model in `folder`, which is a path of `home` for the time of this call."""
    config = layout.read_config(folder, verify)
    kind = config.get("model")
    if kind == "ensemble":
        names = [f"member-{number}" for number in range(len(config["members"]))]
        return EnsembleModel(
            tuple(read_files(folder / name, home / name, False, runtime) for name in names),
            config["combine"],
            tuple(config["weights"]),
        )
    if kind not in PARAMETERS:
        raise TreetopError(f"{folder}: holds the model {kind!r}, which this treetop does not know")
    return read_parts(folder, home, config, runtime)


def read_parts(folder: Path, home: Path, config: Mapping[str, Any], runtime: Runtime) -> Model:
    """Read the files of a model that is not an ensemble; see `read_files`."""
    settings = from_json(config["settings"], PARAMETERS[config["model"]].settings_type)
    shape = read_arrays(folder / "tree.safetensors")
    weights = read_arrays(folder / "ranker.safetensors")
    storage = config.get("storage", FLOAT32)
    rankers = [
        read_ranker(part(shape, str(number)), part(weights, str(number)), settings, storage, runtime)
        for number in range(len(config["trees"]))
    ]
    history = folder / "history.jsonl"
    parts: dict[str, Any] = {}
    for name, kind in OPTIONAL_PARTS.items():
        if (path := folder / f"{name}.safetensors").is_file():
            parts[name] = kind(read_arrays(path))
    lines = history.read_text("utf-8").splitlines() if history.is_file() else []
    return Model(
        kind=config["model"],
        settings=settings,
        classes=read_labels_file(folder / "labels.txt", config.get("label_type", "str")),
        feature_map=read_feature_map(folder, home, config, settings),
        rankers=tuple(rankers),
        label_counts=shape["train_counts"],
        train_documents=config["train_documents"],
        history=tuple(json.loads(line) for line in lines),
        storage=storage,
        asked=config.get("asked", {}),
        **parts,
    )


def read_labels_file(path: Path, kind: str) -> np.ndarray:
    """Read label names, converted to the type they had in training; `kind` as in config.json."""
    names = path.read_bytes().decode("utf-8").split("\n")[:-1]
    try:
        return parsed_names(names, kind)
    except ValueError:
        raise TreetopError(f"{path}: holds a label that is not of type {kind}: train again") from None


def read_ranker(
    shape: Arrays, weights: Arrays, settings: LinearSettings, storage: str, runtime: Runtime
) -> Ranker:
    """Make a ranker of a tree and its weights, which are unpacked if they are packed."""
    tree = Tree.from_arrays(shape)
    plain = storage == FLOAT32
    unpacked = Weights(**weights) if plain else unpack(weights, tree, runtime.thread_count)
    return Ranker(tree, unpacked, settings.ranker())


def read_feature_map(
    folder: Path, home: Path, config: Mapping[str, Any], settings: LinearSettings
) -> FeatureMap:
    """Read text features, encoder and center; the encoder is opened on first use, from `home`."""
    widths = (int(config["feature_widths"][0]), int(config["feature_widths"][1]))
    words: Vectoriser | None = None
    if config["text"]:
        learned = read_arrays(folder / "tfidf.safetensors")
        pecos = config["text"] == PecosWords.kind
        words = (
            PecosWords.from_arrays(learned)
            if pecos
            else Tfidf.from_arrays(settings.analysers(), learned)
        )
    if not isinstance(settings, TransformerSettings):
        return FeatureMap(widths, words)
    center = folder / "center.safetensors"
    return FeatureMap(
        widths,
        words,
        EncoderHandle(
            home / ENCODER,
            pooling="pooler" if settings.pooling == "pooler" else "auto",
            max_length=settings.max_length,
            dropout=settings.dropout,
            check=partial(layout.check_unchanged, files_of_encoder(config)),
        ),
        settings.dense_weight,
        read_arrays(center)["center"] if center.is_file() else None,
        sees_words=settings.words,
    )


def files_of_encoder(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return sizes and checksums of the encoder's files, as config.json lists them."""
    return {name: entry for name, entry in config["files"].items() if name.startswith(f"{ENCODER}/")}
