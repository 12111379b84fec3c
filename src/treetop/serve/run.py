"""Run the service: from options to the processes that serve a model.

Everything that workers need is imported here, before the fork, so that they share its memory.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import socket
import ssl
import sys
from contextlib import ExitStack
from typing import Any

from treetop.errors import TreetopError
from treetop.model.layout import read_config
from treetop.runtime import Runtime
from treetop.serve.board import ReloadBoard
from treetop.serve.engine import version_of
from treetop.serve.feedback import Journal
from treetop.serve.hosts import is_address
from treetop.serve.leading import lead
from treetop.serve.options import ServiceOptions

log = logging.getLogger("treetop.serve")


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


def raise_file_limit() -> None:
    """Raise the limit of open files, and so of connections, as far as the system allows."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
