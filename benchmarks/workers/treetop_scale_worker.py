"""Trains XRLinear on generated problems, from matrices or with the command line, and predicts."""

import contextlib
import io
import json
import time

import common
import numpy as np
import scipy.sparse as sp
from common import THREADS, TOP, Clock

import treetop
from treetop.cli.main import run_command
from treetop.data import open_data
from treetop.features.words.tfidf import fit_tfidf
from treetop.kernels import all_kernels
from treetop.runtime import Runtime
from treetop.runtime.memory import memory_limit
from treetop.runtime.progress import Reporter
from treetop.settings import auto
from treetop.settings.parts import Analyser
from treetop.settings.schema import LinearSettings
from treetop.training.text_features import fit_text_features


class Stages(Reporter):
    """Seconds of each stage."""

    def __init__(self):
        self.seconds, self.name, self.since = {}, None, time.perf_counter()

    def step(self, name, total=None):
        self.close()
        self.name = name
        return lambda: None

    def close(self):
        now = time.perf_counter()
        if self.name is not None:
            self.seconds[self.name] = self.seconds.get(self.name, 0.0) + now - self.since
        self.name, self.since = None, now


def features(folder, options):
    """Write the matrices that all libraries train on: TF-IDF of words, without function words."""
    analyser = Analyser(ngrams=(1, 1), stop_words=tuple(options["stop_words"]))
    train, test = (open_data(folder).split(split) for split in ("train", "test"))
    tfidf, X = fit_tfidf([analyser], train.texts, THREADS)
    sp.save_npz(folder / "X.trn.npz", X, compressed=False)
    sp.save_npz(folder / "X.tst.npz", tfidf.transform(test.texts, THREADS), compressed=False)
    common.answer(features=X.shape[1], values_per_document=X.nnz / X.shape[0])


def matrix(folder, options):
    """Train on the matrices, with everything else as treetop decides it."""
    X, Y = common.load(folder, "X.trn"), common.load(folder, "Y.trn")
    loaded_mb, clock, stages = common.peak_mb(), Clock(), Stages()
    model = treetop.XRLinear(trees=options["trees"])
    runtime = Runtime(threads=THREADS, memory=options.get("memory"), reporter=stages)
    clock("train", model.fit, X, Y, runtime=runtime)
    stages.close()
    trained_mb = common.peak_mb()
    clock("save", model.save, folder / options["name"])
    common.answer(
        seconds=clock.seconds,
        cpu_seconds=clock.cpu_seconds,
        stages=stages.seconds,
        tree=[str(ranker.tree) for ranker in model.rankers_],
        counts=[counts_of(ranker.weights) for ranker in model.rankers_],
        loaded_mb=loaded_mb,
        peak_mb=trained_mb,
    )


def counts_of(weights):
    """What the size of the weights on disk follows from."""
    return {
        "features": weights.features,
        "rows": len(weights.rows),
        "cells": weights.cells.size,
        "nodes": weights.biases.size,
        "clusters": weights.child_ptr.size - 1,
    }


def texts(folder, options):
    """Train with the command line, from files of texts to a model folder."""
    command = ["train", str(folder), "-o", str(folder / options["name"]), "--json"]
    command += ["--set", f"trees={options['trees']}", "--set", f"threads={THREADS}"]
    clock, output = Clock(), io.StringIO()
    with contextlib.redirect_stdout(output):
        code = clock("train", run_command, [*command, "--memory", options["memory"]])
    if code:
        raise SystemExit(code)
    stages = json.loads(output.getvalue())["stages"]
    common.answer(
        seconds=clock.seconds,
        cpu_seconds=clock.cpu_seconds,
        stages=stages,
        peak_mb=common.peak_mb(),
    )


def text_features(folder, options):
    """Compute the features that training would compute of these texts, within a limit of memory."""
    clock = Clock()
    data = clock("reading data", open_data, folder).split("train")
    loaded_mb = common.peak_mb()
    runtime = Runtime(threads=THREADS, memory=options["memory"])
    asked = LinearSettings(trees=options["trees"])
    with memory_limit(runtime.memory_bytes):
        settings, given = auto.with_ngrams(asked, data.texts)
        _, X = clock("text features", fit_text_features, settings.analysers(), given, runtime)
    common.answer(
        seconds=clock.seconds,
        cpu_seconds=clock.cpu_seconds,
        ngrams=settings.ngrams,
        features=X.shape[1],
        values_per_document=X.nnz / X.shape[0],
        loaded_mb=loaded_mb,
        peak_mb=common.peak_mb(),
    )


def predict(folder, options):
    """Time batch prediction and single queries, and save the predictions."""
    model = treetop.load(folder / options["name"], runtime=Runtime(threads=THREADS))
    documents = common.texts(folder, "test") if options["texts"] else common.load(folder, "X.tst")
    rows = [documents[row : row + 1] for row in range(common.SINGLE_QUERIES)]
    one, clock = Runtime(threads=1), Clock()
    for row in rows:  # reads the weights from disk
        model.predict_scores(row, TOP, runtime=one)
    single = common.median_single(lambda row: model.predict_scores(row, TOP, runtime=one), rows)
    scores = clock("predict", model.predict_scores, documents, TOP)
    numbers = np.array([int(name) for name in model.classes_])
    best = [numbers[row].tolist() for row in common.ordered_rows(scores)]
    common.save_predictions(folder, options["name"], best, options["labels"])
    common.answer(
        seconds=clock.seconds,
        documents=scores.shape[0],
        single_ms=single,
        peak_mb=common.peak_mb(),
    )


if __name__ == "__main__":
    for kernel in all_kernels():
        kernel.compile()
    stage, folder, options = common.arguments()
    {
        "features": features,
        "matrix": matrix,
        "texts": texts,
        "text_features": text_features,
        "predict": predict,
    }[stage](folder, options)
