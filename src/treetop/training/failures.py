"""Training that continues on the CPU after the GPU has failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from treetop.errors import TreetopError
from treetop.runtime import Runtime

Learned = TypeVar("Learned")


def with_fallback(runtime: Runtime, learn: Callable[[Runtime], Learned]) -> Learned:
    """Call `learn` with `runtime`, and with the CPU if the GPU fails and ``runtime.fallback`` is set.

    Other failures of the device become errors of one line.
    """
    try:
        return learn(runtime)
    except RuntimeError as error:
        from treetop.features.encoders.devices import (
            is_device_failure,
            is_out_of_memory,
            memory_is_full,
        )

        if is_out_of_memory(error):
            raise memory_is_full() from None
        if not is_device_failure(error):
            raise
        if not runtime.fallback:
            raise TreetopError(
                f"the GPU failed ({str(error).splitlines()[0]}): run again with --resume "
                "(resume=True), or set fallback=true to continue on the CPU"
            ) from None
    runtime.reporter.note("the GPU failed: continuing on the CPU")
    return learn(runtime.changed(device="cpu"))
