"""Compiled kernels as bytes, and how they become functions without importing numba.

numba compiles a kernel to an object file, with a function that takes Python objects. To call it,
LLVM has to load the object file and connect it to the C functions of numba that handle arrays. That
takes 5 ms for all kernels of a prediction; importing numba, with all that it needs to compile, takes
half of the time that a new process needs for its first prediction.
"""

from __future__ import annotations

import builtins
import ctypes
import hashlib
import importlib.util
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from llvmlite import binding as llvm


@dataclass(frozen=True)
class MachineCode:
    """What numba made of a kernel."""

    entry: str  # symbol of the function that takes and returns Python objects
    environment: str  # symbol of the pointer to the constants it needs
    dtypes: list[str]  # these constants: types of the arrays it makes
    needs: list[str]  # symbols from elsewhere
    object_file: bytes

    def to_bytes(self) -> bytes:
        """A line of JSON, then the object file."""
        facts = {name: value for name, value in vars(self).items() if name != "object_file"}
        header = json.dumps(facts | {"digest": digest_of(self.object_file)})
        return header.encode() + b"\n" + self.object_file

    @classmethod
    def from_bytes(cls, data: bytes) -> MachineCode | None:
        """The reverse; None if it is damaged."""
        header, _, object_file = data.partition(b"\n")
        try:
            facts = json.loads(header)
            is_whole = facts.pop("digest") == digest_of(object_file)
            return cls(**facts, object_file=object_file) if is_whole else None
        except (ValueError, TypeError, AttributeError, KeyError):
            return None

    def is_loadable(self) -> bool:
        """Whether everything it needs is there: LLVM would abort the process otherwise."""
        return loader() is not None and all(map(llvm.address_of_symbol, self.needs))


def digest_of(data: bytes) -> str:
    """Digest of a file's content."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def numba_folder() -> Path:
    """Where numba is installed."""
    spec = importlib.util.find_spec("numba")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("No module named 'numba'")
    return Path(spec.origin).parent


def extension(name: str) -> ModuleType:
    """One of numba's modules that are written in C, without the package it belongs to."""
    if name not in sys.modules:
        folder = numba_folder().joinpath(*name.split(".")[1:-1])
        spec = PathFinder.find_spec(name, [str(folder)])
        if spec is None or spec.loader is None:
            raise ImportError(f"numba has no module {name}")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # numba must find it there, should it be imported later
        spec.loader.exec_module(module)
    return sys.modules[name]


def add_symbols(helpers: ModuleType, runtime: ModuleType) -> None:
    """Tell LLVM what numba tells it on import: where the functions are that machine code calls."""
    llvm.add_symbol("_Py_NoneStruct", id(None))
    for name, value in vars(builtins).items():
        if isinstance(value, type) and issubclass(value, BaseException):
            llvm.add_symbol(f"PyExc_{name}", id(value))
    for name, address in helpers.c_helpers.items():
        llvm.add_symbol(f"numba_{name}", address)
        if llvm.address_of_symbol(name) is None:  # functions of C's library, on some systems
            llvm.add_symbol(name, address)
    for name, address in runtime.c_helpers.items():
        llvm.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


class Loader:
    """LLVM's loader of object files, ready for what numba compiles."""

    def __init__(self) -> None:
        self.functions = extension("numba._dynfunc")
        runtime = extension("numba.core.runtime._nrt_python")
        runtime.memsys_use_cpython_allocator()  # as numba does when it is imported
        add_symbols(extension("numba._helperlib"), runtime)
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_triple(llvm.get_process_triple())
        machine = target.create_target_machine(codemodel="jitdefault", jit=True)
        self.engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)

    def load(self, code: MachineCode, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that Python can call."""
        self.engine.add_object_file(llvm.ObjectFileRef.from_data(code.object_file))
        self.engine.finalize_object()
        environment = self.functions.Environment({})
        environment.consts[:] = [np.dtype(name) for name in code.dtypes]
        pointer = self.engine.get_global_value_address(code.environment)
        ctypes.c_void_p.from_address(pointer).value = id(environment)
        loaded: Callable[..., Any] = self.functions.make_function(
            sys.modules[function.__module__],
            function.__name__,
            function.__doc__,
            self.engine.get_function_address(code.entry),
            environment,
            (self.engine,),  # to be kept as long as the function
        )
        return loaded


@cache
def loader() -> Loader | None:
    """The loader of this process; None if this version of numba is built in another way.

    Then every process compiles its kernels.
    """
    try:
        return Loader()
    except (ImportError, AttributeError):
        return None
