"""Mutated data files, each read in a process of its own: read right, or refused in one line.

`benchmarks/fuzz_data.py` runs thousands of them, `test_mutants.py` some.
"""

import bz2
import gzip
import io
import json
import lzma
import os
import random
import resource
import selectors
import signal
import time
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import zstandard

import treetop
from treetop.data import Dataset, Split, open_data
from treetop.data.convert import convert
from treetop.errors import TreetopError

COMPRESSIONS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda content: zstandard.ZstdCompressor(write_checksum=True).compress(content),
}
# What numbers and words are replaced by.
EXTREMES = (
    b"-1 0 1 2147483647 2147483648 -9223372036854775808 99999999999999999999 1e999 nan -inf 0x7f 1_0"
)
TOKENS = [
    *EXTREMES.split(),
    *(b'"', b"'", b",", b";", b"\t", b"\n", b"\r", b"\0", b"[", b"]", b"{", b"}", b":", b"<", b">"),
    *(
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\xc3",
        b"\xed\xa0\x80",
        "é".encode(),
        b"__label__",
        b"\\ud800",
        b"|",
    ),
]
MOST_COLUMNS = 1 << 20  # of matrices that are trained on
MEMORY = 256 << 20  # more than the data explains
SECONDS = 30
# Endings of an answer: what the process that read a data set says about it.
FINE = ("read", "refused")


def seed_data(folder: Path) -> list[str]:
    """Write a small data set in every format, and some compressed or in other encodings."""
    texts = [f"red apple {n} café" if n % 3 else f"blue sky {n}, grass" for n in range(12)]
    labels = [["fruit", "red"] if n % 3 else ["sky", "blue", f"l{n % 2}"] for n in range(12)]
    splits = {"train": Split(texts, labels), "test": Split(texts[:3], labels[:3])}
    forms = ["text-lines", "csv", "tsv", "jsonl", "parquet", "lf", "pecos", "annif", "attentionxml"]
    for form in (*forms, "fasttext"):
        convert(Dataset("x", splits), folder / form, form)
    X = sp.random(12, 9, 0.4, "csr", np.float32, random_state=0)
    Y = sp.csr_matrix(np.eye(4, dtype=np.float32)[[n % 4 for n in range(12)]])
    matrices = {"train": Split(None, None, X, Y), "test": Split(None, None, X[:3], Y[:3])}
    for form in ("xmlrepo", "xmlrepo-split", "libsvm"):
        convert(Dataset("x", matrices, ["a", "b", "c", "d"]), folder / form, form)
    add_other_forms(folder, texts, labels, X, Y)
    return sorted(path.name for path in folder.iterdir())


def add_other_forms(folder: Path, texts, labels, X, Y) -> None:
    """Write the data in formats that have no writer, compressed, and in other encodings."""
    for name in ("npz", "coo", "json", "xlsx", "semicolons", "utf-16", "cp1252", "annif-full", "arrow"):
        (folder / name).mkdir()
    for form, name in ((X, "npz"), (X.tocoo(), "coo")):
        sp.save_npz(folder / name / "X.npz", form, compressed=name == "npz")
        sp.save_npz(folder / name / "Y.npz", Y.tocsc(), compressed=name == "npz")
    records = [
        {"id": n, "text": text, "labels": [{"uri": f"u:{name}", "label": name} for name in line]}
        for n, (text, line) in enumerate(zip(texts, labels, strict=True))
    ]
    (folder / "json" / "train.json").write_text(json.dumps(records, indent=1))
    rows = [["text", "labels", "n"], *([t, ";".join(y), 1] for t, y in zip(texts, labels, strict=True))]
    table = "\n".join(";".join(f'"{cell}"' for cell in row) for row in rows)
    (folder / "semicolons" / "train.csv").write_text(table)
    (folder / "utf-16" / "train.csv").write_text(table, "utf-16")
    (folder / "cp1252" / "train.csv").write_text(table, "cp1252")
    write_excel(folder / "xlsx" / "train.xlsx", rows)
    write_arrow(folder / "arrow", texts, labels)
    for number, (text, line) in enumerate(zip(texts, labels, strict=True)):
        (folder / "annif-full" / f"{number:02}.txt").write_text(text)
        subjects = "".join(f"<u:{name}>\t{name}\n" for name in line)
        (folder / "annif-full" / f"{number:02}.tsv").write_text(subjects)
    for ending, compress in COMPRESSIONS.items():
        inner = folder / f"text-lines{ending}"
        inner.mkdir()
        for source in sorted((folder / "text-lines").iterdir()):
            (inner / f"{source.name}{ending}").write_bytes(compress(source.read_bytes() * 2))


def write_excel(path: Path, rows) -> None:
    """Write an Excel file."""
    import openpyxl

    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)


def write_arrow(folder: Path, texts, labels) -> None:
    """Write a folder as Hugging Face datasets does."""
    import pyarrow as pa

    table = pa.table({"text": texts, "labels": labels})
    with (
        pa.OSFile(str(folder / "data.arrow"), "wb") as sink,
        pa.ipc.new_stream(sink, table.schema) as out,
    ):
        out.write_table(table)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data.arrow"}]}))


def mutate(content: bytes, other: bytes, rng: random.Random) -> bytes:
    """Change a file once or several times; `other` is another file to take parts from."""
    changes = [flipped, cut, without_part, doubled, spliced, with_token, with_lines_moved, renumbered]
    if content[:2] == b"PK" and rng.random() < 0.6:
        try:
            return rezipped(content, rng)
        except Exception:  # the archive is too damaged to be opened
            pass
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        content = rng.choice(changes)(content, other, rng)
    return content


def flipped(content: bytes, other: bytes, rng: random.Random) -> bytes:
    """Some bytes changed."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 3, 20))):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def span(content: bytes, rng: random.Random) -> tuple[int, int]:
    """A part of a file."""
    start = rng.randrange(len(content) + 1)
    return start, min(len(content), start + rng.choice((1, 4, 40, len(content))))


def cut(content: bytes, other: bytes, rng: random.Random) -> bytes:
    """Truncated."""
    return content[: rng.randrange(len(content) + 1)]


def without_part(content: bytes, other: bytes, rng: random.Random) -> bytes:
    """A part left out."""
    start, end = span(content, rng)
    return content[:start] + content[end:]


def doubled(content: bytes, other: bytes, rng: random.Random) -> bytes:
    """A part repeated."""
    start, end = span(content, rng)
    return content[:end] + content[start:end] * rng.choice((1, 1, 50)) + content[end:]


def spliced(content: bytes, other: bytes, rng: random.Random) -> bytes:
    """A part of another file put in."""
    at, (start, end) = rng.randrange(len(content) + 1), span(other, rng)
    return content[:at] + other[start:end] + content[at:]


def with_token(content: bytes, other: bytes, rng: random.Random) -> bytes:
    """A number or a character that means something put in."""
    at = rng.randrange(len(content) + 1)
    return content[:at] + rng.choice(TOKENS) + content[at:]


def with_lines_moved(content: bytes, other: bytes, rng: random.Random) -> bytes:
    """Lines doubled, exchanged or left out."""
    lines = content.split(b"\n")
    for _ in range(rng.choice((1, 3))):
        a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
        how = rng.randrange(3)
        if how == 0:
            lines[a], lines[b] = lines[b], lines[a]
        elif how == 1:
            lines.insert(a, lines[b])
        elif len(lines) > 1:
            del lines[a]
    return b"\n".join(lines)


def renumbered(content: bytes, other: bytes, rng: random.Random) -> bytes:
    """A number replaced by an extreme one."""
    places = [at for at, byte in enumerate(content) if chr(byte).isdigit()]
    if not places:
        return with_token(content, other, rng)
    start = end = rng.choice(places)
    while end < len(content) and chr(content[end]).isdigit():
        end += 1
    return content[:start] + rng.choice(EXTREMES.split()) + content[end:]


def rezipped(content: bytes, rng: random.Random) -> bytes:
    """A zip file with a changed member and right checksums; arrays of .npz get other numbers."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    name = rng.choice(sorted(members))
    if name.endswith(".npy") and rng.random() < 0.7:
        members[name] = with_other_numbers(members[name], rng)
    else:
        members[name] = mutate(members[name], rng.choice(list(members.values())), rng)
    if rng.random() < 0.1:
        del members[rng.choice(sorted(members))]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, inner in members.items():
            archive.writestr(member, inner)
    return buffer.getvalue()


def with_other_numbers(content: bytes, rng: random.Random) -> bytes:
    """An array with extreme numbers, another type or another shape."""
    array = np.lib.format.read_array(io.BytesIO(content))
    how = rng.randrange(4)
    if how < 2 and array.size and array.dtype.kind in "iuf":
        array = array.copy()
        largest = np.iinfo(array.dtype).max if array.dtype.kind in "iu" else np.inf
        array.flat[rng.randrange(array.size)] = rng.choice((0, -1, largest, 3, 10_000_000))
    elif how == 2:
        array = array.astype(
            rng.choice(("i1", "i8", "f4", "u8", "f8", "c8", "U3", "?", ">i4", "M8[s]"))
        )
    elif array.size:
        array = rng.choice(
            (array[:-1] if array.ndim else array, array[None], np.resize(array, 7), array.ravel())
        )
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array)
    return buffer.getvalue()


def write_mutant(seeds: Path, name: str, target: Path, rng: random.Random) -> None:
    """Copy a data set with one or two of its files changed."""
    files = sorted(path for path in (seeds / name).rglob("*") if path.is_file())
    others = sorted(path for path in seeds.rglob("*") if path.is_file())
    changed = {rng.choice(files) for _ in range(rng.choice((1, 1, 2)))}
    for path in files:
        content = path.read_bytes()
        if path in changed:
            content = mutate(content, rng.choice(others).read_bytes(), rng)
        place = target / path.relative_to(seeds / name)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


def judge(folder: Path) -> str:
    """Read a data set and train on it: ``read``, ``refused``, or what went wrong."""
    before = peak_memory()
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    try:
        dataset = open_data(folder)
        reason = wrong_part(dataset)
        if reason is None:
            learn(dataset)
    except TreetopError as error:
        lines = str(error).splitlines()
        return "refused" if len(lines) == 1 else f"refused in {len(lines)} lines: {error}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    finally:
        grown = peak_memory() - before
    if grown > MEMORY + 50 * size and reason is None:
        reason = f"took {grown >> 20} MiB for {size:,} bytes"
    return reason or "read"


def peak_memory() -> int:
    """The most memory that this process has taken, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def wrong_part(dataset: Dataset) -> str | None:
    """What cannot be right in a data set that was read; None if it is consistent."""
    for name, split in dataset.splits.items():
        count = len(split)
        if split.texts is not None and not all(type(text) is str for text in split.texts):
            return f"{name}: a text is not a string"
        if split.texts is not None:
            "".join(split.texts).encode()  # half of a surrogate pair raises
        if split.labels is not None:
            if len(split.labels) != count:
                return f"{name}: {len(split.labels)} lists of labels for {count} documents"
            if any(len(set(line)) != len(line) or not all(line) for line in split.labels):
                return f"{name}: a label is empty or occurs twice in a document"
        for matrix in (split.X, split.Y):
            if matrix is not None and (reason := wrong_matrix(matrix, count)):
                return f"{name}: {reason}"
    names, widths = (
        dataset.label_names,
        {s.Y.shape[1] for s in dataset.splits.values() if s.Y is not None},
    )
    if len(widths) > 1 or (names is not None and widths and len(names) not in widths):
        return f"label matrices are {widths} wide, with {None if names is None else len(names)} names"
    return None


def wrong_matrix(matrix: sp.csr_matrix, rows: int) -> str | None:
    """What cannot be right in a matrix; None if it is consistent."""
    if matrix.shape[0] != rows:
        return f"{matrix.shape[0]} rows for {rows} documents"
    pointers, indices = matrix.indptr, matrix.indices
    if pointers[0] != 0 or (np.diff(pointers) < 0).any() or pointers[-1] > indices.size:
        return "wrong pointers"
    if indices.size and not 0 <= indices.min() <= indices.max() < matrix.shape[1]:
        return "an index is out of range"
    return None if np.isfinite(matrix.data).all() else "a value is not finite"


def learn(dataset: Dataset) -> None:
    """Train a small model, and label the documents of all splits."""
    split = dataset.splits.get("train")
    wide = [s.X.shape[1] for s in dataset.splits.values() if s.X is not None]
    tall = [s.Y.shape[1] for s in dataset.splits.values() if s.Y is not None]
    if split is None or not split.has_labels or max([*wide, *tall, 0]) > MOST_COLUMNS:
        return
    model = treetop.XRLinear(trees=1, passes=2, threads=1)
    names = None if split.labels is not None else dataset.label_names
    model.fit(split.documents, split.given_labels, label_names=names)
    for part in dataset.splits.values():
        model.predict(part.documents, 3, threads=1)


def answers(folders, seconds: float = SECONDS):
    """Yield the folders with what `judge` says of each, in a process of its own, or how that ended."""
    for folder in folders:
        reading, writing = os.pipe()
        process = os.fork()
        if process == 0:
            os.close(reading)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            answer = judge(folder)
            os.write(writing, answer[:500].encode("utf-8", "replace"))
            os._exit(0)
        os.close(writing)
        yield folder, answer_of(process, reading, seconds)


def answer_of(process: int, pipe: int, seconds: float) -> str:
    """What a process writes to a pipe, how it died, or that it takes too long."""
    parts, ends = [], time.monotonic() + seconds
    with selectors.DefaultSelector() as selector, os.fdopen(pipe, "rb", 0) as file:
        selector.register(file, selectors.EVENT_READ)
        while selector.select(max(0.0, ends - time.monotonic())):
            if not (part := file.read(4096)):
                break
            parts.append(part)
        else:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return f"hang: no answer within {seconds:g} s"
    status = os.waitpid(process, 0)[1]
    if os.WIFSIGNALED(status):
        return f"crash: {signal.Signals(os.WTERMSIG(status)).name}"
    return b"".join(parts).decode() or f"crash: exit code {os.waitstatus_to_exitcode(status)}"


def counts_of(told) -> dict[str, dict[str, int]]:
    """Numbers of answers by format: read, refused and others."""
    counts: dict[str, Counter] = {}
    for name, answer in told:
        counts.setdefault(name, Counter())[answer if answer in FINE else "others"] += 1
    return {name: dict(sorted(counts[name].items())) for name in sorted(counts)}
