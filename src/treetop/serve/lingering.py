"""Close a connection in a way that lets a client that is still sending read its response."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

SECONDS = 2.0  # for the client to read its response; whatever it sends meanwhile is discarded


class Lingering:
    """A transport that shuts down in two steps while a request is still arriving.

    A socket closed with unread bytes resets the connection, and the reset can reach the client
    before the response does (RFC 9112, section 9.6). So the sending side is closed first, and the
    rest once the client has closed its own or `SECONDS` have passed.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        still_arriving: Callable[[], bool],
    ) -> None:
        self.transport, self.loop, self.still_arriving = transport, loop, still_arriving
        self.lingers = False

    def __getattr__(self, name: str) -> Any:
        """Delegate everything else to the transport."""
        return getattr(self.transport, name)

    def is_closing(self) -> bool:
        """Whether the connection accepts no further requests and responses."""
        return self.lingers or self.transport.is_closing()

    def close(self) -> None:
        """Close now, or linger while a request is still arriving."""
        if self.still_arriving():
            self.linger()
        else:
            self.transport.close()

    def linger(self) -> None:
        """Close the sending side; discard what is received until the client closes too."""
        if self.is_closing():
            return
        self.lingers = True
        self.transport.resume_reading()
        self.transport.write_eof()
        self.loop.call_later(SECONDS, self.transport.abort)
