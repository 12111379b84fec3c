"""Benchmarks of napkinXC: a probabilistic label tree with default settings."""

import common
from common import THREADS, TOP, Clock
from napkinxc.models import PLT


def default(folder, options):
    X, Y = common.load(folder, "X.trn"), common.load(folder, "Y.trn")
    labels = [Y.indices[a:b].tolist() for a, b in zip(Y.indptr[:-1], Y.indptr[1:])]
    model, clock = PLT(str(folder / "napkinxc.model"), threads=THREADS, verbose=False), Clock()
    clock("train", model.fit, X, labels)
    trained_mb = common.peak_mb()
    rows = clock("predict", model.predict, common.load(folder, "X.tst"), top_k=TOP)
    common.save_predictions(folder, "napkinxc", [list(row) for row in rows], Y.shape[1])
    common.answer(seconds=clock.seconds, peak_mb=trained_mb)


if __name__ == "__main__":
    stage, folder, options = common.arguments()
    default(folder, options)
