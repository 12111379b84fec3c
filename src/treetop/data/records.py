"""The records of CSV, TSV, JSON and Excel files, with their line numbers."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from treetop.data.encodings import UTF8
from treetop.data.files import lines_of
from treetop.errors import TreetopError
from treetop.runtime.extras import require

DELIMITERS = (",", ";", "\t", "|")  # of columns, in CSV files
LINES_COMPARED = 200  # that decide about the delimiter
EXCEL_SAYS = re.compile(r"sep=(.)")

Record = dict[str, object]  # values by column
Numbered = Iterator[tuple[int, Record]]


def delimiter_of(path: Path, encoding: str, known: set[str]) -> str:
    """The delimiter that finds the most known column names, fits most rows, and finds most columns."""
    lines = list(islice(lines_of(path, encoding), LINES_COMPARED))
    if lines and (said := EXCEL_SAYS.fullmatch(lines[0])):
        return said[1]
    first = "\t" if ".tsv" in path.name.lower() else ","

    def fit(delimiter: str) -> tuple[int, float, int]:
        rows: list[list[str]] = []
        try:
            rows.extend(csv.reader((line + "\n" for line in lines), delimiter=delimiter))
        except csv.Error:
            return 0, 0.0, 0
        rows = [row for row in rows if row]
        if not rows:
            return 0, 0.0, 0
        names = {name.strip().lower() for name in rows[0]}
        # The last row may have been cut in the middle of a quoted field.
        same = sum(len(row) == len(rows[0]) for row in rows[:-1] or rows)
        return len(names & known), same / len(rows), len(rows[0])

    return max(dict.fromkeys((first, *DELIMITERS)), key=fit)


def csv_records(path: Path, delimiter: str, encoding: str = UTF8) -> Numbered:
    """Yield the records of a CSV or TSV file with the number of the line they end on."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    lines = (line + "\n" for line in lines_of(path, encoding))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        header = next(reader, None)
        if header is not None and EXCEL_SAYS.fullmatch(delimiter.join(header)):
            header = next(reader, None)
        if header is None:
            raise TreetopError(f"{path}: empty file: add at least one document")
        names = distinct_names(header)
        for row in reader:
            if not row:
                continue  # an empty line
            if len(row) != len(header):
                raise TreetopError(
                    f"{path}:{reader.line_num}: {len(row)} fields, but the header has "
                    f"{len(header)}: quote fields that contain the delimiter"
                )
            yield reader.line_num, dict(zip(names, row, strict=True))
    except csv.Error as error:
        reason = str(error)
        if "new-line character" in reason:  # a carriage return
            reason = "a line ends in CR alone: end lines in LF, or quote fields with line breaks"
        raise TreetopError(f"{path}:{reader.line_num}: {reason}") from None


def distinct_names(header: list[str]) -> list[str]:
    """Column names made distinct: a name that occurs before gets the number of its column."""
    names: dict[str, None] = {}
    for number, name in enumerate(header, start=1):
        name = name or f"column {number}"
        names[name if name not in names else f"{name} ({number})"] = None
    return list(names)


def repeated_names(names: Iterable[str]) -> set[str]:
    """The names that `distinct_names` had to number, as they are in the header."""
    known = set(names)
    matches = (re.fullmatch(r"(.*) \(\d+\)", name, re.S) for name in known)
    return {match[1] for match in matches if match and match[1] in known}


def json_records(path: Path, encoding: str = UTF8) -> Numbered:
    """Yield the JSON objects of a file, one per line or in one array, with their line numbers."""
    lines = enumerate(lines_of(path, encoding), start=1)
    is_first = True
    for number, line in lines:
        if is_first and line.lstrip().startswith("["):
            yield from array_records(path, number, "\n".join([line, *(rest for _, rest in lines)]))
            return
        if line.strip():
            is_first = False
            yield number, checked_record(path, number, parsed_json(path, number, line))


def parsed_json(path: Path, number: int, line: str) -> Any:
    """Parse a line as JSON."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        reason = error if isinstance(error, ValueError) else "nested too deeply"
        raise TreetopError(
            f"{path}:{number}: not valid JSON ({reason}): write one object per line, or one array"
        ) from None


def array_records(path: Path, first: int, text: str) -> Numbered:
    """Yield the objects of a JSON array, with the numbers of the lines they begin on."""
    decoder, at, number = json.JSONDecoder(), text.index("[") + 1, first
    opened = skip_space(text, at)
    if text[opened : opened + 1] == "]":
        return
    while True:
        start = skip_space(text, at)
        number += text.count("\n", at, start)
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            raise TreetopError(
                f"{path}:{number}: not valid JSON: expected an object of the array"
            ) from None
        yield number, checked_record(path, number, value)
        at = skip_space(text, end)
        number += text.count("\n", start, at)
        if text[at : at + 1] == ",":
            at += 1
            continue
        if text[at : at + 1] != "]" or text[at + 1 :].strip():
            raise TreetopError(f"{path}:{number}: not valid JSON: expected a comma or ]")
        return


def skip_space(text: str, at: int) -> int:
    """The next place that is not white space."""
    match = re.compile(r"\s*").match(text, at)
    return match.end() if match else at


def checked_record(path: Path, number: int, value: object) -> Record:
    """A JSON value if it is an object of valid Unicode."""
    if not isinstance(value, dict):
        raise TreetopError(f"{path}:{number}: expected a JSON object")
    try:
        json.dumps(value, ensure_ascii=False).encode(UTF8)
    except UnicodeEncodeError:
        raise TreetopError(
            f"{path}:{number}: contains half of a surrogate pair, which is not valid Unicode: "
            "write the file again"
        ) from None
    return value


def excel_records(path: Path, note: Callable[[str], None]) -> Numbered:
    """Yield the records of the first sheet of an Excel file, with their row numbers."""
    openpyxl = require(".xlsx files", "excel", "openpyxl")
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        sheet = book.worksheets[0]
        rows = [list(row) for row in sheet.iter_rows(values_only=True)]
    except Exception as error:  # openpyxl raises whatever it meets in a damaged file
        reason = " ".join(str(error).split())[:200]
        raise TreetopError(f"{path}: not readable ({reason}): save it again, or as CSV") from None
    if len(book.worksheets) > 1:
        note(f"{path}: only the first sheet is read, {sheet.title!r} of {len(book.worksheets)}")
    filled = (
        (number, row) for number, row in enumerate(rows, 1) if any(cell is not None for cell in row)
    )
    _, header = next(filled, (0, []))
    while header and header[-1] is None:
        header.pop()
    names = distinct_names(["" if name is None else str(name) for name in header])
    for number, row in filled:
        cells = ("" if cell is None else cell for cell in row)
        plain = (cell if isinstance(cell, int | float) else str(cell) for cell in cells)
        yield number, dict(zip(names, plain, strict=False))
