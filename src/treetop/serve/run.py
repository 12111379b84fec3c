"""`treetop serve`: from options to running workers.

All that workers need is imported here, before the fork, so that they share it.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import shutil
import signal
import socket
import sys
from typing import Any

import uvicorn

from treetop.errors import TreetopError
from treetop.model.layout import read_config
from treetop.runtime import Runtime
from treetop.serve.api import make_app
from treetop.serve.batching import Piece
from treetop.serve.engine import Question, Served, mark_of
from treetop.serve.feedback import Journal
from treetop.serve.options import ServiceOptions
from treetop.serve.protocol import guarded
from treetop.serve.worker import Worker, limit_torch

log = logging.getLogger("treetop.serve")
KEEP_ALIVE = 30
# Processes with an encoder: each needs memory of its own to compute in.
ENCODER_WORKERS = 4
# Seconds the engine may keep the event loop waiting between two calls of the encoder's library.
SWITCH = 0.0005


def serve(options: ServiceOptions, runtime: Runtime | None = None) -> int:
    """Serve until told to stop; the exit code. Workers share the threads of `runtime`."""
    place = (runtime or Runtime()).changed(device=options.device)
    logging.basicConfig(level=logging.INFO, format="treetop: %(message)s", stream=sys.stderr)
    if not hasattr(os, "fork"):
        raise TreetopError("treetop serve needs a system with fork: Linux or macOS")
    from treetop.serve import measures
    from treetop.serve.supervisor import Supervisor, listen

    read_config(options.model, verify=False)  # no model there is told before anything starts
    raise_file_limit()
    if options.feedback is not None:
        Journal(options.feedback)  # and so is a file that cannot be written
    folder = measures.prepare_folder()
    try:
        current = [open_to_share(options, place)]
        workers = options.workers or worker_count(current[0], place)
        share = place.changed(threads=max(1, place.thread_count // workers))
        sockets = listen(options.host, options.port, workers)

        def reload() -> bool:
            """The supervisor's own copy: a worker that is started later gets it."""
            try:
                if mark_of(options.model) != current[0].mark:
                    current[0] = open_to_share(options, place)
            except Exception as error:
                log.error("the new model cannot be opened, the old one stays: %s", error)
                return False
            return True

        def work(own: socket.socket) -> None:
            run_worker(options, current[0], own, share)

        address = sockets[0].getsockname()
        shown = f"[{address[0]}]" if ":" in address[0] else address[0]
        log.info("serving %s at http://%s:%d", options.model.name, shown, address[1])
        grace = options.body_seconds + options.timeout + 10
        return Supervisor(sockets, work, reload, measures.forget_worker, grace).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def worker_count(served: Served, runtime: Runtime) -> int:
    """Processes unless the options say how many: one per core, with an encoder fewer, one on a GPU."""
    if not served.model.has_encoder:
        return runtime.thread_count
    return min(runtime.thread_count, ENCODER_WORKERS) if on_cpu(runtime) else 1


def open_to_share(options: ServiceOptions, runtime: Runtime) -> Served:
    """A model whose memory workers will share. Threads are not: none may be running at the fork."""
    served, alone = Served(options.model, runtime), runtime.changed(threads=1)
    served.prepare()
    if not served.model.has_encoder:
        served.answer([Piece(["a first text"], Question())], alone)
    elif on_cpu(runtime):
        limit_torch(1)
        served.model.open_encoders(alone)
    return served


def on_cpu(runtime: Runtime) -> bool:
    """Whether torch would compute on the CPU: a process that used a GPU may not be forked."""
    if runtime.device != "auto":
        return runtime.device == "cpu"
    try:
        import torch
    except ImportError:
        return True
    return not (torch.cuda.device_count() or torch.backends.mps.is_available())


def run_worker(options: ServiceOptions, served: Served, own: socket.socket, runtime: Runtime) -> None:
    """One worker, until it is told to stop."""
    if served.model.has_encoder:
        sys.setswitchinterval(SWITCH)
    parent = os.getppid()

    def tell_parent() -> None:
        os.kill(parent, signal.SIGHUP)

    async def main() -> None:
        worker = Worker(options, served, runtime)
        worker.tell_others = tell_parent
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload_later, worker)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGHUP])
        patience = math.ceil(options.body_seconds + options.timeout)
        config = uvicorn.Config(
            make_app(worker),
            http=guarded(options),
            ws="none",
            lifespan="on",
            log_level="warning",
            access_log=options.access_log,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=patience,
        )
        if options.access_log:
            logging.getLogger("uvicorn.access").setLevel(logging.INFO)
        server = uvicorn.Server(config)
        watching = asyncio.create_task(leave_with(parent, server))
        await server.serve(sockets=[own])
        watching.cancel()

    with asyncio.Runner(loop_factory=quick_loop()) as runner:
        runner.run(main())


async def leave_with(parent: int, server: Any) -> None:
    """Stop when the supervisor is gone."""
    while os.getppid() == parent:
        await asyncio.sleep(1)
    server.should_exit = True


def raise_file_limit() -> None:
    """A connection is an open file: allow as many as the system lets us."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def quick_loop() -> Any:
    """The loop of uvloop where it is installed."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def reload_later(worker: Worker) -> None:
    """Reload in the background; what goes wrong is in the log."""

    async def reload() -> None:
        try:
            await worker.reload()
        except Exception as error:
            log.error("reload failed: %s", error)

    task = asyncio.get_running_loop().create_task(reload())
    worker.tasks.add(task)
    task.add_done_callback(worker.tasks.discard)
