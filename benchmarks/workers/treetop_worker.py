"""Benchmarks of treetop."""

import common
from common import THREADS, TOP, Clock

import treetop
from treetop.features.hybrid import features
from treetop.features.words.tfidf import fit_tfidf
from treetop.kernels import all_kernels
from treetop.labels import tree as trees
from treetop.labels.kmeans import KMeans
from treetop.labels.pifa import pifa
from treetop.ranking.ranker import Ranker
from treetop.ranking.training import train_rankers
from treetop.ranking.weights import Weights
from treetop.runtime.arrays import read_arrays, write_arrays
from treetop.runtime.progress import Reporter
from treetop.settings.notation import tree_sizes
from treetop.settings.parts import Analyser, RankerSettings


class Stages(Reporter):
    """Measures the wall and CPU time of each stage of a training."""

    def __init__(self):
        self.taken, self._name, self._started = {}, None, common.clocks()

    def step(self, name, total=None):
        self.close()
        self._name, self._started = name, common.clocks()
        return lambda: None

    def close(self):
        if self._name is not None:
            before = self.taken.get(self._name, 0.0)
            self.taken[self._name] = before + common.clocks() - self._started
        self._name = None

    def of(self, clock):
        """Seconds by stage: 0 is wall time, 1 is CPU time."""
        self.close()
        return {name: float(both[clock]) for name, both in self.taken.items()}


def tfidf(folder, options):
    texts = common.texts(folder, "train")
    analyser = Analyser(ngrams=(1, 2), min_df=options["min_df"], max_features=500_000)
    clock = Clock()
    _, X = clock("tfidf", fit_tfidf, [analyser], texts, THREADS)
    common.answer(seconds=clock.seconds, features=X.shape[1], peak_mb=common.peak_mb())


def linear(folder, options):
    X, Y = features(common.load(folder, "X.trn")), common.load(folder, "Y.trn")
    loaded_mb, clock = common.peak_mb(), Clock()
    Z = clock("pifa", pifa, X, Y, THREADS)
    sizes = tree_sizes(options["tree"], Y.shape[1])
    tree = clock("tree", trees.balanced_tree, Z, sizes, KMeans(20, 0, THREADS, 256))
    del Z
    # The same problem as libpecos solves by default: C = 1, no bias, negatives from the true parents.
    same = RankerSettings(lambda_=0.5, cost_sensitive=False, bias=0.0, shortlist="true")
    (ranker,) = clock("train", train_rankers, X, Y, tree, same, seed=0, threads=THREADS)
    trained_mb = common.peak_mb()
    write_arrays(folder / "treetop.weights", ranker.weights.arrays)
    write_arrays(folder / "treetop.tree", tree.arrays())
    scores = clock("predict", ranker.predict, features(common.load(folder, "X.tst")), TOP, THREADS)
    common.save_predictions(folder, "treetop", common.ordered_rows(scores), Y.shape[1])
    common.answer(seconds=clock.seconds, loaded_mb=loaded_mb, peak_mb=trained_mb)


def predict(folder, options):
    """Time batch prediction and single queries with the model that `linear` saved."""
    tree = trees.Tree.from_arrays(read_arrays(folder / "treetop.tree"))
    weights = Weights(**read_arrays(folder / "treetop.weights"))
    ranker = Ranker(tree, weights, RankerSettings())
    test, clock = features(common.load(folder, "X.tst")), Clock()
    ranker.predict(test, TOP, THREADS)
    clock("predict", ranker.predict, test, TOP, THREADS)
    rows = [test[row : row + 1] for row in range(common.SINGLE_QUERIES)]
    single = common.median_single(lambda row: ranker.predict(row, TOP, 1), rows)
    common.answer(seconds=clock.seconds, documents=test.rows, single_ms=single)


def default(folder, options):
    """Train on texts with the default settings, as `treetop train` does, and predict."""
    texts, labels = common.texts(folder, "train"), common.load(folder, "Y.trn")
    clock, model, stages = Clock(), treetop.XRLinear(threads=THREADS, **options), Stages()
    clock("train", model.fit, texts, labels, report=stages)
    trained_mb = common.peak_mb()
    scores = clock("predict", model.predict_scores, common.texts(folder, "test"), TOP)
    common.save_predictions(folder, "treetop", common.ordered_rows(scores), labels.shape[1])
    common.answer(
        seconds=clock.seconds,
        cpu_seconds=clock.cpu_seconds,
        stages=stages.of(0),
        cpu_stages=stages.of(1),
        ngrams=model.settings_.ngrams,
        peak_mb=trained_mb,
    )


if __name__ == "__main__":
    for kernel in all_kernels():
        kernel.compile()
    stage, folder, options = common.arguments()
    {"tfidf": tfidf, "linear": linear, "predict": predict, "default": default}[stage](folder, options)
