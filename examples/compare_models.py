"""Which settings suit a data set? A small table, on data of your own or on the documentation at hand.

python examples/compare_models.py [DATA]
"""

import sys
import time

import treetop
from treetop.data import open_data
from treetop.data.docstrings import load_docstrings

MEASURES = ("P@1", "P@5", "PSP@5")
CANDIDATES = {
    "fast": treetop.XRLinear.from_preset("fast"),
    "default": treetop.XRLinear(),
    "one tree": treetop.XRLinear(trees=1),
}


def main() -> None:
    data = open_data(sys.argv[1]) if len(sys.argv) > 1 else load_docstrings(["numpy"])
    train, test = data.split("train"), data.split("test")
    print(f"{len(train):,} documents to learn from, {len(test):,} to test on\n")
    print(f"{'':10}" + "".join(f"{name:>8}" for name in (*MEASURES, "seconds")))
    for name, model in CANDIDATES.items():
        started = time.perf_counter()
        model.fit(train.texts, train.named_labels(data.label_names))
        seconds = time.perf_counter() - started
        truth = test.named_labels(data.label_names)
        found = [100 * treetop.scorer(one)(model, test.texts, truth) for one in MEASURES]
        print(f"{name:10}" + "".join(f"{value:8.2f}" for value in (*found, seconds)))


if __name__ == "__main__":
    main()
