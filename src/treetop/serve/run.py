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
from treetop.runtime.parallel import thread_count
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


def serve(options: ServiceOptions) -> int:
    """Serve until told to stop; the exit code."""
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
        current = [open_to_share(options)]
        workers = options.workers or worker_count(current[0], options.device)
        threads = max(1, thread_count(None) // workers)
        sockets = listen(options.host, options.port, workers)

        def reload() -> bool:
            """The supervisor's own copy: a worker that is started later gets it."""
            try:
                if mark_of(options.model) != current[0].mark:
                    current[0] = open_to_share(options)
            except Exception as error:
                log.error("the new model cannot be opened, the old one stays: %s", error)
                return False
            return True

        def work(own: socket.socket) -> None:
            run_worker(options, current[0], own, threads)

        address = sockets[0].getsockname()
        shown = f"[{address[0]}]" if ":" in address[0] else address[0]
        log.info("serving %s at http://%s:%d", options.model.name, shown, address[1])
        grace = options.body_seconds + options.timeout + 10
        return Supervisor(sockets, work, reload, measures.forget_worker, grace).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def worker_count(served: Served, device: str | None) -> int:
    """Processes unless the options say how many: one per core, with an encoder fewer, one on a GPU."""
    if not served.has_encoder:
        return thread_count(None)
    on_cpu = device == "cpu" or (device is None and not gpu_at_hand())
    return min(thread_count(None), ENCODER_WORKERS) if on_cpu else 1


def open_to_share(options: ServiceOptions) -> Served:
    """A model whose memory workers will share. Threads are not: none may be running at the fork."""
    served = Served(options.model, options.device)
    served.prepare()
    if not served.has_encoder:
        served.answer([Piece(["a first text"], Question())], 1)
    elif options.device in (None, "cpu") and not gpu_at_hand():
        limit_torch(1)
        served.open_encoders()
    return served


def gpu_at_hand() -> bool:
    """Whether torch would use a GPU: a process that did may not be forked."""
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.device_count()) or torch.backends.mps.is_available()


def run_worker(options: ServiceOptions, served: Served, own: socket.socket, threads: int) -> None:
    """One worker, until it is told to stop."""
    if served.has_encoder:
        sys.setswitchinterval(SWITCH)
    parent = os.getppid()

    def tell_parent() -> None:
        os.kill(parent, signal.SIGHUP)

    async def main() -> None:
        worker = Worker(options, served, threads)
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
