"""From a kernel to machine code, by numba: imported when a kernel has to be compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from numba import njit, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import cpu_target
from numba.extending import typeof_impl

from treetop.kernels import intrinsics
from treetop.kernels.helpers import Helper, Intrinsic
from treetop.kernels.machine_code import MachineCode
from treetop.kernels.signatures import Array, Scalar, Signature, Tuple

COMMON = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
# Without reference counts; `forceinline` because such a function is part of the loops that call it.
LEAN = {"forceinline": True, "_nrt": False}


def numba_type(kind: Scalar | Array | Tuple) -> Any:
    """The type as numba has it."""
    if isinstance(kind, Scalar):
        return getattr(types, kind.name)
    if isinstance(kind, Array):
        return types.Array(numba_type(kind.dtype), kind.dimensions, "C", readonly=kind.readonly)
    return types.Tuple([numba_type(item) for item in kind.items])


class HelperLibrary(JITCodeLibrary):  # type: ignore[misc]
    """A helper in the form that is linked into kernels.

    numba itself also makes machine code of it, which nobody would run: a sixth of all time.
    """

    def _finalize_final_module(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """There is no machine code."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        """Who is told about the environment of the machine code."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Nothing needs it."""


class HelperCompiler(Compiler):  # type: ignore[misc]
    """Compiles to a `HelperLibrary`."""

    def __init__(self, typing: Any, target: Any, library: Any, *function: Any) -> None:
        super().__init__(typing, target, HelperLibrary(target.codegen(), "helper"), *function)


@cache
def dispatcher_of(helper: Helper) -> Any:
    """A helper as numba sees it. It has no wrapper for Python, which would take long to compile."""
    options = COMMON if helper.makes_arrays else COMMON | LEAN
    dispatcher = njit(**options, no_cpython_wrapper=True, pipeline_class=HelperCompiler)
    return dispatcher(helper.function)


@typeof_impl.register(Helper)
def type_of_helper(helper: Helper, context: Any) -> Any:
    """Let numba call helpers as if they were its own functions."""
    return types.Dispatcher(dispatcher_of(helper))


@typeof_impl.register(Intrinsic)
def type_of_intrinsic(intrinsic: Intrinsic, context: Any) -> Any:
    """Let numba find the definition of an intrinsic."""
    return cpu_target.typing_context.resolve_value_type(getattr(intrinsics, intrinsic.name))


def compiled(function: Callable[..., Any], signature: Signature) -> tuple[MachineCode, Any]:
    """Machine code of a kernel, to be kept, and the function that this process can call."""
    dispatcher = njit(**COMMON)(function)
    arguments = [numba_type(argument) for argument in signature.arguments]
    entry = dispatcher.compile(numba_type(signature.result)(*arguments))
    (result,) = dispatcher.overloads.values()
    _, _, (object_file, _) = result.library.serialize_using_object_code()
    code = MachineCode(
        entry=result.fndesc.llvm_cpython_wrapper_name,
        environment=result.fndesc.env_name,
        dtypes=[dtype.str for dtype in result.environment.consts],
        needs=external_symbols(result.library),
        object_file=object_file,
    )
    return code, entry


def external_symbols(library: Any) -> list[str]:
    """What machine code needs from elsewhere, without LLVM's own intrinsic functions."""
    module = library._final_module
    names = [
        value.name for value in (*module.functions, *module.global_variables) if value.is_declaration
    ]
    return sorted(name for name in names if not name.startswith("llvm."))
