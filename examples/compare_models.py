"""Which settings suit a data set? Train several models and compare their metrics.

python examples/compare_models.py DATA
"""

import sys
import time

import treetop
from treetop.data import open_data

METRICS = ("P@1", "P@5", "PSP@5")
CANDIDATES = {
    "fast": treetop.XRLinear.from_preset("fast"),
    "default": treetop.XRLinear(),
    "one tree": treetop.XRLinear(trees=1),
}


def main(path) -> None:
    data = open_data(path)
    train, test = data.split("train"), data.split("test")
    print(f"{len(train):,} training documents, {len(test):,} test documents\n")
    print(f"{'':10}" + "".join(f"{name:>9}" for name in (*METRICS, "seconds")))
    for name, model in CANDIDATES.items():
        started = time.perf_counter()
        model.fit(train.texts, train.named_labels(data.label_names))
        seconds = time.perf_counter() - started
        result = model.evaluate(test.texts, test.named_labels(data.label_names))
        values = [100 * result[metric] for metric in METRICS]
        print(f"{name:10}" + "".join(f"{value:9.2f}" for value in (*values, seconds)))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
