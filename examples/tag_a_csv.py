"""Train on one CSV file and tag the texts of another.

python examples/tag_a_csv.py [TRAIN.csv TEXTS.csv]
"""

import csv
import sys
from pathlib import Path

import treetop
from treetop.data import open_data

DATA = Path(__file__).with_name("data")


def main() -> None:
    given = sys.argv[1:] if len(sys.argv) == 3 else (DATA / "train.csv", DATA / "test.csv")
    train_file, texts_file = given

    train = open_data(train_file, text_column="text", labels_column="labels").split("train")
    model = treetop.XRLinear().fit(train.texts, train.labels)

    texts = open_data(texts_file, text_column="text").split("train").texts
    writer = csv.writer(sys.stdout)
    writer.writerow(["text", "labels", "scores"])
    for text, prediction in zip(texts, model.predict(texts, k=3), strict=True):
        names, scores = zip(*prediction, strict=True)
        writer.writerow([text, ";".join(names), ";".join(f"{score:.2f}" for score in scores)])


if __name__ == "__main__":
    main()
