"""Trains treetop's XRTransformer, with an imported params.json or with its own defaults."""

import importlib

import common
import numpy as np
import torch
from common import Clock, clocks

import treetop
from treetop.interop.pecos_params import read_params
from treetop.kernels import all_kernels
from treetop.runtime import Runtime
from treetop.runtime.progress import Reporter

STEPS, REST = "fine-tuning, level", "everything else"


class Stages(Reporter):
    """Wall and CPU seconds of each stage."""

    def __init__(self):
        self.seconds, self.name, self.since = {}, None, clocks()

    def step(self, name, total=None):
        self.close()
        self.name, self.since = name, clocks()
        return lambda: None

    def close(self):
        if self.name is not None:
            earlier = self.seconds.get(self.name, np.zeros(2))
            self.seconds[self.name] = earlier + clocks() - self.since
        self.name = None

    def steps(self):
        return sum(taken for name, taken in self.seconds.items() if name.startswith(STEPS))


def settings_of(folder, options):
    """Return the settings and what they are fitted on besides texts and labels."""
    if options["params"] is None:
        return options["settings"], {}
    return read_params(folder / options["params"]).settings, {"features": common.load(folder, "X.trn")}


def train(folder, options):
    torch.set_num_threads(options["threads"])
    texts, Y = common.texts(folder, "train"), common.load(folder, "Y.trn")
    settings, features = settings_of(folder, options)
    clock, report = Clock(), Stages()
    model = treetop.XRTransformer(**settings)
    runtime = Runtime(threads=options["threads"], reporter=report)
    started = clocks()
    clock("train", model.fit, texts, Y, **features, runtime=runtime)
    report.close()
    steps = report.steps()
    report.seconds[REST] = clocks() - started - sum(report.seconds.values())
    parts = {
        name: taken.tolist() for name, taken in report.seconds.items() if not name.startswith(STEPS)
    }
    target = folder / options["name"]
    clock("save", model.save, target)
    model = clock("load", treetop.load, target, runtime=Runtime(threads=options["threads"]))
    test = common.texts(folder, "test")
    if features:
        features = {"features": common.load(folder, "X.tst")}
    scores = clock("predict", model.predict_scores, test, common.TOP, **features)
    common.save_predictions(folder, options["name"], common.ordered_rows(scores), Y.shape[1])
    common.answer(seconds=clock.seconds, steps=steps.tolist(), parts=parts)


if __name__ == "__main__":
    for kernel in all_kernels():
        kernel.compile()
    # On libpecos's side too, imports come before the clock starts.
    importlib.import_module("transformers.models.bert.modeling_bert")
    stage, folder, options = common.arguments()
    assert stage == "train"
    train(folder, options)
