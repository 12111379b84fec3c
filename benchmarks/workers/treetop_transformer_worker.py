"""Trains treetop's XRTransformer, with an imported params.json or with its own defaults."""

import importlib

import common
import torch
from common import Clock

import treetop
from treetop.interop.pecos_params import read_params
from treetop.kernels import all_kernels
from treetop.runtime import Runtime
from treetop.runtime.progress import TimedReporter

STEPS = "fine-tuning, level"


def settings_of(folder, options):
    """Return the settings and what they are fitted on besides texts and labels."""
    if options["params"] is None:
        return options["settings"], {}
    return read_params(folder / options["params"]).settings, {"features": common.load(folder, "X.trn")}


def train(folder, options):
    torch.set_num_threads(options["threads"])
    texts, Y = common.texts(folder, "train"), common.load(folder, "Y.trn")
    settings, features = settings_of(folder, options)
    clock, report = Clock(), TimedReporter()
    model = treetop.XRTransformer(**settings)
    runtime = Runtime(threads=options["threads"], reporter=report)
    clock("train", model.fit, texts, Y, **features, runtime=runtime)
    target = folder / options["name"]
    clock("save", model.save, target)
    model = clock("load", treetop.load, target, runtime=Runtime(threads=options["threads"]))
    test = common.texts(folder, "test")
    if features:
        features = {"features": common.load(folder, "X.tst")}
    scores = clock("predict", model.predict_scores, test, common.TOP, **features)
    common.save_predictions(folder, options["name"], common.ordered_rows(scores), Y.shape[1])
    steps = sum(taken for name, taken in report.seconds.items() if name.startswith(STEPS))
    parts = {name: taken for name, taken in report.seconds.items() if not name.startswith(STEPS)}
    common.answer(seconds=clock.seconds, steps=steps, parts=parts)


if __name__ == "__main__":
    for kernel in all_kernels():
        kernel.compile()
    # On libpecos's side too, imports come before the clock starts.
    importlib.import_module("transformers.models.bert.modeling_bert")
    stage, folder, options = common.arguments()
    assert stage == "train"
    train(folder, options)
