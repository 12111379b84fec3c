"""From which score on should a label be assigned? Choose the threshold on held-out documents.

python examples/choose_threshold.py DATA
"""

import sys

import numpy as np

import treetop
from treetop.data import open_data


def micro_f1(scores, labels, classes, threshold) -> float:
    """F1 over all pairs of document and label, of labels that score at least the threshold."""
    result = treetop.metrics.evaluate(labels, scores, classes=classes, threshold=threshold)
    return result[f"micro_f1>={threshold:g}"]


def main(path) -> None:
    data = open_data(path)
    train, test = data.split("train"), data.split("test")
    texts, labels = train.texts, train.named_labels(data.label_names)
    held_out = len(texts) // 5
    model = treetop.XRLinear().fit(texts[:-held_out], labels[:-held_out])

    scores = model.predict_scores(texts[-held_out:], 20)
    candidates = np.quantile(scores.data, np.linspace(0, 0.99, 50)).round(3)
    best = max(candidates, key=lambda t: micro_f1(scores, labels[-held_out:], model.classes_, t))

    model.fit(texts, labels)
    scores = model.predict_scores(test.texts, 20)
    f1 = micro_f1(scores, test.named_labels(data.label_names), model.classes_, best)
    print(f"assign labels that score at least {best:.3f}: micro F1 {100 * f1:.2f} on the test set")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
