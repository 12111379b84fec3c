"""Annif corpora: short texts as TSV (``text ⇥ <uri> <uri>``), full texts as a folder of files.

A vocabulary in the same folder (one ``<uri> ⇥ label`` per line) names the labels.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from treetop.data.compression import open_bytes
from treetop.data.dataset import SPLITS, Dataset, Split
from treetop.data.files import find_file, first_line, lines_of, plain_name, split_files, write_lines
from treetop.data.holding import check_characters, labels_of, lines_of_text
from treetop.data.options import ReadOptions
from treetop.data.reading import Recognized
from treetop.errors import TreetopError
from treetop.runtime.texts import TextCollector

NAME = "annif"
ABOUT = "Annif: TSV with text and <uri> <uri>, or a folder with a .txt and a .tsv or .key per document"
SHORT_TEXT = re.compile(r"[^\t]*\t\s*<[^>\t]+>(\s+<[^>\t]+>)*\s*")
VOCABULARY = re.compile(r"<([^>\t]+)>\t([^\t]+)(\t.*)?")
URIS = re.compile(r"<([^>\t]+)>")
VOCABULARIES = ("vocabulary.tsv", "vocab.tsv", "subjects.tsv")


def short_texts(path: Path) -> dict[str, Path]:
    """Files of short texts by split."""
    return split_files(path, lambda name: [f"{name}.tsv"], starts_with_short_text)


def starts_with_short_text(path: Path) -> bool:
    """Whether the first line of a TSV file is a text and URIs in angle brackets."""
    return plain_name(path).endswith(".tsv") and bool(SHORT_TEXT.fullmatch(first_line(path)))


def full_texts(path: Path) -> dict[str, Path]:
    """Folders of full texts by split; a folder without splits is ``train``."""
    if not path.is_dir():
        return {}
    found = {name: path / name for name in SPLITS if holds_documents(path / name)}
    return found or ({"train": path} if holds_documents(path) else {})


def holds_documents(folder: Path) -> bool:
    """Whether at least half of the texts in a folder have a file of subjects of the same name."""
    texts = list(folder.glob("*.txt")) if folder.is_dir() else []
    named_as_splits = any(text.stem in SPLITS for text in texts)
    with_subjects = sum(subject_file(text) is not None for text in texts)
    return not named_as_splits and 0 < len(texts) <= 2 * with_subjects


def subject_file(text: Path) -> Path | None:
    """The file of subjects of a text, if it has one."""
    candidates = (text.with_suffix(suffix) for suffix in (".tsv", ".key"))
    return next((path for path in candidates if path.is_file()), None)


def matches(path: Path) -> bool:
    """Whether a file or folder is of this format."""
    return bool(short_texts(path) or full_texts(path))


def read(path: Path, options: ReadOptions) -> Dataset:
    """Read all splits, with label names from the vocabulary if there is one."""
    names = read_vocabulary(path if path.is_dir() else path.parent)
    found = short_texts(path)
    if found:
        splits = {name: read_short(file, names) for name, file in found.items()}
    else:
        found = full_texts(path)
        splits = {name: read_full(folder, names, options) for name, folder in found.items()}
    return Dataset(NAME, splits, reading=Recognized(files=tuple(found.values())))


def read_vocabulary(folder: Path) -> dict[str, str]:
    """Label names by URI. If two URIs have the same name, the second one is named by its URI."""
    path = find_file(folder, *VOCABULARIES)
    names: dict[str, str] = {}
    taken: set[str] = set()
    for number, line in enumerate(lines_of(path) if path else (), start=1):
        entry = VOCABULARY.fullmatch(line)
        if entry is None:
            raise TreetopError(f"{path}:{number}: expected <uri>, a tab and a label")
        uri, label = entry[1], entry[2]
        names[uri] = uri if label in taken else label
        taken.add(names[uri])
    return names


def read_short(path: Path, names: dict[str, str]) -> Split:
    """Read texts and labels of one file."""
    texts, labels = TextCollector(), list[list[str]]()
    for number, line in enumerate(lines_of(path), start=1):
        text, tab, uris = line.partition("\t")
        if not tab:
            raise TreetopError(f"{path}:{number}: expected a text, a tab and <uri> <uri> …")
        if URIS.sub("", uris).strip():
            raise TreetopError(
                f"{path}:{number}: subjects must be URIs in angle brackets: {uris[:60]!r}"
            )
        texts.append(text)
        own = map(sys.intern, dict.fromkeys(URIS.findall(uris)))
        labels.append([names.get(uri, uri) for uri in own])
    return Split(texts.collected(), labels)


def read_full(folder: Path, names: dict[str, str], options: ReadOptions) -> Split:
    """Read texts and subjects of a folder, in the order of file names, which may be kept."""
    texts, labels = TextCollector(), list[list[str]]()
    kept: list[dict[str, object]] | None = [] if options.keep_columns else None
    for path in sorted(folder.glob("*.txt")):
        subjects = subject_file(path)
        if subjects is None:
            raise TreetopError(f"{path}: has no file of subjects (.tsv or .key) of the same name")
        texts.append(read_text(path))
        if kept is not None:
            kept.append({"file": path.name})
        labels.append(read_subjects(subjects, names))
    return Split(texts.collected(), labels, records=kept)


def read_text(path: Path) -> str:
    """Read a whole file as text."""
    with open_bytes(path) as file:
        try:
            return file.read().decode("utf-8").removeprefix("\ufeff")
        except UnicodeDecodeError as error:
            raise TreetopError(f"{path}: not UTF-8 at byte {error.start + 1}") from None


def read_subjects(path: Path, names: dict[str, str]) -> list[str]:
    """Read the subjects of one document: a ``<uri> ⇥ label`` (.tsv) or a label (.key) per line."""
    subjects = []
    for number, line in enumerate(lines_of(path), start=1):
        if not line.strip():
            continue
        if path.suffix == ".key":
            subjects.append(line.strip())
            continue
        entry = URIS.match(line)
        if entry is None:
            raise TreetopError(f"{path}:{number}: expected <uri>, a tab and a label")
        label = line[entry.end() :].strip()
        subjects.append(names.get(entry[1], label or entry[1]))
    return list(dict.fromkeys(subjects))


def write(dataset: Dataset, folder: Path) -> None:
    """Write short texts, one file per split, with label names in place of URIs."""
    for name, split in dataset.splits.items():
        labels = labels_of(split, dataset.label_names, NAME)
        check_characters(labels, NAME, "<>\t\n\r")
        texts = (text.replace("\t", " ") for text in lines_of_text(split, NAME))
        lines = (
            text + "\t" + " ".join(f"<{uri}>" for uri in line)
            for text, line in zip(texts, labels, strict=True)
        )
        write_lines(folder / f"{name}.tsv", lines)
