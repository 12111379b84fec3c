"""fastText's lines: ``__label__one __label__two the text``."""

from __future__ import annotations

import re
from pathlib import Path

from treetop.data.dataset import SPLITS, Columns, Dataset, Split
from treetop.data.files import find_file, if_any_fits, lines_of, plain_name, write_lines
from treetop.data.holding import check_characters, labels_of, lines_of_text
from treetop.data.pairs import first_line
from treetop.errors import TreetopError

NAME = "fasttext"
ABOUT = "fastText: __label__one __label__two, then the text, a line a document"
PREFIX = "__label__"
ENDINGS = (".ft", ".fasttext", ".txt", ".train")
BLANKS = re.compile(r"[ \t]+")


def fasttext_files(path: Path) -> dict[str, Path]:
    """Files of this format in a folder, or the file itself as ``train``."""
    if path.is_file():
        named_so = plain_name(path).endswith((".ft", ".fasttext"))
        return {"train": path} if named_so or first_line(path).startswith(PREFIX) else {}
    found = {name: find_file(path, *(name + ending for ending in ENDINGS)) for name in SPLITS}
    return if_any_fits(found, lambda file: bool(fasttext_files(file)))


def matches(path: Path) -> bool:
    """Whether a file, or those of a folder, are of this format."""
    return bool(fasttext_files(path))


def read(path: Path, _: Columns) -> Dataset:
    """All splits that are there."""
    return Dataset(
        NAME, {n: read_labelled_lines(file, n == "train") for n, file in fasttext_files(path).items()}
    )


def read_labelled_lines(path: Path, needed: bool) -> Split:
    """Texts and labels of one file; labels may be `needed`."""
    texts, labels = [], []
    for number, line in enumerate(lines_of(path), start=1):
        words, text = [], line
        while text.startswith(PREFIX):
            word, *rest = BLANKS.split(text, maxsplit=1)
            if word == PREFIX:
                raise TreetopError(f"{path}:{number}: {PREFIX} without a name")
            words.append(word.removeprefix(PREFIX))
            text = rest[0] if rest else ""
        texts.append(text)
        labels.append(list(dict.fromkeys(words)))
    if not texts:
        raise TreetopError(f"{path}: empty file")
    if not any(labels):
        if needed:
            raise TreetopError(f"{path}:1: no line begins with {PREFIX}")
        return Split(texts, None)
    return Split(texts, labels)


def write(dataset: Dataset, folder: Path) -> None:
    """A file for each split."""
    for name, split in dataset.splits.items():
        labels = labels_of(split, dataset.label_names, NAME)
        check_characters(labels, NAME, " \t\n\r")
        texts = lines_of_text(split, NAME)
        lines = (
            " ".join((*(PREFIX + one for one in line), text.lstrip(" \t")))
            for line, text in zip(labels, texts, strict=True)
        )
        write_lines(folder / f"{name}.ft", lines)
