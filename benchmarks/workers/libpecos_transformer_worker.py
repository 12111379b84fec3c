"""Trains libpecos's XR-Transformer with a params.json, as its command line does, and times the parts.

Every patched function is timed without the patched functions that it calls, so that the parts add up
to the whole. Libpecos's training loop is `fine_tune_encoder` without `prepare_data` and `save`.
"""

import functools
import json
import sys

import common
import numpy as np
import torch
from common import Clock, clocks
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
    "everything else": (XTransformer, "train"),
}


class Parts:
    """Wall and CPU seconds of each part, without those of the parts within it."""

    def __init__(self):
        self.seconds = {}  # by name: wall, CPU
        self.inner = [np.zeros(2)]  # of each part that is running: the seconds of the parts within it
        self.ranking = False

    def timed(self, name, function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            if self.ranking:  # the rankers' own calls belong to them
                return function(*args, **kwargs)
            self.ranking = name == "rankers"
            self.inner.append(np.zeros(2))
            started = clocks()
            try:
                return function(*args, **kwargs)
            finally:
                self.ranking = False
                taken = clocks() - started
                own = taken - self.inner.pop()
                self.inner[-1] += taken
                self.seconds[name] = self.seconds.get(name, np.zeros(2)) + own

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
    texts = common.texts(folder, "train")
    Y, X = common.load(folder, "Y.trn"), common.load(folder, "X.trn")
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
    parts = {name: taken.tolist() for name, taken in parts.seconds.items()}
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
    common.answer(seconds=clock.seconds, steps=parts.pop("fine-tuning"), parts=parts)


if __name__ == "__main__":
    stage, folder, options = common.arguments()
    assert stage == "train", sys.argv
    train(folder, options)
