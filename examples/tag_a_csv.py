"""Train on one CSV file and tag the texts of another.

python examples/tag_a_csv.py TRAIN.csv TEXTS.csv
"""

import csv
import sys

import treetop
from treetop.data import open_data


def main(train_file, texts_file) -> None:
    train = open_data(train_file, text_column="text", labels_column="labels").split("train")
    model = treetop.XRLinear().fit(train.texts, train.labels)

    texts = open_data(texts_file, text_column="text").split("train").texts
    writer = csv.writer(sys.stdout)
    writer.writerow(["text", "labels", "scores"])
    for text, prediction in zip(texts, model.predict(texts, k=3), strict=True):
        names, scores = zip(*prediction, strict=True)
        writer.writerow([text, ";".join(names), ";".join(f"{score:.2f}" for score in scores)])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
