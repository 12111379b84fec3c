"""The documents that a command labels: lines, or a split of a data set in any format."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import scipy.sparse as sp

from treetop.cli.console import Console
from treetop.cli.paths import read_data
from treetop.data import Dataset, Split, libsvm, textlines
from treetop.data.encodings import UTF8
from treetop.data.files import blocks_of, encoding_of, lines_of
from treetop.data.npz import load_matrix
from treetop.data.options import ANY_FEATURES, NO_FEATURES, ReadOptions
from treetop.data.read import check_used, recognized_format
from treetop.errors import TreetopError
from treetop.features.given import TextsWithFeatures, with_features
from treetop.model.predictor import Predictor
from treetop.runtime.progress import Reporter

STDIN = "-"


@dataclass(frozen=True)
class Incoming:
    """Documents to label, with the columns they came with.

    `size` is the number of characters of lines, as far as it is known without reading them, or of
    rows. `delimiter` is that of a CSV file.
    """

    documents: Iterable[str] | sp.csr_matrix | TextsWithFeatures
    size: int | None
    records: list[dict[str, Any]] | None = None
    delimiter: str | None = None


def read_incoming(
    source: str, options: ReadOptions, split: str | None, model: Predictor, report: Reporter
) -> Incoming:
    """Read what is to be labeled: standard input or text lines as a stream, anything else whole."""
    path = Path(source)
    is_file = source != STDIN and path.is_file()
    form = recognized_format(path) if is_file or (source != STDIN and path.is_dir()) else None
    if (not is_file and form is None) or (is_file and form in (None, textlines)):
        check_used(options, textlines.USES, f"{source}: text-lines")
        if split is not None:
            raise TreetopError(f"{source}: has lines, no splits: leave out --split")
        lines = lines_of_source(source, is_file, options.encoding, report)
        file = None if options.features in (ANY_FEATURES, NO_FEATURES) else Path(options.features)
        documents = lines_for(model, lines.documents, file)
        size = len(documents) if isinstance(documents, TextsWithFeatures) else lines.size
        return replace(lines, documents=documents, size=size)
    chosen = replace(options, keep_columns=True, with_labels=False)
    dataset = read_data(path, chosen, report)
    part = documents_for(model, dataset.splits[split_name(dataset, split)], dataset.format, report)
    size = len(part) if part.X is not None else sum(len(text) + 16 for text in part.texts or ())
    return Incoming(part.documents, size, part.records, dataset.reading.delimiter)


def lines_for(model: Predictor, lines: object, features: Path | None) -> Any:
    """Lines as the model takes them: with the rows of a file of features if it needs them."""
    if features is None:
        check_kind(model, texts=True, features=False)
        return lines
    check_kind(model, texts=True, features=True)
    return with_features(lines, load_matrix(features)) if model.needs_features else lines


def lines_of_source(source: str, is_file: bool, encoding: str | None, report: Reporter) -> Incoming:
    """Lines of a file, a pipe or standard input."""
    if not is_file:
        return Incoming(lines_from(source, encoding or UTF8), None)
    encoding = encoding_of(Path(source), encoding)
    if encoding != UTF8:
        report.note(f"{source}: text-lines (encoding {encoding})")
    size = sum(len(block) + 15 * block.count(b"\n") for _, block in blocks_of(Path(source)))
    return Incoming(lines_from(source, encoding), size)


def note_terminal(source: str, console: Console) -> None:
    """Say that a command waits for texts to be typed, instead of waiting silently."""
    if source == STDIN and sys.stdin.isatty():
        console.note("reading texts from the terminal; end the input with Ctrl-D")


def lines_from(source: str, encoding: str = UTF8) -> Iterator[str]:
    """Lines of a file, or of standard input."""
    if source != STDIN:
        yield from lines_of(Path(source), encoding)
        return
    number = 0
    try:
        for number, line in enumerate(decoded_lines(sys.stdin.buffer, encoding)):
            yield (line if number else line.removeprefix("\ufeff")).rstrip("\r\n")
            number += 1
    except UnicodeError:
        raise TreetopError(
            f"standard input:{number + 1}: not {encoding.upper()}: convert it first, as with "
            "iconv -t utf-8, or give its --encoding"
        ) from None


def decoded_lines(file: IO[bytes], encoding: str) -> Iterator[str]:
    """Lines of a stream, each as soon as it is there; those of UTF-16 cannot be divided as bytes."""
    if "\n".encode(encoding) == b"\n":
        yield from (line.decode(encoding) for line in file)
        return
    decoder, rest = codecs.getincrementaldecoder(encoding)(), ""
    while block := file.read(1 << 16):
        *lines, rest = (rest + decoder.decode(block)).split("\n")
        yield from lines
    if rest := rest + decoder.decode(b"", final=True):
        yield rest


def split_name(dataset: Dataset, name: str | None) -> str:
    """The split asked for, if it exists; by default the one for tests, or the only one."""
    known = ", ".join(dataset.splits)
    if name is None and len(dataset.splits) > 1 and "test" not in dataset.splits:
        raise TreetopError(f"the data has the splits {known}: choose one with --split")
    if name is None:
        name = "test" if "test" in dataset.splits else next(iter(dataset.splits))
    if name not in dataset.splits:
        raise TreetopError(f"the data has no split {name}: choose one of {known} with --split")
    return name


def documents_for(model: Predictor, split: Split, form: str, report: Reporter) -> Split:
    """A split as the model takes it: with its texts, its features or both; raise if it lacks them.

    Files of libsvm do not say how many features there are: one may have fewer than the model, and
    features that the model has not seen are left out.
    """
    check_kind(model, split.texts is not None, split.X is not None)
    if split.texts is not None and split.X is not None:
        if not model.needs_features:
            report.note(
                "the model computes its features from the texts: the precomputed ones are ignored"
            )
            return replace(split, X=None)
        return split if model.reads_texts else replace(split, texts=None)
    if split.X is None or form != libsvm.NAME:
        return split
    width = sum(model.widths)
    unknown = max(0, split.X.shape[1] - width)
    if unknown:
        report.note(f"features from {width:,} on are left out: the model was trained without them")
        return replace(split, X=split.X[:, :width])
    cells = (split.X.data, split.X.indices, split.X.indptr)
    return replace(split, X=sp.csr_matrix(cells, shape=(split.X.shape[0], width)))


def check_kind(model: Predictor, texts: bool, features: bool) -> None:
    """Raise unless a model takes what is given: texts, features, or texts with features."""
    if texts >= model.reads_texts and features >= model.needs_features:
        return
    wanted, given = kind_name(model.reads_texts, model.needs_features), kind_name(texts, features)
    if model.reads_texts and texts:
        raise TreetopError(
            f"the model takes {wanted}, but the data has {given}: give the features with --features, "
            "or train a model with --features none"
        )
    raise TreetopError(
        f"the model takes {wanted}, but the data has {given}: give {wanted}, or train a model on "
        f"{given}"
    )


def kind_name(texts: bool, features: bool) -> str:
    """What a model takes or a data set has, in words."""
    if texts and features:
        return "texts with precomputed features"
    return "texts" if texts else "features"
