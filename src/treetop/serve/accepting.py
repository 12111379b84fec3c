"""Accept connections: many at a time, but few while requests wait.

uvloop accepts one connection per turn of its event loop. Under load a turn takes milliseconds, and new
clients would wait for seconds, while those that are connected already are answered at once.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress

import uvicorn

log = logging.getLogger("treetop.serve")
# Connections accepted per turn of the event loop: in general, while requests wait, and while requests
# wait and there are as many connections as there may be, so that those are refused.
MANY, FEW, LEAST = 64, 8, 1
# After an error such as too many open files.
PAUSE_SECONDS = 1.0
# When the server stops, until connections that were accepted before must be ready to be closed.
CONNECTING_SECONDS = 1.0


class Acceptor:
    """Accepts the connections of one listening socket; closed as an `asyncio.Server` is."""

    def __init__(
        self,
        listener: socket.socket,
        protocol: Callable[[], asyncio.Protocol],
        context: ssl.SSLContext | None,
        at_once: Callable[[], int],
    ) -> None:
        self.listener, self.protocol, self.context, self.at_once = listener, protocol, context, at_once
        self.loop = asyncio.get_running_loop()
        self.connecting: set[asyncio.Task[object]] = set()
        self.closed = False
        listener.setblocking(False)
        self.resume()

    def resume(self) -> None:
        """Begin to accept connections."""
        if not self.closed:
            self.loop.add_reader(self.listener, self.accept)

    def accept(self) -> None:
        """Accept connections that have arrived."""
        for _ in range(self.at_once()):
            try:
                connection, _ = self.listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                log.error("Cannot accept connections (%s), trying again soon", error.strerror)
                self.loop.remove_reader(self.listener)
                self.loop.call_later(PAUSE_SECONDS, self.resume)
                return
            connection.setblocking(False)
            task = self.loop.create_task(self.connect(connection))
            self.connecting.add(task)
            task.add_done_callback(self.connecting.discard)

    async def connect(self, connection: socket.socket) -> None:
        """Hand a connection to a protocol; one whose TLS handshake fails is closed."""
        with suppress(OSError, ssl.SSLError):
            await self.loop.connect_accepted_socket(self.protocol, connection, ssl=self.context)

    def close(self) -> None:
        """Accept no further connections."""
        if not self.closed:
            self.closed = True
            self.loop.remove_reader(self.listener)

    async def wait_closed(self) -> None:
        """Wait until the connections that were accepted have their protocols; TLS may take longer."""
        if self.connecting:
            await asyncio.wait(self.connecting, timeout=CONNECTING_SECONDS)


class Server(uvicorn.Server):
    """uvicorn's server, with an `Acceptor` for its socket."""

    def __init__(
        self, config: uvicorn.Config, listener: socket.socket, is_open: Callable[[], bool], most: int
    ) -> None:
        super().__init__(config)
        self.listener, self.is_open, self.most = listener, is_open, most

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, and begin to accept connections."""
        await super().startup(sockets=[])
        acceptor = Acceptor(self.listener, self.protocol, self.config.ssl, self.at_once)
        self.servers.append(acceptor)  # type: ignore[arg-type]

    def at_once(self) -> int:
        """How many connections to accept now."""
        if self.is_open():
            return MANY
        return FEW if len(self.server_state.connections) < self.most else LEAST

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer the requests on all connections that were accepted, and stop."""
        for acceptor in self.servers:
            acceptor.close()
            await acceptor.wait_closed()
        await super().shutdown(sockets)

    def protocol(self) -> asyncio.Protocol:
        """The protocol of a new connection."""
        made: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg, assignment]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return made
