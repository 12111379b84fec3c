"""Run the service: from options to the processes that serve a model.

Everything that workers need is imported here, before the fork, so that they share its memory.
"""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import logging
import math
import os
import signal
import socket
import ssl
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import uvicorn

from treetop.errors import TreetopError
from treetop.model.layout import read_config
from treetop.runtime import Runtime
from treetop.serve.accepting import Server
from treetop.serve.api import make_app
from treetop.serve.batching import Piece
from treetop.serve.board import ReloadBoard
from treetop.serve.engine import PredictQuery, Served, version_of
from treetop.serve.feedback import Journal
from treetop.serve.generation import Generation, Limits, write_report
from treetop.serve.hosts import is_address
from treetop.serve.options import ServiceOptions
from treetop.serve.protocol import guarded
from treetop.serve.reloading import Reloader
from treetop.serve.worker import Worker, limit_torch_threads

log = logging.getLogger("treetop.serve")
KEEP_ALIVE_SECONDS = 30
# Default maximum number of workers with an encoder, each of which needs memory of its own.
MAX_ENCODER_WORKERS = 4
BEAT_SECONDS = 0.1
# Seconds after which the computing thread gives way to the event loop (`sys.setswitchinterval`).
SWITCH_INTERVAL = 0.0005
# The garbage collector looks less often at all the requests that are being answered.
GC_THRESHOLDS = 20_000, 50, 100


def serve(options: ServiceOptions, runtime: Runtime | None = None) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit code. Workers share the threads of `runtime`."""
    runtime = (runtime or Runtime()).changed(device=options.device)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s: %(message)s", stream=sys.stderr)
    if not hasattr(os, "fork"):
        raise TreetopError("treetop serve requires fork: it runs on Linux and macOS")
    from treetop.serve import metrics
    from treetop.serve.listening import bind_all, bind_path
    from treetop.serve.supervisor import Supervisor

    # Raise errors of the options before anything starts.
    read_config(options.model, verify=False)
    check_certificate(options)
    if options.feedback is not None:
        Journal(options.feedback)
    raise_file_limit()
    with metrics.shared_folder(), ExitStack() as stack:
        most = options.workers or runtime.thread_count
        if options.uds is None:
            sockets = bind_all(options.host, options.port, most)
        else:
            sockets = bind_path(options.uds, most)
            stack.callback(options.uds.unlink, missing_ok=True)
        place, board = address_of(options, sockets[0]), ReloadBoard()

        def announce(report: dict[str, Any]) -> None:
            count = report["workers"]
            facts = f"{report['labels']:,} labels, {count} worker{'s' if count > 1 else ''}"
            log.info("Serving %s at %s (%s; press Ctrl+C to quit)", options.model.name, place, facts)
            warn_if_open(options)

        supervisor = Supervisor(
            sockets,
            lambda own, pipe: lead(options, runtime, own, pipe, board),
            lambda: version_of(options.model),
            board,
            reload_seconds=options.reload_timeout,
            stop_seconds=options.stop_seconds + 5,
        )
        return supervisor.run(announce)


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


def address_of(options: ServiceOptions, listener: socket.socket) -> str:
    """The address of the server as a URL, or the path of its socket."""
    if options.uds is not None:
        return f"unix:{options.uds}"
    host, port = listener.getsockname()[:2]
    scheme = "http" if options.tls_cert is None else "https"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}{options.root_path}"


def warn_if_open(options: ServiceOptions) -> None:
    """Warn if other machines can connect and no token is required."""
    own = options.host == "localhost" or (
        is_address(options.host) and ipaddress.ip_address(options.host).is_loopback
    )
    if options.uds is None and options.token is None and not own:
        log.warning(
            "No token is required: everybody who can connect to %s may use this server; set --token",
            options.host,
        )


def check_certificate(options: ServiceOptions) -> None:
    """Raise unless the certificate and its key can be loaded."""
    if options.tls_cert is None or options.tls_key is None:
        return
    try:
        # Without a password, OpenSSL would ask for one on the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            options.tls_cert, options.tls_key, password=lambda: b""
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TreetopError(
            f"cannot serve HTTPS with {options.tls_cert} and {options.tls_key} ({reason}): give a PEM "
            "certificate chain and its private key without a password"
        ) from None


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


def raise_file_limit() -> None:
    """Raise the limit of open files, and so of connections, as far as the system allows."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def fastest_loop() -> Any:
    """The event loop factory of uvloop if it is installed, else None."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
