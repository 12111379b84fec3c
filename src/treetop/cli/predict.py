"""What the command ``predict`` does."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import treetop
from treetop.cli import predicted
from treetop.cli.console import Console
from treetop.cli.documents import STDIN, Incoming, note_terminal, read_incoming
from treetop.cli.model_options import PredictOptions
from treetop.cli.paths import check_model, check_readable
from treetop.cli.predicted import PROBABILITY, SCORE
from treetop.data.compression import compressed, is_compressed
from treetop.features.given import TextsWithFeatures, parts_of
from treetop.features.words.tokens import blocks_of_text
from treetop.model.calibration import NOT_CALIBRATED
from treetop.runtime import Runtime
from treetop.runtime.anywhere import using_cluster
from treetop.runtime.files import STDOUT, replacing_file

# Predictions are computed and written in blocks of about this many characters, or this many rows.
BLOCK_CHARACTERS, BLOCK_ROWS = 1 << 20, 4096
# So many of them at once on a cluster, which divides them again.
BLOCKS_AT_ONCE = 64
TEXT = "text"  # the column of lines in CSV


def predict_file(options: PredictOptions, console: Console) -> None:
    """Predict and write block by block, so that lines of any number fit in memory."""
    check_model(options.model)
    if options.file != STDIN:
        check_readable(Path(options.file))
    note_terminal(options.file, console)
    # Bars would be drawn between predictions that go to the same terminal.
    output = options.output or STDOUT
    shown = console if output != STDOUT or not sys.stdout.isatty() else Console(-1)
    with shown.progress() as report:
        report.step("loading model")
        estimator = treetop.load(str(options.model))
        runtime = Runtime(cluster=options.cluster, reporter=report)
        incoming = read_incoming(options.file, options, options.split, estimator.model_, report)
        calibrated = estimator.model_.calibrated
        value = PROBABILITY if calibrated else SCORE
        header, line = line_maker(options, incoming, estimator.classes_, value)
        advance = report.step("predicting", block_count(incoming))
        count = 0
        scale = 1 if options.cluster is None else BLOCKS_AT_ONCE
        with using_cluster(runtime), writing_text(output) as out:
            out.write(header)
            for block, records in blocks_to_label(incoming, bool(header), scale):
                predictions = estimator.predict(
                    block,
                    options.k,
                    threshold=options.threshold if options.choose is None else options.choose,
                    precision=options.precision,
                    probability=calibrated,
                    beam=options.beam,
                    runtime=runtime,
                )
                for record, prediction in zip(records, predictions, strict=True):
                    out.write(line(record, prediction))
                count += len(records)
                report.figures(f"{count:,} text{'' if count == 1 else 's'}")
                advance()
    if not calibrated:
        console.note(NOT_CALIBRATED)


def line_maker(
    options: PredictOptions, incoming: Incoming, classes: Any, value: str
) -> tuple[str, predicted.Line]:
    """The first line of the output, if it has one, and what makes the lines of documents."""
    form = predicted.output_format(options.output, options.format)
    columns = predicted.column_names_of(incoming.records)
    if form == "csv":
        if is_lines(incoming):
            columns = [TEXT]
        delimiter = predicted.delimiter_for(options.output, incoming.delimiter)
        return predicted.csv_line(columns, delimiter, classes, value)
    return "", predicted.json_line(columns, value) if form == "jsonl" else predicted.tab_line


def is_lines(incoming: Incoming) -> bool:
    """Whether documents are lines of text, without columns."""
    return incoming.records is None and not hasattr(incoming.documents, "shape")


def is_rows(documents: Any) -> bool:
    """Whether documents are rows of a matrix, with or without texts."""
    return hasattr(documents, "shape") or isinstance(documents, TextsWithFeatures)


def block_count(incoming: Incoming) -> int | None:
    """About how many blocks there are; None if that is not known."""
    if incoming.size is None:
        return None
    return incoming.size // (BLOCK_ROWS if is_rows(incoming.documents) else BLOCK_CHARACTERS) + 1


def blocks_to_label(
    incoming: Incoming, with_text: bool, scale: int
) -> Iterator[tuple[Any, list[dict[str, Any]]]]:
    """Yield blocks of documents with their columns; a line is its only column, on request.

    `scale` is how many blocks are taken together.
    """
    documents: Any = incoming.documents
    blocks: Iterable[Any]
    if is_rows(documents):
        count = documents.shape[0] if hasattr(documents, "shape") else len(documents)
        rows = scale * BLOCK_ROWS
        blocks = (documents[start : start + rows] for start in range(0, count, rows))
    else:
        blocks = blocks_of_text(documents, scale * BLOCK_CHARACTERS)
    done = 0
    for block in blocks:
        count = block.shape[0] if hasattr(block, "shape") else len(block)
        if incoming.records is not None:
            yield block, incoming.records[done : done + count]
        elif with_text and is_lines(incoming):
            texts, _ = parts_of(block)
            yield block, [{TEXT: text} for text in texts or ()]
        else:
            yield block, [{}] * count
        done += count


@contextmanager
def writing_text(output: Any) -> Iterator[IO[str]]:
    """Open a file for text, compressed if its name says so, that replaces `output` at the end."""
    if not is_compressed(output):
        with replacing_file(output) as file:
            yield file
        return
    with (
        replacing_file(output, "wb") as raw,
        compressed(raw, output.suffix) as binary,
        io.TextIOWrapper(binary, "utf-8", errors="backslashreplace") as file,
    ):
        yield file
