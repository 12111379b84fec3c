"""Closing a connection so that a client that is still sending can read its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

SECONDS = 2.0  # to read the answer; what the client sends meanwhile is discarded


class Lingering:
    """A transport that shuts down in two steps while a request is still arriving.

    A socket closed with unread bytes resets the connection, and the reset can reach the client
    before the answer does (RFC 9112, section 9.6). So the sending side is closed first, and the
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
        """Everything else is the transport's own."""
        return getattr(self.transport, name)

    def is_closing(self) -> bool:
        """A lingering connection accepts no further request and no further answer."""
        return self.lingers or self.transport.is_closing()

    def close(self) -> None:
        """Close now, or linger while a request is still arriving."""
        if self.still_arriving():
            self.linger()
        else:
            self.transport.close()

    def linger(self) -> None:
        """Close the sending side; discard what is received until the client closes or time is up."""
        if self.is_closing():
            return
        self.lingers = True
        self.transport.resume_reading()
        self.transport.write_eof()
        self.loop.call_later(SECONDS, self.transport.abort)
