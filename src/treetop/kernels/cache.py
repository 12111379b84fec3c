"""Compiled kernels on disk: a file per kernel and kind of processor."""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import llvmlite
import numpy as np
from llvmlite import binding as llvm

from treetop.kernels.machine_code import MachineCode, numba_folder
from treetop.runtime.temporary import temporary_file

# Variables that change what numba makes of a kernel.
COMPILER_SETTINGS = ("NUMBA_OPT", "NUMBA_ENABLE_AVX", "NUMBA_LOOP_VECTORIZE", "NUMBA_SLP_VECTORIZE")


@cache
def source_stamp() -> str:
    """Digest of all that kernels are made from: their source, and the versions of the compilers.

    It is of all sources because a kernel is stale when a helper it calls has changed.
    """
    versions = (sys.version, llvmlite.__version__, np.__version__)
    settings = [os.environ.get(name) for name in COMPILER_SETTINGS]
    digest = hashlib.blake2b(repr((versions, settings)).encode(), digest_size=16)
    digest.update((numba_folder() / "_version.py").read_bytes())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@cache
def processor() -> str:
    """The processor that kernels are compiled for; numba's own variables can ask for another one."""
    name = os.environ.get("NUMBA_CPU_NAME")
    features = os.environ.get("NUMBA_CPU_FEATURES", "" if name == "generic" else None)
    if features is None:
        features = llvm.get_host_cpu_features().flatten()
    return f"{name or llvm.get_host_cpu_name()} {features}"


@cache
def suffix() -> str:
    """End of the names of files with kernels for this processor and this kind of Python."""
    kind = hashlib.blake2b(processor().encode(), digest_size=4).hexdigest()
    return f"-{kind}-{EXTENSION_SUFFIXES[0].split('.')[1]}.kernel"


def folders() -> list[Path]:
    """Where kernels are looked for: they are kept in the first of these that is writable."""
    if given := os.environ.get("NUMBA_CACHE_DIR"):
        return [Path(given)]
    places = [Path(__file__).parent / "__pycache__"]
    with suppress(RuntimeError):  # a user without a home
        own = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
        places.append(own / "treetop" / "kernels")
    return places


def has_writable_folder() -> bool:
    """Whether kernels can be kept; without that, they are compiled by each process."""
    for folder in folders():
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return True
    return False


def read(name: str) -> MachineCode | None:
    """The kernel, if one of the folders has it for this processor, of today's source and undamaged."""
    for folder in folders():
        with suppress(OSError):
            stamp, _, data = (folder / f"{name}{suffix()}").read_bytes().partition(b"\n")
            code = MachineCode.from_bytes(data) if stamp.decode() == source_stamp() else None
            if code and code.is_loadable():
                return code
    return None


def write(name: str, code: MachineCode) -> None:
    """Keep a kernel, in place of an older one, in the first folder that can be written to."""
    for folder in folders():
        target = folder / f"{name}{suffix()}"
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            with temporary_file(target) as (part, handle), open(handle, "wb") as file:
                file.write(source_stamp().encode() + b"\n" + code.to_bytes())
                file.flush()
                os.replace(part, target)
            return
