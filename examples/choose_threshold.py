"""From which score on should a label be taken? Choose it on held-out documents, for the best F1.

python examples/choose_threshold.py
"""

import numpy as np

import treetop
from treetop.data.docstrings import load_docstrings
from treetop.labels.alignment import align


def f1(chosen, Y) -> float:
    """F1 over all pairs of document and label."""
    agreed = chosen.multiply(Y).sum()
    return float(2 * agreed / (chosen.sum() + Y.sum()))


def main() -> None:
    data = load_docstrings(["numpy"])
    train, test = data.split("train"), data.split("test")
    middle = int(0.8 * len(train))
    model = treetop.XRLinear().fit(train.texts[:middle], train.labels[:middle])

    held = align(train.labels[middle:], model.classes_, unseen=False)
    scores = model.predict_scores(train.texts[middle:], 20)
    steps = np.quantile(scores.data, np.linspace(0, 0.99, 50))
    best = max(steps, key=lambda step: f1((scores >= step).astype(float), held))

    Y = align(test.labels, model.classes_, unseen=False)
    found = model.predict_scores(test.texts, 20)
    share = f1((found >= best).astype(float), Y)
    print(f"labels that score at least {best:.3f}: F1 {100 * share:.2f} on test")


if __name__ == "__main__":
    main()
