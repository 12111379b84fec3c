"""Texts of large data sets are stored on disk, in every format that holds texts."""

import json
import subprocess
import sys

import numpy as np
import pytest

from treetop.data import open_data
from treetop.data.convert import convert
from treetop.data.joining import joined
from treetop.runtime import texts
from treetop.runtime.texts import StoredTexts

DOCUMENTS = [(f"document {number} of several", [f"a{number % 3}", "b"]) for number in range(40)]
FORMATS = ("csv", "tsv", "jsonl", "json", "fasttext", "annif", "parquet", "lf", "text-lines", "pecos")


def folder_of(folder, form):
    """A data set in a format; most are written by treetop itself."""
    given, labels = zip(*DOCUMENTS, strict=True)
    source = folder / "source"
    source.mkdir()
    (source / "train.txt").write_text("".join(f"{text}\n" for text in given))
    (source / "train.labels").write_text("".join("\t".join(line) + "\n" for line in labels))
    target = folder / form
    if form == "json":
        target.mkdir()
        records = [{"text": text, "labels": line} for text, line in DOCUMENTS]
        (target / "train.json").write_text(json.dumps(records))
    elif form == "text-lines":
        return source
    else:
        convert(open_data(source), target, form)
    return target


@pytest.mark.parametrize("form", FORMATS)
def test_large_texts_of_every_format_are_stored_on_disk(tmp_path, monkeypatch, form):
    folder = folder_of(tmp_path, form)
    expected = open_data(folder)
    monkeypatch.setattr(texts, "CHARACTERS_IN_MEMORY", 200)
    stored = open_data(folder)
    split, same = stored.split("train"), expected.split("train")
    assert type(split.texts) is StoredTexts
    assert list(split.texts) == same.texts == [text for text, _ in DOCUMENTS]
    assert split.named_labels(stored.label_names) == same.named_labels(expected.label_names)
    assert stored.detected == expected.detected


def test_columns_of_records_that_are_not_held_are_found(tmp_path, monkeypatch):
    """The column of labels occurs after the records of which the first pass keeps none."""
    records = [{"text": "x" * 50}, {"text": "y" * 50}, {"text": "z", "tags": ["a"]}]
    path = tmp_path / "data.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    expected = open_data(path)
    monkeypatch.setattr(texts, "CHARACTERS_IN_MEMORY", 60)
    split = open_data(path).split("train")
    assert list(split.texts) == expected.split("train").texts
    assert split.labels == expected.split("train").labels == [[], [], ["a"]]
    assert open_data(path).reading.warnings == expected.reading.warnings


def test_parts_and_joined_data_sets_of_large_texts_are_stored_too(tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "CHARACTERS_IN_MEMORY", 200)
    dataset = open_data(folder_of(tmp_path, "text-lines"))
    given = [text for text, _ in DOCUMENTS]
    part = dataset.split("train").rows(np.array([39, 0, *range(5, 20)]))
    assert type(part.texts) is StoredTexts
    assert list(part.texts) == [given[39], given[0], *given[5:20]]
    both = joined([dataset, dataset], [tmp_path, tmp_path]).split("train")
    assert type(both.texts) is StoredTexts
    assert list(both.texts) == given + given
    assert both.labels == [labels for _, labels in DOCUMENTS] * 2


READ = """
import sys
from pathlib import Path
from treetop.data import open_data
from treetop.runtime import spool, texts
from treetop.runtime.memory import memory_in_use, peak_memory
spool.IN_MEMORY, texts.PIECE = 1 << 20, 1 << 20
texts.CHARACTERS_IN_MEMORY = int(sys.argv[2])
open_data(Path(sys.argv[3]))  # imports what it needs
before = memory_in_use()
split = open_data(Path(sys.argv[1])).split("train")
print(len(split), (peak_memory() - before) // 10**6)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is known on Linux only")
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_memory_of_reading_does_not_grow_with_the_texts(tmp_path, ending):
    path, small = tmp_path / f"data.{ending}", tmp_path / f"small.{ending}"
    for target, count, text in ((path, 8000, "some words " * 1000), (small, 9, "some words")):
        with target.open("w") as file:
            file.write("text,labels\n" if ending == "csv" else "")
            for number in range(count):
                record = json.dumps({"text": f"{number} {text}", "labels": ["a"]})
                file.write(f"{number} {text},a\n" if ending == "csv" else record + "\n")

    def peak(most):
        command = [sys.executable, "-c", READ, str(path), str(most), str(small)]
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
        count, megabytes = map(int, answer.stdout.split())
        assert count == 8000
        return megabytes

    # Of 88 MB of texts in memory, or stored on disk, and blocks of the file in several forms.
    assert peak(1 << 20) < 75 < 85 + 40 < peak(1 << 30)
