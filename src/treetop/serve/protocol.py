"""HTTP as uvicorn speaks it, with limits on clients that send too slowly or too much before a body."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from treetop.serve.limits import Limits, Refused, busy

LONG_HEAD = Refused(431, "long_head", "the request's headers are too long")


class Guarded(HttpToolsProtocol):
    """Ends a connection whose head is too long or late, or whose answer is not fetched."""

    limits = Limits()
    timer: asyncio.TimerHandle | None = None
    head_bytes = 0
    in_head = True
    wrong = Refused(400, "not_http", "this is not a valid HTTP request")

    def connection_made(self, transport: Any) -> None:
        """The head must come soon."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            self.refuse(busy(1))
            return
        self.watch(self.limits.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is awaited any more."""
        self.unwatch()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count what comes before the head is complete."""
        if self.in_head:
            if self.timer is None:
                self.watch(self.limits.head_seconds)
            self.head_bytes += len(data)
        super().data_received(data)
        if self.in_head and self.head_bytes > self.limits.head_bytes:
            self.refuse(LONG_HEAD)

    def on_headers_complete(self) -> None:
        """Body, answer and fetching it have their time."""
        self.in_head = False
        self.watch(self.limits.body_seconds + self.limits.seconds + self.limits.head_seconds)
        if sum(len(name) + len(value) for name, value in self.headers) > self.limits.head_bytes:
            self.wrong = LONG_HEAD
            raise ValueError("long head")  # the parser stops, and `send_400_response` is called
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """The next head may come whenever it likes."""
        self.unwatch()
        self.in_head, self.head_bytes = True, 0
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """What cannot be read as HTTP."""
        self.refuse(self.wrong)

    def refuse(self, refused: Refused) -> None:
        """An error without the application, and the end of the connection."""
        body = json.dumps(refused.body).encode()
        head = (
            f"HTTP/1.1 {refused.status} Refused\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n"
        )
        head += "".join(f"{name}: {value}\r\n" for name, value in refused.headers.items()) + "\r\n"
        self.transport.write(head.encode() + body)
        self.transport.close()

    def watch(self, seconds: float) -> None:
        """End the connection in so many seconds, unless something happens before."""
        self.unwatch()
        self.timer = self.loop.call_later(seconds, self.transport.abort)

    def unwatch(self) -> None:
        """The connection may go on."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


def guarded(limits: Limits) -> type[asyncio.Protocol]:
    """The protocol class for uvicorn, with these limits."""
    return type("GuardedProtocol", (Guarded,), {"limits": limits})
