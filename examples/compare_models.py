"""Which settings suit a data set? Train several models and compare their metrics.

python examples/compare_models.py [DATA]
"""

import sys
import time
from pathlib import Path

import treetop
from treetop.data import open_data

DATA = Path(__file__).with_name("data")
METRICS = ("P@1", "P@5", "PSP@5")
CANDIDATES = {
    "fast": treetop.XRLinear.from_preset("fast"),
    "default": treetop.XRLinear(),
    "one tree": treetop.XRLinear(trees=1),
}


def main() -> None:
    data = open_data(sys.argv[1] if len(sys.argv) > 1 else DATA)
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
    main()
