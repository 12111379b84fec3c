"""Learn from one CSV, tag another: the whole job of an archive in a page.

python examples/tag_a_csv.py
"""

import csv
from pathlib import Path
from tempfile import TemporaryDirectory

import treetop
from treetop.data import open_data
from treetop.data.convert import convert
from treetop.data.docstrings import load_docstrings


def main() -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        convert(load_docstrings(["numpy"]), folder / "tables", "csv")  # your own files take their place

        learned = open_data(folder / "tables" / "train.csv", "text", "labels").split("train")
        model = treetop.XRLinear().fit(learned.texts, learned.labels)

        new = open_data(folder / "tables" / "test.csv", "text").split("train")
        with (folder / "tagged.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["text", "labels", "scores"])
            for text, row in zip(new.texts, model.predict(new.texts, k=3), strict=True):
                names, scores = zip(*row, strict=True)
                writer.writerow([text, ";".join(names), ";".join(f"{score:.2f}" for score in scores)])
        print("\n".join((folder / "tagged.csv").read_text().splitlines()[:3]))


if __name__ == "__main__":
    main()
