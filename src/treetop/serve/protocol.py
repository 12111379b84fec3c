"""HTTP as uvicorn speaks it, with limits on clients that send too slowly or too much before a body."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from treetop.serve.limits import Refused, busy
from treetop.serve.lingering import Lingering
from treetop.serve.options import ServiceOptions

LONG_HEAD = Refused(431, "long_head", "the request's headers are too long")
LATE_HEAD = Refused(408, "slow", "the request's headers took too long to arrive")
IMPATIENT = Refused(400, "impatient", "too many requests were sent before the first was answered")
MOST_AHEAD = 4
# Clients that offer HTTP/2 (Java's do) lose their body in the parser unless the offer is taken out.
UPGRADE = re.compile(
    rb"\r\n(?:upgrade|http2-settings):[^\r\n]*|\r\nconnection:[^\r\n]*upgrade[^\r\n]*", re.IGNORECASE
)


class Guarded(HttpToolsProtocol):
    """Ends a connection whose head is too long or late, or whose answer is not fetched."""

    options: ServiceOptions
    timer: asyncio.TimerHandle | None = None
    head_bytes = 0  # that have come before the head was complete
    named_bytes = 0  # of the address and of all headers, also those after a body
    in_head, received, answered = True, False, False
    wrong = Refused(400, "not_http", "this is not a valid HTTP request")

    def connection_made(self, transport: Any) -> None:
        """The head must come soon."""
        super().connection_made(Lingering(transport, self.loop, self.still_arriving))  # type: ignore[arg-type]
        if len(self.connections) > self.options.connections:
            self.refuse(busy(1))
            return
        self.watch(self.options.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is awaited any more."""
        self.unwatch()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count what comes before the head is complete."""
        if self.transport.is_closing():
            return
        if self.in_head:
            if self.timer is None:
                self.watch(self.options.head_seconds)
            self.head_bytes += len(data)
            head, end, rest = data.partition(b"\r\n\r\n")
            if end and b"pgrade" in head:
                data = UPGRADE.sub(b"", head) + end + rest
        super().data_received(data)
        if self.in_head and self.head_bytes > self.options.head_bytes:
            self.refuse(LONG_HEAD)

    def on_url(self, url: bytes) -> None:
        """Count."""
        self.count(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count, those that follow a body too."""
        self.count(name + value)
        super().on_header(name, value)

    def count(self, piece: bytes) -> None:
        """Refuse names and values that are too long together."""
        self.named_bytes += len(piece)
        if self.named_bytes > self.options.head_bytes:
            self.stop_parsing(LONG_HEAD)

    def on_headers_complete(self) -> None:
        """Body, answer and fetching it have their time."""
        if len(self.pipeline) >= MOST_AHEAD:
            self.stop_parsing(IMPATIENT)
        self.in_head, self.received, self.answered = False, False, False
        self.watch(self.options.body_seconds + self.options.timeout + self.options.head_seconds)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is here as a whole."""
        super().on_message_complete()
        self.received, self.named_bytes = True, 0
        self.begin_again()

    def on_response_complete(self) -> None:
        """The answer is on its way."""
        self.answered = True
        self.unwatch()
        if self.transport.get_write_buffer_size():
            self.timer = self.loop.call_later(self.options.timeout, self.end_if_not_fetched)
        self.begin_again()
        super().on_response_complete()

    def begin_again(self) -> None:
        """After a whole request and its answer the next head may come, whenever it likes."""
        if self.received and self.answered:
            self.in_head, self.head_bytes = True, 0

    def end_if_not_fetched(self) -> None:
        """The client does not read."""
        self.timer = None
        if self.transport.get_write_buffer_size():
            self.transport.abort()

    def stop_parsing(self, refused: Refused) -> None:
        """Refuse from within the parser: it stops at an error and `send_400_response` is called."""
        self.wrong = refused
        raise ValueError(refused.code)

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
        if not self.transport.is_closing():
            self.unwatch()
            self.transport.write(head.encode() + body)
            self.transport.linger()  # type: ignore[attr-defined]

    def still_arriving(self) -> bool:
        """Whether part of a request has been received, but not all of it."""
        return bool(self.head_bytes) if self.in_head else not self.received

    def watch(self, seconds: float) -> None:
        """End the connection in so many seconds, unless something happens before."""
        self.unwatch()
        self.timer = self.loop.call_later(seconds, self.end)

    def end(self) -> None:
        """The client's time is over: it is told if it has not finished its head."""
        self.timer = None
        if self.in_head and self.head_bytes:
            self.refuse(LATE_HEAD)
        else:
            self.transport.abort()

    def unwatch(self) -> None:
        """The connection may go on."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


def guarded(options: ServiceOptions) -> type[asyncio.Protocol]:
    """The protocol class for uvicorn, with the limits of these options."""
    return type("GuardedProtocol", (Guarded,), {"options": options})
