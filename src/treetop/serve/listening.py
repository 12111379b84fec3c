"""Listening sockets: one per worker, on one address."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

from treetop.errors import TreetopError


def bind_all(host: str, port: int, count: int) -> list[socket.socket]:
    """Sockets bound to one address, one per worker, which do not listen yet."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sockets: list[socket.socket] = []
    # First without SO_REUSEPORT, which would let two servers share the port unnoticed.
    with bind(family, host, port, shared=False) as probe:
        port = probe.getsockname()[1]
    for _ in range(count):
        sockets.append(bind(family, host, port, shared=count > 1))
    return sockets


def bind_path(path: Path, count: int) -> list[socket.socket]:
    """Sockets bound to one path, one per worker: they share its queue. They do not listen yet."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if path.is_socket() and listener.connect_ex(str(path)) == errno.ECONNREFUSED:
            path.unlink()  # left behind by a server that was killed
        listener.close()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(path))
    except OSError as error:
        listener.close()
        raise TreetopError(
            f"cannot listen on {path} ({error.strerror or error}): choose another --uds"
        ) from None
    return [listener, *(listener.dup() for _ in range(count - 1))]


def bind(family: int, host: str, port: int, shared: bool) -> socket.socket:
    """A socket bound to an address; `shared`: several sockets may have the same port."""
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise TreetopError(
            f"cannot listen on {host}:{port} ({error.strerror}): choose another --port"
        ) from None
    return bound
