"""A training run that can go on after it was killed: finished stages, kept in a folder.

A stage's file carries the fingerprint of all it depends on: the data, some settings, and the stages
before it. A stage whose fingerprint is the same is read back, any other is done again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from treetop import __version__, store
from treetop.errors import TreetopError

Arrays = dict[str, np.ndarray]
MARK = "fingerprint"
FACTS = "run.json"


class Run:
    """The stages of one training; without a folder nothing is kept."""

    def __init__(self, folder: Path | None = None, data: str = "", resume: bool = False) -> None:
        self.folder = folder
        self.prints: dict[str, str] = {"data": data}
        if folder is None:
            return
        try:
            self._open(folder, data, resume)
        except OSError as error:
            raise TreetopError(f"{folder}: cannot be used for a run ({error.strerror})") from None

    def _open(self, folder: Path, data: str, resume: bool) -> None:
        if folder.exists() and not (folder / FACTS).is_file() and any(folder.iterdir()):
            raise TreetopError(f"{folder}: exists and is not the folder of a run: choose another place")
        if folder.exists() and not resume:
            shutil.rmtree(folder)
        folder.mkdir(parents=True, exist_ok=True)
        facts = folder / FACTS
        if facts.is_file():
            if json.loads(facts.read_text("utf-8")).get("data") != data:
                raise TreetopError(
                    f"{folder}: this run began on other data: do not resume it, or give that data"
                )
        else:
            write_whole(facts, lambda path: path.write_text(json.dumps({"data": data}) + "\n", "utf-8"))

    def fingerprint(self, name: str, settings: dict[str, Any], after: Iterable[str]) -> str:
        """What a stage depends on, as a short text; remembered under the stage's name."""
        before = [self.prints[stage] for stage in after]
        text = json.dumps([__version__, name, settings, before], sort_keys=True, default=str)
        self.prints[name] = hashlib.sha256(text.encode()).hexdigest()[:32]
        return self.prints[name]

    def stage(
        self, name: str, settings: dict[str, Any], after: Iterable[str], make: Callable[[], Arrays]
    ) -> Arrays:
        """The arrays of a stage: read back if it was done before with the same settings, else made."""
        mark = self.fingerprint(name, settings, after)
        if self.folder is None:
            return make()
        path = self.folder / f"{name}.safetensors"
        if (found := read_marked(path, mark)) is None:
            write_marked(path, mark, make())
            found = read_marked(path, mark)
            assert found is not None
        return found


def read_marked(path: Path, mark: str) -> Arrays | None:
    """Arrays of a file whose fingerprint is `mark`; None if there is no such file."""
    if not path.is_file():
        return None
    arrays = store.read_arrays(path)
    if arrays.pop(MARK, np.zeros(0, np.uint8)).tobytes().decode() != mark:
        return None
    return arrays


def write_marked(path: Path, mark: str, arrays: Arrays) -> None:
    """Write arrays and a fingerprint; the file appears only when it is complete."""
    marked = {**arrays, MARK: np.frombuffer(mark.encode(), np.uint8)}
    write_whole(path, lambda part: store.write_arrays(part, marked))


def write_whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Write beside `path`, flush, and move into place: a kill leaves the old file or the new one."""
    part = path.with_name(f".{path.name}.part")
    try:
        write(part)
        store.flush(part)
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise TreetopError(f"{path}: cannot be written ({error.strerror})") from None


def data_fingerprint(texts: Iterable[str], *matrices: Any) -> str:
    """A short text that differs for different documents or labels."""
    digest = hashlib.blake2b(digest_size=16)
    for text in texts:
        digest.update(text.encode("utf-8", "replace"))
        digest.update(b"\0")
    for matrix in matrices:
        parts: tuple[Any, ...] = (matrix,)
        if sp.issparse(matrix):
            parts = (matrix.indptr, matrix.indices, matrix.data)
        for part in parts:
            if part is not None:
                digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def csr_to_arrays(matrix: sp.csr_matrix, name: str) -> Arrays:
    """A sparse matrix as arrays of a stage."""
    return {
        f"{name}.data": matrix.data,
        f"{name}.indices": matrix.indices,
        f"{name}.indptr": matrix.indptr,
        f"{name}.shape": np.array(matrix.shape, np.int64),
    }


def csr_from_arrays(arrays: Arrays, name: str) -> sp.csr_matrix:
    """The inverse of `csr_to_arrays`."""
    made = sp.csr_matrix(tuple(arrays[f"{name}.shape"].tolist()), dtype=np.float32)
    made.data, made.indices, made.indptr = (
        arrays[f"{name}.{part}"] for part in ("data", "indices", "indptr")
    )
    return made


def history_text(history: list[dict[str, Any]]) -> str:
    """A line of JSON for each entry."""
    return "".join(json.dumps(entry) + "\n" for entry in history)
