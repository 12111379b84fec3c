"""Resumable training runs: finished stages are kept in a folder.

The file of a stage contains a fingerprint of everything the stage depends on: the data, some settings
and earlier stages. A stage with the same fingerprint is read back; any other is repeated.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from treetop import __version__
from treetop.errors import TreetopError
from treetop.model.layout import foreign_content
from treetop.runtime.arrays import Arrays
from treetop.runtime.files import check_path, replacing_file
from treetop.runtime.locks import check_free, locked
from treetop.runtime.temporary import whole_name
from treetop.settings.declared import declared
from treetop.settings.schema import LinearSettings
from treetop.training.marked import (
    FINGERPRINT,
    fingerprint_of,
    read_marked,
    read_unchecked,
    write_marked,
)

Kind = TypeVar("Kind", bound=LinearSettings)
VERSION = 1
FACTS = "run.json"
CHECKPOINT = "checkpoint.safetensors"
HISTORY = "history.jsonl"
LOCK = ".run.lock"
# All files that a run writes; `overwrite` deletes no others.
STAGES = (
    "competition",
    "text-features",
    "first-tree",
    "tokens",
    "shorter-tokens",
    "level-[0-9]+",
    "embedding",
    "rankers",
)
OWN_NAME = re.compile(
    rf"{re.escape(FACTS)}|{re.escape(HISTORY)}|{re.escape(CHECKPOINT)}|{re.escape(LOCK)}"
    rf"|({'|'.join(STAGES)})\.safetensors"
)


@dataclass(frozen=True)
class Stage:
    """A step of the training: its name, the settings it reads, and the stages it depends on."""

    name: str
    reads: tuple[str, ...]
    after: tuple[str, ...]


class Run:
    """The stages of one training run. Without a folder, nothing is kept."""

    def __init__(self, folder: Path | None = None, data: str = "") -> None:
        self.folder = folder
        self.prints: dict[str, str] = {"data": data}

    @classmethod
    @contextmanager
    def opened(
        cls, folder: Path, data: str, resume: bool = False, overwrite: bool = False
    ) -> Iterator[Run]:
        """Open the run in a folder and keep other processes and threads out of it."""
        check_run(folder, resume, overwrite)
        with ExitStack() as stack:
            with usable(folder):
                folder.mkdir(parents=True, exist_ok=True)
                stack.enter_context(locked(folder / LOCK, folder))
                check_run(folder, resume, overwrite)
                begin(folder, data, overwrite)
            yield cls(folder, data)

    def fingerprint(self, name: str, settings: dict[str, Any], after: Iterable[str]) -> str:
        """Compute and remember the fingerprint of a stage: everything that it depends on."""
        before = [self.prints[stage] for stage in after]
        text = json.dumps([__version__, name, settings, before], sort_keys=True, default=str)
        self.prints[name] = hashlib.sha256(text.encode()).hexdigest()[:32]
        return self.prints[name]

    def stage(
        self, stage: Stage, settings: Kind, make: Callable[[Kind], Arrays], **facts: object
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
            arrays = read_unchecked(path)
        return arrays


def begin(folder: Path, data: str, overwrite: bool) -> None:
    """Write run.json, unless this run began earlier; with `overwrite`, delete the earlier one first."""
    began_on = data_of_run(folder)
    if overwrite:
        # run.json stays until it is replaced, so that a killed process leaves a folder that is
        # still recognized as a run.
        for path in folder.iterdir():
            if is_own(path) and path.name not in (FACTS, LOCK):
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


def check_run(folder: str | Path | None, resume: bool = False, overwrite: bool = False) -> None:
    """Raise unless a run may use the folder, without changing anything."""
    if resume and overwrite:
        raise TreetopError(
            "resume or overwrite, not both: give --resume (resume=True) to continue a run, "
            "--overwrite (overwrite=True) to start again"
        )
    if folder is None:
        return
    folder = Path(folder)
    check_path(folder)
    with usable(folder):
        check_free(folder / LOCK, folder)
        reason = reason_against(folder, resume, overwrite)
    if reason is not None:
        raise TreetopError(f"{folder}: {reason}")


@contextmanager
def usable(folder: Path) -> Iterator[None]:
    """Errors of the system as one line about the folder of a run."""
    try:
        yield
    except OSError as error:
        raise TreetopError(f"{folder}: cannot be used for a run ({error.strerror})") from None


def reason_against(folder: Path, resume: bool, overwrite: bool) -> str | None:
    """Why a run may not use the folder and what to do instead; None if it may."""
    if not folder.exists():
        return None
    if not is_run(folder):
        # A kill before run.json was complete leaves only its part.
        started = [path for path in folder.iterdir() if path.name != LOCK]
        empty = all(whole_name(path.name) == FACTS for path in started)
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


def is_run(folder: Path) -> bool:
    """Whether a folder is that of a run: by its run.json or, if that is damaged, by its stages."""
    if data_of_run(folder) is not None:
        return True
    stages = [path for path in folder.glob("*.safetensors") if is_own(path)]
    return any(fingerprint_of(path) is not None for path in stages)


def data_of_run(folder: Path) -> str | None:
    """Return the fingerprint of the data of the run in a folder; None without a valid run.json."""
    path = folder / FACTS
    if not path.is_file():
        return None
    try:
        facts = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(facts, dict) or not isinstance(facts.get("data"), str):
        return None
    data: str = facts["data"]
    # run.json of early versions contained only the fingerprint of the data.
    earlier = set(facts) == {"data"} and FINGERPRINT.fullmatch(data) is not None
    return data if earlier or type(facts.get("treetop")) is int else None


def is_own(path: Path) -> bool:
    """Whether a file is one that a run writes, or an incomplete one."""
    name = whole_name(path.name) or path.name
    return OWN_NAME.fullmatch(name) is not None and path.is_file() and not path.is_symlink()


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
