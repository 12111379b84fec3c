"""fastText files: one ``__label__one __label__two the text`` per line."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from treetop.data.dataset import Dataset, Split
from treetop.data.encodings import other_than_utf8
from treetop.data.files import encoding_of, first_line, lines_of, plain_name, split_files, write_lines
from treetop.data.holding import check_characters, labels_of, lines_of_text
from treetop.data.options import ReadOptions
from treetop.data.reading import Recognized
from treetop.errors import TreetopError
from treetop.runtime.texts import TextCollector

NAME = "fasttext"
USES = ("encoding",)
ABOUT = "fastText: __label__one __label__two and the text, one document per line"
PREFIX = "__label__"
SUFFIXES = (".ft", ".fasttext", ".txt", ".train")
BLANKS = re.compile(r"[ \t]+")


def fasttext_files(path: Path) -> dict[str, Path]:
    """Files of this format by split."""
    return split_files(path, lambda name: [name + suffix for suffix in SUFFIXES], looks_like_fasttext)


def looks_like_fasttext(path: Path) -> bool:
    """Whether a file is named as fastText's or begins with a label."""
    return plain_name(path).endswith((".ft", ".fasttext")) or first_line(path).startswith(PREFIX)


def matches(path: Path) -> bool:
    """Whether a file, or the files of a folder, are of this format."""
    return bool(fasttext_files(path))


def read(path: Path, options: ReadOptions) -> Dataset:
    """Read all splits."""
    files = fasttext_files(path)
    encodings = {name: encoding_of(file, options.encoding) for name, file in files.items()}
    splits = {
        name: read_labelled_lines(file, name == "train", encodings[name])
        for name, file in files.items()
    }
    reading = Recognized(encoding=other_than_utf8(encodings.values()), files=tuple(files.values()))
    return Dataset(NAME, splits, reading=reading)


def read_labelled_lines(path: Path, required: bool, encoding: str) -> Split:
    """Read texts and labels of one file; a file without any label is an error if `required`."""
    texts, labels = TextCollector(), list[list[str]]()
    for number, line in enumerate(lines_of(path, encoding), start=1):
        words, text = [], line
        while text.startswith(PREFIX):
            word, *rest = BLANKS.split(text, maxsplit=1)
            if word == PREFIX:
                raise TreetopError(f"{path}:{number}: {PREFIX} is not followed by a label")
            words.append(word.removeprefix(PREFIX))
            text = rest[0] if rest else ""
        texts.append(text)
        labels.append(list(dict.fromkeys(map(sys.intern, words))))
    if not len(texts):
        raise TreetopError(f"{path}: empty file: add at least one document")
    if not any(labels):
        if required:
            raise TreetopError(f"{path}:1: no line begins with {PREFIX}")
        return Split(texts.collected(), None)
    return Split(texts.collected(), labels)


def write(dataset: Dataset, folder: Path) -> None:
    """Write one file per split."""
    for name, split in dataset.splits.items():
        labels = labels_of(split, dataset.label_names, NAME)
        check_characters(labels, NAME, " \t\n\r")
        texts = lines_of_text(split, NAME)
        lines = (
            " ".join((*(PREFIX + label for label in line), text.lstrip(" \t")))
            for line, text in zip(labels, texts, strict=True)
        )
        write_lines(folder / f"{name}.ft", lines)
