"""The process of one worker: its server, until it is told to stop or to retire."""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

import uvicorn

from treetop.runtime import Runtime
from treetop.serve.accepting import Server
from treetop.serve.api import make_app
from treetop.serve.engine import Served
from treetop.serve.options import ServiceOptions
from treetop.serve.protocol import guarded
from treetop.serve.reloading import Reloader
from treetop.serve.worker import Worker

KEEP_ALIVE_SECONDS = 30
BEAT_SECONDS = 0.1
# Seconds after which the computing thread gives way to the event loop (`sys.setswitchinterval`).
SWITCH_INTERVAL = 0.0005
# The garbage collector looks less often at all the requests that are being answered.
GC_THRESHOLDS = 20_000, 50, 100


def run_worker(
    options: ServiceOptions,
    served: Served,
    own: socket.socket,
    runtime: Runtime,
    beat: Callable[[], None],
    reloader: Reloader,
) -> None:
    """Run one worker until it receives a signal. It calls `beat` again and again while it works."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    gc.set_threshold(*GC_THRESHOLDS)
    parent = os.getppid()

    async def main() -> None:
        worker = Worker(options, served, runtime)
        worker.reloader = reloader
        # Refusals by the application are logged.
        protocol = guarded(options) if options.access_log else guarded(options, worker.admission)
        config = uvicorn.Config(
            make_app(worker),
            http=protocol,
            ws="none",
            lifespan="on",
            log_level="error",  # a warning per malformed request would let clients fill the log
            access_log=options.access_log,
            server_header=False,
            proxy_headers=False,
            ssl_certfile=options.tls_cert,
            ssl_keyfile=options.tls_key,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=math.ceil(options.body_seconds + options.timeout),
        )
        if options.access_log:
            logging.getLogger("uvicorn.access").setLevel(logging.INFO)
        server = Server(config, own, lambda: worker.admission.is_open, options.connections)
        tasks = {asyncio.create_task(exit_with(parent, server))}
        tasks.add(asyncio.create_task(keep_beating(worker, beat)))

        def on_retire() -> None:
            tasks.add(asyncio.create_task(retire(server, protocol)))

        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, on_retire)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
        await server.serve(sockets=[own])
        for task in tasks:
            task.cancel()

    with asyncio.Runner(loop_factory=fastest_loop()) as runner:
        runner.run(main())


async def keep_beating(worker: Worker, beat: Callable[[], None]) -> None:
    """Show that the event loop runs, and that the computing thread finishes its batches."""
    while True:
        if worker.ready and not worker.batcher.is_stuck():
            beat()
        worker.count_refused()
        await asyncio.sleep(BEAT_SECONDS)


async def retire(server: Any, protocol: Any) -> None:
    """Accept no further connections, and exit when the last one has been closed.

    The next response on each connection closes it: its client connects to the next generation.
    """
    while not server.started:
        await asyncio.sleep(BEAT_SECONDS)
    protocol.retiring = True
    for listener in server.servers:
        listener.close()
    while server.server_state.connections:
        await asyncio.sleep(BEAT_SECONDS)
    server.should_exit = True


async def exit_with(parent: int, server: Any) -> None:
    """Shut down when the supervisor has exited."""
    while os.getppid() == parent:
        await asyncio.sleep(1)
    server.should_exit = True


def fastest_loop() -> Any:
    """The event loop factory of uvloop if it is installed, else None."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
