"""Benchmarks of libpecos."""

import common
import numpy as np
from common import THREADS, TOP, Clock
from pecos.utils.featurization.text.vectorizers import Vectorizer
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel


def vectorizer(texts, min_df):
    config = {
        "type": "tfidf",
        "kwargs": {
            "base_vect_configs": [
                {
                    "ngram_range": [1, 2],
                    "min_df_cnt": min_df,
                    "max_feature": 500_000,
                    "analyzer": "word",
                }
            ],
            "threads": THREADS,
        },
    }
    return Vectorizer.train(texts, config, dtype=np.float32)


def fit_transform(texts, min_df):
    return vectorizer(texts, min_df).predict(texts, threads=THREADS)


def tfidf(folder, options):
    texts, clock = common.texts(folder, "train"), Clock()
    X = clock("tfidf", fit_transform, texts, options["min_df"])
    common.answer(seconds=clock.seconds, features=X.shape[1], peak_mb=common.peak_mb())


def train_and_predict(folder, X, Y, test, clock):
    """Train PIFA, tree and rankers with libpecos's defaults (16-way, leaves of 100), and predict."""
    Z = clock("pifa", LabelEmbeddingFactory.create, Y, X, method="pifa")
    C = clock(
        "tree",
        Indexer.gen,
        Z,
        indexer_type="hierarchicalkmeans",
        threads=THREADS,
        nr_splits=16,
        max_leaf_size=100,
        seed=0,
    )
    del Z
    model = clock(
        "train",
        XLinearModel.train,
        X,
        Y,
        C=C,
        threads=THREADS,
        threshold=0.1,
        negative_sampling_scheme="tfn",
    )
    trained_mb = common.peak_mb()
    model.save(str(folder / "libpecos.model"))
    model = XLinearModel.load(str(folder / "libpecos.model"), is_predict_only=True)
    scores = clock("predict", model.predict, test, beam_size=10, only_topk=TOP, threads=THREADS)
    common.save_predictions(folder, "libpecos", common.ordered_rows(scores), Y.shape[1])
    return trained_mb, "-".join(str(level.shape[0]) for level in C)


def predict(folder, options):
    """Time batch prediction and single queries with the model that `linear` saved."""
    model = XLinearModel.load(str(folder / "libpecos.model"), is_predict_only=True)
    test, clock = common.load(folder, "X.tst"), Clock()
    model.predict(test, beam_size=10, only_topk=TOP, threads=THREADS)
    clock("predict", model.predict, test, beam_size=10, only_topk=TOP, threads=THREADS)
    rows = [test[row] for row in range(common.SINGLE_QUERIES)]
    single = common.median_single(
        lambda row: model.predict(row, beam_size=10, only_topk=TOP, threads=1), rows
    )
    common.answer(seconds=clock.seconds, documents=test.shape[0], single_ms=single)


def linear(folder, options):
    X, Y = common.load(folder, "X.trn"), common.load(folder, "Y.trn")
    test, clock = common.load(folder, "X.tst"), Clock()
    loaded_mb = common.peak_mb()
    trained_mb, shape = train_and_predict(folder, X, Y, test, clock)
    common.answer(
        seconds=clock.seconds,
        cpu_seconds=clock.cpu_seconds,
        tree=shape,
        loaded_mb=loaded_mb,
        peak_mb=trained_mb,
    )


def default(folder, options):
    """Train on texts with libpecos's own TF-IDF, PIFA, tree and rankers."""
    texts, Y = common.texts(folder, "train"), common.load(folder, "Y.trn")
    clock = Clock()
    fitted = clock("tfidf_fit", vectorizer, texts, options.get("min_df", 1))
    X = clock("tfidf_transform", fitted.predict, texts, threads=THREADS)
    test = fitted.predict(common.texts(folder, "test"), threads=THREADS)
    trained_mb, _ = train_and_predict(folder, X, Y, test, clock)
    parts = ("tfidf_fit", "tfidf_transform", "pifa", "tree", "train")
    clock.seconds["train"] = sum(clock.seconds[part] for part in parts)
    common.answer(seconds=clock.seconds, peak_mb=trained_mb)


if __name__ == "__main__":
    stage, folder, options = common.arguments()
    {"tfidf": tfidf, "linear": linear, "predict": predict, "default": default}[stage](folder, options)
