"""Trains libpecos's XR-Transformer with a params.json, as its command line does, and times the parts.

Every patched function is timed without the patched functions that it calls, so that the parts add up
to the whole. Libpecos's training loop is `fine_tune_encoder` without `prepare_data` and `save`.
"""

import functools
import json
import sys
import time

import common
import torch
from common import Clock
from pecos.utils import torch_util
from pecos.xmc import Indexer, LabelEmbeddingFactory, MLModel
from pecos.xmc.xlinear import XLinearModel
from pecos.xmc.xtransformer.matcher import TransformerMatcher
from pecos.xmc.xtransformer.model import XTransformer
from pecos.xmc.xtransformer.module import MLProblemWithText

PARTS = {
    "fine-tuning": (TransformerMatcher, "fine_tune_encoder"),
    "label tensors": (TransformerMatcher, "prepare_data"),
    "tokens": (TransformerMatcher, "text_to_tensor"),
    "embedding": (TransformerMatcher, "_predict"),
    "checkpoints": (TransformerMatcher, "save"),
    "reading checkpoints": (TransformerMatcher, "load"),
    "opening the encoder": (TransformerMatcher, "download_model"),
    "label features": (LabelEmbeddingFactory, "pifa"),
    "trees": (Indexer, "gen"),
    "bootstrap and matchers": (MLModel, "train"),
    "rankers": (XLinearModel, "train"),
}


class Parts:
    """The seconds of each part, without those of the parts within it."""

    def __init__(self):
        self.seconds = {}
        self.inner = [0.0]  # of each part that is running: the seconds of the parts within it

    def timed(self, name, function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            self.inner.append(0.0)
            started = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                taken = time.perf_counter() - started
                own = taken - self.inner.pop()
                self.inner[-1] += taken
                self.seconds[name] = self.seconds.get(name, 0.0) + own

        return call

    def patch(self):
        for name, (owner, method) in PARTS.items():
            given = owner.__dict__[method]
            kind = type(given) if isinstance(given, (classmethod, staticmethod)) else None
            timed = self.timed(name, given.__func__ if kind else given)
            setattr(owner, method, kind(timed) if kind else timed)


def train(folder, options):
    torch.set_num_threads(options["threads"])
    params = json.loads((folder / options["params"]).read_text())
    texts, Y, X = (
        common.texts(folder, "train"),
        common.load(folder, "Y.trn"),
        common.load(folder, "X.trn"),
    )
    clock, parts = Clock(), Parts()
    parts.patch()
    torch_util.set_seed(options["seed"])
    model = clock(
        "train",
        XTransformer.train,
        MLProblemWithText(texts, Y, X_feat=X),
        train_params=XTransformer.TrainParams.from_dict(params["train_params"], recursive=True),
        pred_params=XTransformer.PredParams.from_dict(params["pred_params"], recursive=True),
        threads=options["threads"],
    )
    seconds = dict(parts.seconds)
    target = folder / options["name"]
    clock("save", model.save, str(target))
    model = clock("load", XTransformer.load, str(target), is_predict_only=True)
    test, test_X = common.texts(folder, "test"), common.load(folder, "X.tst")
    batch = params["train_params"]["matcher_params_chain"][0]["batch_size"]
    scores = clock(
        "predict",
        model.predict,
        test,
        X_feat=test_X,
        use_gpu=False,
        batch_size=batch,
        batch_gen_workers=options["workers"],
        threads=options["threads"],
    )
    common.save_predictions(folder, options["name"], common.ordered_rows(scores), Y.shape[1])
    seconds["other"] = clock.seconds["train"] - sum(seconds.values())
    steps = seconds.pop("fine-tuning")
    common.answer(seconds=clock.seconds, steps=steps, parts=seconds)


if __name__ == "__main__":
    stage, folder, options = common.arguments()
    assert stage == "train", sys.argv
    train(folder, options)
