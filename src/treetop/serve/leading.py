"""The process that has loaded the model, and leads the workers that serve it."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

from treetop.errors import TreetopError
from treetop.runtime import Runtime
from treetop.serve.batching import Piece
from treetop.serve.board import ReloadBoard
from treetop.serve.engine import PredictQuery, Served
from treetop.serve.generation import Generation, Limits, write_report
from treetop.serve.options import ServiceOptions
from treetop.serve.reloading import Reloader
from treetop.serve.worker import limit_torch_threads
from treetop.serve.working import KEEP_ALIVE_SECONDS, run_worker

# Default maximum number of workers with an encoder, each of which needs memory of its own.
MAX_ENCODER_WORKERS = 4


def lead(
    options: ServiceOptions,
    runtime: Runtime,
    sockets: list[socket.socket],
    pipe: int,
    board: ReloadBoard,
) -> int:
    """Load the model, and lead the workers that serve it; reports to the supervisor on `pipe`."""
    from treetop.serve import metrics

    supervisor, generation = os.getppid(), None
    try:
        served = load_to_share(options, runtime)
        # Sockets that workers of an earlier generation listened on must not remain without one.
        count = len(sockets) if board.finished else options.workers or worker_count(served, runtime)
        share = runtime.changed(threads=max(1, runtime.thread_count // count))
        reloader = Reloader(supervisor, board, options.timeout)

        def work(own: socket.socket, beat: Callable[[], None]) -> None:
            run_worker(options, served, own, share, beat, reloader)

        def announce() -> None:
            write_report(pipe, labels=len(served.model.classes), workers=count)
            if board.finished:
                metrics.Metrics().reloads.inc()

        limits = Limits(
            starting=options.reload_timeout,
            silent=options.hang_seconds,
            stopping=options.stop_seconds,
            retiring=options.stop_seconds + KEEP_ALIVE_SECONDS,
        )
        generation = Generation(sockets[:count], work, metrics.forget_worker, limits, supervisor)
        return generation.run(announce)
    except Exception as error:
        name = "" if isinstance(error, TreetopError) else f"{type(error).__name__}: "
        write_report(pipe, error=f"{name}{error}")
        if generation is not None:
            generation.stop()
        return 1


def worker_count(served: Served, runtime: Runtime) -> int:
    """Default number of workers: one per core, at most four with an encoder, one on a GPU."""
    if not served.model.has_encoder:
        return runtime.thread_count
    return min(runtime.thread_count, MAX_ENCODER_WORKERS) if on_cpu(runtime) else 1


def load_to_share(options: ServiceOptions, runtime: Runtime) -> Served:
    """Load a model whose memory the workers will share; no thread may be running at the fork."""
    served, single = Served(options.model, runtime), runtime.changed(threads=1)
    served.prepare()
    if not served.model.has_encoder:
        served.answer([Piece([served.warm_up_document], PredictQuery())], single)
    elif on_cpu(runtime):
        limit_torch_threads(1)
        served.model.open_encoders(single)
    return served


def on_cpu(runtime: Runtime) -> bool:
    """Whether torch computes on the CPU: a process that has used a GPU must not be forked."""
    if runtime.device != "auto":
        return runtime.device == "cpu"
    try:
        import torch
    except ImportError:
        return True
    return not (torch.cuda.device_count() or torch.backends.mps.is_available())
