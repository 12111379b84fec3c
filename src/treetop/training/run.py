"""Resumable training runs: finished stages are kept in a folder.

The file of a stage contains a fingerprint of everything the stage depends on: the data, some settings
and earlier stages. A stage with the same fingerprint is read back; any other is repeated.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from treetop import __version__
from treetop.errors import TreetopError
from treetop.model.layout import foreign_content
from treetop.runtime.arrays import Arrays, read_arrays, write_tensors
from treetop.runtime.files import replacing_file, whole_name
from treetop.settings.declared import declared
from treetop.settings.schema import LinearSettings

Kind = TypeVar("Kind", bound=LinearSettings)
MARK = "fingerprint"
VERSION = 1
FACTS = "run.json"
CHECKPOINT = "checkpoint.safetensors"
HISTORY = "history.jsonl"
# All files that a run writes; `overwrite` deletes no others.
STAGES = (
    "text-features",
    "first-tree",
    "tokens",
    "shorter-tokens",
    "level-[0-9]+",
    "embedding",
    "rankers",
)
OWN_NAME = re.compile(
    rf"{re.escape(FACTS)}|{re.escape(HISTORY)}|{re.escape(CHECKPOINT)}|({'|'.join(STAGES)})\.safetensors"
)
# run.json of early versions contained only the fingerprint of the data.
FINGERPRINT = re.compile("[0-9a-f]{32}")


@dataclass(frozen=True)
class Stage:
    """A step of the training: its name, the settings it reads, and the stages it depends on."""

    name: str
    reads: tuple[str, ...]
    after: tuple[str, ...]


class Run:
    """The stages of one training run. Without a folder, nothing is kept."""

    def __init__(
        self,
        folder: Path | None = None,
        data: str = "",
        resume: bool = False,
        overwrite: bool = False,
    ) -> None:
        self.folder = folder
        self.prints: dict[str, str] = {"data": data}
        if folder is None:
            return
        try:
            self._open(folder, data, resume, overwrite)
        except OSError as error:
            raise TreetopError(f"{folder}: cannot be used for a run ({error.strerror})") from None

    def _open(self, folder: Path, data: str, resume: bool, overwrite: bool) -> None:
        check_run(folder, resume, overwrite)
        folder.mkdir(parents=True, exist_ok=True)
        began_on = data_of_run(folder)
        if overwrite:
            # run.json stays until it is replaced, so that a killed process leaves a folder that is
            # still recognized as a run.
            for path in folder.iterdir():
                if is_own(path) and path.name != FACTS:
                    path.unlink()
        elif began_on is not None and began_on != data:
            raise TreetopError(
                f"{folder}: this run began on other data: give that data, or start again "
                "(--overwrite, overwrite=True)"
            )
        if overwrite or began_on is None:
            text = json.dumps({"treetop": VERSION, "data": data}) + "\n"
            with replacing_file(folder / FACTS) as file:
                file.write(text)

    def fingerprint(self, name: str, settings: dict[str, Any], after: Iterable[str]) -> str:
        """Compute and remember the fingerprint of a stage: everything that it depends on."""
        before = [self.prints[stage] for stage in after]
        text = json.dumps([__version__, name, settings, before], sort_keys=True, default=str)
        self.prints[name] = hashlib.sha256(text.encode()).hexdigest()[:32]
        return self.prints[name]

    def stage(
        self, stage: Stage, settings: Kind, make: Callable[[Kind], Arrays], **facts: Any
    ) -> Arrays:
        """Return the arrays of a stage: from its file if its inputs are the same, else from `make`.

        `make` receives settings of which it can read only those that the stage declares. `facts` are
        further inputs.
        """
        inputs = {**{name: getattr(settings, name) for name in stage.reads}, **facts}
        mark = self.fingerprint(stage.name, inputs, stage.after)
        own = declared(settings, stage.reads, stage.name)
        if self.folder is None:
            return make(own)
        path = self.folder / f"{stage.name}.safetensors"
        assert OWN_NAME.fullmatch(path.name), f"{path.name} is missing in STAGES"
        if (arrays := read_marked(path, mark)) is None:
            write_marked(path, mark, make(own))
            arrays = read_marked(path, mark)
            assert arrays is not None
        return arrays


def check_run(folder: str | Path | None, resume: bool = False, overwrite: bool = False) -> None:
    """Raise unless `Run` may use the folder, without changing anything."""
    if resume and overwrite:
        raise TreetopError(
            "resume or overwrite, not both: give --resume (resume=True) to continue a run, "
            "--overwrite (overwrite=True) to start again"
        )
    if folder is None:
        return
    try:
        reason = reason_against(Path(folder), resume, overwrite)
    except OSError as error:
        raise TreetopError(f"{folder}: cannot be used for a run ({error.strerror})") from None
    if reason is not None:
        raise TreetopError(f"{folder}: {reason}")


def reason_against(folder: Path, resume: bool, overwrite: bool) -> str | None:
    """Why a run may not use the folder and what to do instead; None if it may."""
    if not folder.exists():
        return None
    if data_of_run(folder) is None:
        # A kill before run.json was complete leaves only its part.
        empty = all(whole_name(path.name) == FACTS for path in folder.iterdir())
        return None if empty else "exists and is not the folder of a run: choose another folder"
    if resume:
        return None
    if not overwrite:
        return (
            "holds an earlier run: continue it (--resume, resume=True) "
            "or start again (--overwrite, overwrite=True)"
        )
    if folder.is_symlink():
        return "is a symbolic link, and nothing is deleted through one: remove the link first"
    return foreign_content(folder, is_own)


def data_of_run(folder: Path) -> str | None:
    """Return the fingerprint of the data of the run in a folder; None if it is not a run."""
    path = folder / FACTS
    if not path.is_file():
        return None
    try:
        facts = json.loads(path.read_text("utf-8"))
    except ValueError:
        return None
    if not isinstance(facts, dict) or not isinstance(facts.get("data"), str):
        return None
    data: str = facts["data"]
    earlier = set(facts) == {"data"} and FINGERPRINT.fullmatch(data) is not None
    return data if earlier or type(facts.get("treetop")) is int else None


def is_own(path: Path) -> bool:
    """Whether a file is one that a run writes, or an incomplete one."""
    name = whole_name(path.name) or path.name
    return OWN_NAME.fullmatch(name) is not None and path.is_file() and not path.is_symlink()


def read_marked(path: Path, mark: str) -> Arrays | None:
    """Read the arrays of a file; None if it does not exist or has another fingerprint than `mark`."""
    if not path.is_file():
        return None
    arrays = read_arrays(path)
    if arrays.pop(MARK, np.zeros(0, np.uint8)).tobytes().decode() != mark:
        return None
    return arrays


def write_marked(path: Path, mark: str, arrays: Arrays) -> None:
    """Write arrays and their fingerprint atomically."""
    marked = {**arrays, MARK: np.frombuffer(mark.encode(), np.uint8)}
    with replacing_file(path, "wb") as file:
        write_tensors(file, marked)


def data_fingerprint(texts: Iterable[str], *matrices: Any) -> str:
    """Compute a hash of documents, labels and weights."""
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
