"""Close a connection in a way that lets a client that is still sending read its response."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

# Time is counted in ticks of the event loop: between two ticks all that has arrived is read, so that a
# process that was stopped or starved for seconds does not close a connection with unread bytes.
TICK_SECONDS = 0.1
IDLE_TICKS = 50  # without a byte from the client, after which the connection is closed
MAX_TICKS = 300  # in all, for a client that never stops sending


class Lingering:
    """A transport that shuts down in two steps while a request is still arriving.

    A socket closed with unread bytes resets the connection, and the reset can reach the client
    before the response does (RFC 9112, section 9.6). So the sending side is closed first. What the
    client still sends is read and discarded, until it closes its own side or nothing more arrives.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        still_arriving: Callable[[], bool],
    ) -> None:
        self.transport, self.loop, self.still_arriving = transport, loop, still_arriving
        self.lingers = False
        self.ticks, self.idle_ticks = 0, 0

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
        if self.transport.can_write_eof():  # TLS cannot
            self.transport.write_eof()
        self.loop.call_later(TICK_SECONDS, self.tick)

    def pause_reading(self) -> None:
        """Stop reading, but not while lingering."""
        if not self.lingers:
            self.transport.pause_reading()

    def discarded(self) -> None:
        """Note that the client is still sending."""
        self.idle_ticks = 0

    def tick(self) -> None:
        """Close the connection if the client has been silent, or has been sending for too long."""
        if self.transport.is_closing():
            return
        self.ticks, self.idle_ticks = self.ticks + 1, self.idle_ticks + 1
        if self.idle_ticks >= IDLE_TICKS or self.ticks >= MAX_TICKS:
            self.transport.abort()
        else:
            self.loop.call_later(TICK_SECONDS, self.tick)
