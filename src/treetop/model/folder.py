"""Models as folders: labels, text features, trees, weights and a model card."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
from treetop.model.ensemble import ENSEMBLE_PARTS, EnsembleModel
from treetop.model.facts import EnsembleFacts, ModelFacts, brief, read_history
from treetop.model.model import OPTIONAL_PARTS, Model, SavedPart
from treetop.model.predictor import Predictor
from treetop.ranking.checking import check_weights
from treetop.ranking.packing import pack, unpack
from treetop.ranking.ranker import Ranker
from treetop.runtime import Runtime
from treetop.runtime.arrays import Arrays, part, prefixed, read_arrays, write_arrays
from treetop.runtime.checking import Column, check_arrays, reading
from treetop.runtime.files import check_path, json_lines, replacing_folder
from treetop.runtime.pinned import read_pinned
from treetop.settings.making import PARAMETERS
from treetop.settings.schema import TransformerSettings

FLOAT32 = "float32"
COUNTS = {"train_counts": Column("int64", ("labels",), least=0)}
CENTER = {"center": Column("float32", ("width",))}
ENCODER = "encoder"


def write_model(model: Predictor, folder: Path, metrics: Mapping[str, Any] | None = None) -> None:
    """Write a model or an ensemble atomically; an earlier model stays until the new one is complete."""
    with replacing_folder(folder, layout.check_target) as target:
        if isinstance(model, EnsembleModel):
            for number, member in enumerate(model.members):
                write_model(member, target / f"member-{number}")
            write_optional_parts(model, ENSEMBLE_PARTS, target)
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
    write_optional_parts(model, OPTIONAL_PARTS, target)
    write_feature_map(model.feature_map, target, half=model.storage != FLOAT32)
    if model.has_encoder:
        (target / "history.jsonl").write_text(json_lines(model.history), "utf-8")


def write_optional_parts(model: Predictor, names: Iterable[str], target: Path) -> None:
    """Write those of the optional parts of a model that it has, a file each."""
    for name in names:
        if (saved := getattr(model, name)) is not None:
            write_arrays(target / f"{name}.safetensors", saved.arrays)


def read_optional_parts(
    folder: Path, kinds: Mapping[str, type[SavedPart]], widths: tuple[int, int], labels: int
) -> dict[str, Any]:
    """Read those of the optional parts of a model that its folder has."""
    parts: dict[str, Any] = {}
    for name, kind in kinds.items():
        if (path := folder / f"{name}.safetensors").is_file():
            with reading(path):
                parts[name] = kind.from_arrays(read_arrays(path), widths, labels)
    return parts


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

    All files are of one model, even if another process replaces it meanwhile. They may be from a
    stranger: every number that a kernel or an allocation follows is checked.
    """
    check_path(folder)
    return read_pinned(folder, lambda place: read_files(place, folder, verify, runtime or Runtime()))


def read_files(folder: Path, home: Path, verify: bool | None, runtime: Runtime) -> Predictor:
    """Read the model in `folder`, which is a path of `home` for the time of this call."""
    config = layout.read_config(folder, verify)
    kind = config.get("model")
    if kind == "ensemble":
        return read_ensemble(folder, home, config, runtime)
    if not isinstance(kind, str) or kind not in PARAMETERS:
        raise TreetopError(f"{folder}: holds the model {brief(kind)}, which this treetop does not know")
    with reading(folder / layout.CONFIG):
        facts = ModelFacts.of(config)
    return read_parts(folder, home, facts, runtime)


def read_ensemble(folder: Path, home: Path, config: Mapping[str, Any], runtime: Runtime) -> Predictor:
    """Read the models of an ensemble, each from its own folder; see `read_files`."""
    with reading(folder / layout.CONFIG):
        facts = EnsembleFacts.of(config)
    names = [f"member-{number}" for number in range(facts.members)]
    members = [read_files(folder / name, home / name, False, runtime) for name in names]
    for name, member in zip(names, members, strict=True):
        if not np.array_equal(member.classes, members[0].classes):
            raise TreetopError(f"{folder / name}: has other labels than {names[0]}")
    parts = read_optional_parts(folder, ENSEMBLE_PARTS, members[0].widths, len(members[0].classes))
    return EnsembleModel(tuple(members), facts.combine, facts.weights, **parts)


def read_parts(folder: Path, home: Path, facts: ModelFacts, runtime: Runtime) -> Model:
    """Read the files of a model that is not an ensemble; see `read_files`."""
    rankers, label_counts = read_rankers(folder, facts, runtime.thread_count)
    labels = label_counts.size
    return Model(
        kind=facts.kind,
        settings=facts.settings,
        classes=read_labels_file(folder / "labels.txt", facts.label_type, labels),
        feature_map=read_feature_map(folder, home, facts, runtime.thread_count),
        rankers=rankers,
        label_counts=label_counts,
        train_documents=facts.train_documents,
        history=read_history(folder / "history.jsonl"),
        storage=facts.storage,
        asked=facts.asked,
        preset=facts.preset,
        competition=facts.competition,
        **read_optional_parts(folder, OPTIONAL_PARTS, facts.widths, labels),
    )


def read_labels_file(path: Path, kind: str, count: int) -> np.ndarray:
    """Read label names, converted to the type they had in training; `kind` as in config.json."""
    content = path.read_bytes()
    lines = content.count(b"\n")
    if lines != count or not content.endswith(b"\n"):
        raise TreetopError(
            f"{path}: {lines:,} lines instead of {count:,}, one per label: "
            "copy the model folder again or train again"
        )
    try:
        return parsed_names(content.decode("utf-8").split("\n")[:-1], kind)
    except ValueError:
        raise TreetopError(f"{path}: holds a label that is not of type {kind}: train again") from None


def read_rankers(
    folder: Path, facts: ModelFacts, threads: int
) -> tuple[tuple[Ranker, ...], np.ndarray]:
    """Read the trees with their weights, which are unpacked if packed, and the counts of the labels."""
    with reading(path := folder / "tree.safetensors"):
        shape = read_arrays(path)
        trees = [Tree.from_arrays(part(shape, str(number))) for number in range(facts.trees)]
        sizes = {tree.label_of.size for tree in trees}
        if len(sizes) != 1:
            raise TreetopError("it holds no tree, or trees with different numbers of labels")
        counts = check_arrays(shape, COUNTS, {"labels": sizes.pop()})["train_counts"]
    with reading(path := folder / "ranker.safetensors"):
        saved = read_arrays(path)
        rankers = []
        for number, tree in enumerate(trees):
            arrays = part(saved, str(number))
            if facts.storage == FLOAT32:
                weights = check_weights(arrays, tree, facts.widths, threads)
            else:
                weights = unpack(arrays, tree, facts.widths, facts.storage, threads)
            rankers.append(Ranker(tree, weights, facts.settings.ranker()))
    return tuple(rankers), counts


def read_feature_map(folder: Path, home: Path, facts: ModelFacts, threads: int) -> FeatureMap:
    """Read text features, encoder and center; the encoder is opened on first use, from `home`."""
    settings, words = facts.settings, read_vectoriser(folder / "tfidf.safetensors", facts, threads)
    if not isinstance(settings, TransformerSettings):
        return FeatureMap(facts.widths, words)
    center = None
    if (path := folder / "center.safetensors").is_file():
        with reading(path):
            center = check_arrays(read_arrays(path), CENTER, {"width": facts.widths[1]})["center"]
    return FeatureMap(
        facts.widths,
        words,
        EncoderHandle(
            home / ENCODER,
            # The others are stated in the encoder's folder.
            pooling=settings.pooling if settings.pooling in ("pooler", "summary") else "auto",
            max_length=settings.max_length,
            dropout=settings.dropout,
            check=partial(layout.check_unchanged, facts.encoder_files),
        ),
        settings.dense_weight,
        center,
        sees_words=settings.words,
        scales_words=not facts.imported,
    )


def read_vectoriser(path: Path, facts: ModelFacts, threads: int) -> Vectoriser | None:
    """Read text features; None for a model of feature matrices."""
    if facts.words is None:
        return None
    settings = facts.settings
    with reading(path):
        arrays = read_arrays(path)
        words: Vectoriser
        if facts.words == PecosWords.kind:
            words = PecosWords.from_arrays(arrays)
        else:
            words = Tfidf.from_arrays(settings.analysers(), arrays, threads)
        used = 0 if isinstance(settings, TransformerSettings) and not settings.words else words.features
        if used != facts.widths[0]:
            raise TreetopError(f"it has {used:,} features, but config.json says {facts.widths[0]:,}")
    return words
