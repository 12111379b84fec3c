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
from treetop.serve.api import make_app
from treetop.serve.batching import Piece
from treetop.serve.engine import Question, Served, mark_of
from treetop.serve.feedback import Journal
from treetop.serve.protocol import guarded
from treetop.serve.worker import Options, Worker, limit_torch

log = logging.getLogger("treetop.serve")
KEEP_ALIVE = 30
# Seconds the engine may keep the event loop waiting between two calls of the encoder's library.
SWITCH = 0.0005


def serve(options: Options) -> int:
    """Serve until told to stop; the exit code."""
    logging.basicConfig(level=logging.INFO, format="treetop: %(message)s", stream=sys.stderr)
    if not hasattr(os, "fork"):
        raise TreetopError("treetop serve needs a system with fork: Linux or macOS")
    from treetop.serve import measures
    from treetop.serve.supervisor import Supervisor, listen

    raise_file_limit()
    if options.feedback is not None:
        Journal(options.feedback)  # a file that cannot be written is told before anything starts
    folder = measures.prepare_folder()
    try:
        current = [open_to_share(options)]
        sockets = listen(options.host, options.port, options.workers)

        def reload() -> bool:
            """The supervisor's own copy: a worker that is started later gets it."""
            try:
                if mark_of(options.folder) != current[0].mark:
                    current[0] = open_to_share(options)
            except Exception as error:
                log.error("the new model cannot be opened, the old one stays: %s", error)
                return False
            return True

        def work(own: socket.socket) -> None:
            run_worker(options, current[0], own)

        address = sockets[0].getsockname()
        shown = f"[{address[0]}]" if ":" in address[0] else address[0]
        log.info("serving %s at http://%s:%d", options.folder.name, shown, address[1])
        grace = options.limits.body_seconds + options.limits.seconds + 10
        return Supervisor(sockets, work, reload, measures.forget_worker, grace).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def open_to_share(options: Options) -> Served:
    """A model whose memory workers will share. Threads are not: none may be running at the fork."""
    served = Served(options.folder, options.runtime)
    served.prepare()
    if not served.model.has_encoder:
        served.answer([Piece(["a first text"], Question())], options.runtime.changed(threads=1))
    elif options.device in (None, "cpu") and not gpu_at_hand():
        limit_torch(1)
        served.model.open_encoders(options.runtime)
    return served


def gpu_at_hand() -> bool:
    """Whether torch would use a GPU: a process that did may not be forked."""
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.device_count()) or torch.backends.mps.is_available()


def run_worker(options: Options, served: Served, own: socket.socket) -> None:
    """One worker, until it is told to stop."""
    if served.model.has_encoder:
        sys.setswitchinterval(SWITCH)
    parent = os.getppid()

    def tell_parent() -> None:
        os.kill(parent, signal.SIGHUP)

    async def main() -> None:
        worker = Worker(options, served)
        worker.tell_others = tell_parent
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload_later, worker)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGHUP])
        patience = math.ceil(options.limits.body_seconds + options.limits.seconds)
        config = uvicorn.Config(
            make_app(worker),
            http=guarded(options.limits),
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
