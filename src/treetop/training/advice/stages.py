"""Estimates of the stages of training: seconds, memory and disk, each from counted work.

The estimate of a training is the list that `STAGES` makes: a new stage is a function added to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from treetop.ranking.chunks import PART
from treetop.ranking.solver import copies, plan
from treetop.runtime.spool import IN_MEMORY
from treetop.settings import auto
from treetop.settings.schema import TransformerSettings
from treetop.training.advice.counting import LevelWork
from treetop.training.advice.problem import Problem
from treetop.training.advice.trial import TreeFigures
from treetop.training.calibrating import FEWEST_DOCUMENTS
from treetop.training.folds import MOST, SHARE
from treetop.training.out_of_fold import CUT_DOCUMENTS, CUT_LISTED, CUTS, LISTED

# Share of a stage's work that only one thread can do at a time.
SERIAL_TEXT, SERIAL_TREE, SERIAL_RANKERS = 0.3, 0.2, 0.05
# Fitted: powers of the ratio of all documents to those of the sample. More texts add fewer n-grams to
# the tables; in trees, more weights fit less into caches; documents share features, so they need fewer
# weights.
TEXT_POWER, CACHE_POWER, KEPT_POWER = -0.08, 0.08, 0.85
# Fitted: clustering all labels takes so many times as long per value, because more passes are needed.
CLUSTERING = 1.6
# Bytes per value of the features; per feature of what finds n-grams; of code, read on first use.
VALUE, FEATURE, CODE = 8, 150, 40_000_000
# Forward and backward together, as a multiple of forward.
LEARNING = 3.0
# Bytes of a float; per weight while a label is trained; and of token ids per character.
FLOAT, WEIGHT, TOKEN = 4, 4, 0.7
# Documents of the largest cluster of a level, as a multiple of the mean; bytes in use while weights
# are laid out, as a multiple of theirs.
SKEW, LAYOUT = 4.0, 1.3
# Fitted: what the rankers that calibration needs take beside the others, as a share; and seconds of one
# processor per label that is listed for a held-out document or a copy of it.
FOLD, OF_LISTED = 0.34, 7e-6
SERIAL_CALIBRATION = 0.5
# Characters of the texts whose features are made at a time.
BLOCK_CHARACTERS = 8 << 20


class StageEstimate(NamedTuple):
    """What a stage takes."""

    name: str
    seconds: float = 0.0
    memory: int = 0  # bytes, beyond those of the documents, while it runs
    kept: int = 0  # bytes that stay in memory after it
    disk: int = 0  # bytes in the folder of the model


def elapsed(seconds: float, serial: float, threads: int) -> float:
    """Seconds on several threads of what takes `seconds` of one processor."""
    return seconds * (serial + (1 - serial) / threads)


def text_features(problem: Problem) -> list[StageEstimate]:
    """Estimate the text features: linear in the characters."""
    tables = FEATURE * problem.columns
    features = round(VALUE * problem.values) + tables + CODE
    seconds = problem.texts.seconds * problem.growth**TEXT_POWER
    # Blocks of rows of each analyzer, and the same side by side.
    blocks = VALUE * problem.values * min(1.0, BLOCK_CHARACTERS / problem.texts.characters)
    ids = TOKEN * len(problem.texts.values) * problem.texts.characters
    return [
        StageEstimate(
            "text features",
            elapsed(seconds, SERIAL_TEXT, problem.threads),
            memory=features + round(blocks + ids),
            kept=features,
            disk=tables // 2,
        )
    ]


def forest(problem: Problem) -> list[StageEstimate]:
    """Estimate the label trees and the rankers: linear in the values that are read."""
    stages = []
    for tree in problem.trees:
        levels = problem.levels(tree)
        if len(levels) > 1:
            stages.append(label_tree(problem, tree, levels))
        stages.append(rankers(problem, tree, levels))
    return added_up(stages)


def label_tree(problem: Problem, tree: TreeFigures, levels: list[LevelWork]) -> StageEstimate:
    """Estimate PIFA and the clustering of one tree."""
    most = problem.settings.tree_features or problem.columns
    clustered = float(np.minimum(problem.documents_per_label * tree.values, most).sum())
    work = problem.positives * tree.values + clustered * np.log2(max(2, levels[-1].clusters))
    seconds = elapsed(CLUSTERING * problem.rates.tree * work, SERIAL_TREE, problem.threads)
    return StageEstimate("label trees", float(seconds), round(2 * VALUE * clustered))


def rankers(problem: Problem, tree: TreeFigures, levels: list[LevelWork]) -> StageEstimate:
    """Estimate the rankers of one tree."""
    rates = problem.rates
    *upper, labels = [level.visits(tree.values) for level in levels]
    seconds = rates.upper * sum(upper) + rates.labels * labels
    if len(levels) > 1:
        seconds *= problem.growth**CACHE_POWER
    positives = problem.positives * tree.values * problem.growth ** (KEPT_POWER - 1)
    weights = [tree.rows * positives, tree.cells * positives]
    copied = VALUE * problem.documents * tree.values if len(problem.trees) > 1 else 0.0
    # Calibration needs the same rankers without the held-out documents, which are trained beside them.
    models = 2 if held_documents(problem) else 1
    seconds *= 1 + FOLD * (models - 1)
    rooms = models * max(room(problem, level) for level in levels)
    layout = models * LAYOUT * min(problem.threads * PART, sum(weights))
    return StageEstimate(
        "rankers",
        elapsed(seconds, SERIAL_RANKERS, problem.threads),
        memory=round(max(rooms, layout) + 1.5 * copied),
        # Larger arrays are mapped from files.
        kept=models * round(sum(size for size in weights if size <= IN_MEMORY)),
        disk=round(sum(weights)),
    )


def room(problem: Problem, level: LevelWork) -> float:
    """Bytes of the weights that are being trained on all threads."""
    rows = np.full(level.clusters, round(level.rows / level.clusters))
    pointers = np.linspace(0, level.clusters * level.children, level.clusters + 1).astype(np.int64)
    tasks = plan(rows, pointers, problem.documents, problem.columns, problem.threads)
    share = min(1.0, SKEW * rows[0] / problem.documents)
    columns = problem.texts.columns_of(share) if copies(rows[0], problem.documents) else problem.columns
    largest = max(task.width * -(-(task.last_child - task.first_child) // task.width) for task in tasks)
    return WEIGHT * (columns + problem.width) * largest * min(problem.threads, len(tasks))


def added_up(stages: list[StageEstimate]) -> list[StageEstimate]:
    """Add up the stages of the same name; the memory of each is beside what those before it kept."""
    names = list(dict.fromkeys(stage.name for stage in stages))
    at_once = dict.fromkeys(names, 0)
    kept = 0
    for stage in stages:
        at_once[stage.name] = max(at_once[stage.name], kept + stage.memory)
        kept += stage.kept
    return [
        StageEstimate(
            name,
            sum(stage.seconds for stage in stages if stage.name == name),
            at_once[name],
            sum(stage.kept for stage in stages if stage.name == name),
            sum(stage.disk for stage in stages if stage.name == name),
        )
        for name in names
    ]


def competition(problem: Problem) -> list[StageEstimate]:
    """Estimate the competition that decides on features: a share of the training, by counted work."""
    if not problem.competition:
        return []
    after = [*text_features(problem), *forest(problem)]
    seconds = problem.competition * sum(stage.seconds for stage in after)
    return [StageEstimate("competition", seconds, round(VALUE * problem.values) + CODE)]


def held_documents(problem: Problem) -> int:
    """Documents that are held out for calibration; 0 without one."""
    settings = auto.with_calibration(problem.settings, problem.labels)
    held = min(round(SHARE * problem.documents), MOST)
    return held if settings.calibration and held >= FEWEST_DOCUMENTS else 0


def calibration(problem: Problem) -> list[StageEstimate]:
    """Estimate the calibration: linear in the labels that are listed for held-out documents.

    Labels are also listed for copies of some of them that are cut short.
    """
    held = held_documents(problem)
    if not held:
        return []
    listed = held * LISTED + len(CUTS) * min(CUT_DOCUMENTS, held) * CUT_LISTED
    seconds = elapsed(OF_LISTED * listed, SERIAL_CALIBRATION, problem.threads)
    return [StageEstimate("calibration", seconds, memory=CODE)]


def encoder(problem: Problem) -> list[StageEstimate]:
    """Estimate the encoder: a pass over all documents, and the steps of fine-tuning before it."""
    settings, figures = problem.settings, problem.encoder
    if figures is None or not isinstance(settings, TransformerSettings):
        return []
    vectors = FLOAT * problem.documents * figures.width
    stages = []
    if settings.fine_tune:
        _, levels = auto.first_sizes(settings.first_tree, problem.labels, settings.largest_level)
        steps = auto.steps_by_level(settings.budget, levels, problem.documents, settings.batch)
        seen = sum(steps) * min(settings.batch, problem.documents) / problem.documents
        # Layers that do not learn are computed once; those that do, forward and backward in each epoch.
        share = min(1.0, (settings.tuned_layers or figures.layers) / figures.layers)
        passes = LEARNING * seen * share + (1 - share)
        # Gradients and two moments of Adam beside the weights.
        memory = figures.memory + round(3 * share * figures.weights)
        stages.append(StageEstimate("fine-tuning", passes * figures.seconds, memory))
    disk = figures.weights
    kept = 2 * vectors + figures.memory
    stages.append(StageEstimate("embedding", figures.seconds, kept, kept, disk))
    return stages


STAGES: tuple[Callable[[Problem], list[StageEstimate]], ...] = (
    competition,
    text_features,
    encoder,
    forest,
    calibration,
)
