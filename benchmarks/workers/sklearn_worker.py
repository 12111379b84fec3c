"""Benchmarks of scikit-learn: one-versus-rest LinearSVC, for the smaller data sets."""

import common
import numpy as np
from common import THREADS, TOP, Clock
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC


def default(folder, options):
    X, Y = common.load(folder, "X.trn"), common.load(folder, "Y.trn")
    model, clock = OneVsRestClassifier(LinearSVC(), n_jobs=THREADS), Clock()
    clock("train", model.fit, X, Y)
    trained_mb = common.peak_mb()
    scores = clock("predict", model.decision_function, common.load(folder, "X.tst"))
    rows = np.argsort(-scores, axis=1)[:, :TOP].tolist()
    common.save_predictions(folder, "sklearn", rows, Y.shape[1])
    common.answer(seconds=clock.seconds, peak_mb=trained_mb)


if __name__ == "__main__":
    stage, folder, options = common.arguments()
    default(folder, options)
