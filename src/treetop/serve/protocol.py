"""uvicorn's HTTP protocol, with limits on slow clients and on the size of request headers."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from treetop.serve.admission import EXPLAIN, Admission
from treetop.serve.errors import RequestError, busy
from treetop.serve.lingering import Lingering
from treetop.serve.options import ServiceOptions
from treetop.serve.refusing import LEAVE, Refusing, response_of

HEADERS_TOO_LARGE = RequestError(431, "long_head", "Request headers are too large")
HEADERS_TIMED_OUT = RequestError(408, "slow", "Timed out while receiving the request headers")
TOO_MANY_PIPELINED = RequestError(400, "impatient", "Too many pipelined requests")
INVALID_HTTP = RequestError(400, "not_http", "Invalid HTTP request")
MAX_PIPELINED = 4
# The parser drops the body of a request that offers to upgrade to HTTP/2, as Java's client does, so the
# offer is removed.
UPGRADE = re.compile(
    rb"\r\n(?:upgrade|http2-settings):[^\r\n]*|\r\nconnection:[^\r\n]*upgrade[^\r\n]*", re.IGNORECASE
)


# Under this key, the scope of a request has a function that tells whether its client has gone.
HAS_GONE = "treetop.has_gone"


class Guarded(Refusing):
    """Closes connections whose headers are too large or too slow, or whose client does not read."""

    timer: asyncio.TimerHandle | None = None
    head_bytes = 0  # received while waiting for the end of the headers
    field_bytes = 0  # of the URL, headers and trailers
    in_head, received, answered = True, False, False
    parse_error = INVALID_HTTP
    takes_place = False  # whether the request that is being received is for labels
    retiring = False  # whether the process closes each connection after its next response

    def connection_made(self, transport: Any) -> None:
        """Start the timer for the headers; answer 503 if there are too many connections."""
        super().connection_made(Lingering(transport, self.loop, self.still_arriving))  # type: ignore[arg-type]
        if len(self.connections) > self.options.connections:
            self.refuse(busy(1))
            return
        self.start_timer(self.options.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timer, and forget a request that waits."""
        self.cancel_timer()
        self.held = b""
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse the data, unless the request that begins here waits or is refused."""
        if self.transport.is_closing():
            self.transport.discarded()  # type: ignore[attr-defined]
            return
        begins = self.in_head and not self.head_bytes and not self.retiring
        if begins and self.is_held_back(data):
            self.cancel_timer()
        else:
            self.parse(data)

    def parse(self, data: bytes) -> None:
        """Parse the data; answer 431 if the headers are too large."""
        if self.in_head:
            if self.timer is None:
                self.start_timer(self.options.head_seconds)
            self.head_bytes += len(data)
            head, end, rest = data.partition(b"\r\n\r\n")
            if end and b"pgrade" in head:
                data = UPGRADE.sub(b"", head) + end + rest
        super().parse(data)
        if self.in_head and self.head_bytes > self.options.head_bytes:
            self.refuse(HEADERS_TOO_LARGE)

    def on_url(self, url: bytes) -> None:
        """Count the URL."""
        self.count(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header or trailer."""
        self.count(name + value)
        super().on_header(name, value)

    def count(self, piece: bytes) -> None:
        """Stop if URL, headers and trailers are too large."""
        self.field_bytes += len(piece)
        if self.field_bytes > self.options.head_bytes:
            self.stop_parsing(HEADERS_TOO_LARGE)

    def on_headers_complete(self) -> None:
        """Start the timer for the body and the response."""
        if len(self.pipeline) >= MAX_PIPELINED:
            self.stop_parsing(TOO_MANY_PIPELINED)
        self.in_head, self.received, self.answered = False, False, False
        self.start_timer(self.options.body_seconds + self.options.timeout + self.options.head_seconds)
        route = self.model_route()
        refusal = None if self.retiring else self.find_refusal(route)
        if refusal is not None:
            if not self.is_worth_receiving():
                self.stop_parsing(refusal)
            self.refusal = refusal
            return
        super().on_headers_complete()
        self.takes_place = self.admission is not None and route not in (None, EXPLAIN)
        cycle = self.cycle
        self.scope[HAS_GONE] = lambda: cycle.disconnected  # type: ignore[literal-required]
        if self.retiring:
            cycle.keep_alive = False

    def on_message_complete(self) -> None:
        """Note that the whole request has been received; answer it if it is refused."""
        self.received, self.field_bytes = True, 0
        if self.refusal is None:
            super().on_message_complete()
            self.take_place()
        else:
            self.answered = True
            self.cancel_timer()
            self.send(self.refusal)
            self.refusal = None
        self.expect_next_request()

    def take_place(self) -> None:
        """Count a request for labels as inside the application, now that all of it has arrived."""
        if self.takes_place and self.admission is not None and not self.cycle.response_complete:
            self.scope[LEAVE] = self.admission.enter()  # type: ignore[literal-required]
        self.takes_place = False

    def on_response_complete(self) -> None:
        """Start the timer for the client to read the response."""
        self.answered = True
        self.cancel_timer()
        if self.transport.get_write_buffer_size():
            self.timer = self.loop.call_later(self.options.timeout, self.close_if_unread)
        self.expect_next_request()
        super().on_response_complete()

    def expect_next_request(self) -> None:
        """After a complete request and its response, wait for the next headers without a timer."""
        if self.received and self.answered:
            self.in_head, self.head_bytes = True, 0

    def close_if_unread(self) -> None:
        """Close the connection if the client has not read the response."""
        self.timer = None
        if self.transport.get_write_buffer_size():
            self.transport.abort()

    def stop_parsing(self, error: RequestError) -> None:
        """Stop the parser: it catches the exception and calls `send_400_response`."""
        self.parse_error = error
        raise ValueError(error.code)

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are not valid HTTP, or the error given to `stop_parsing`."""
        self.refuse(self.parse_error)

    def refuse(self, error: RequestError) -> None:
        """Send an error without calling the application, and close the connection."""
        if not self.transport.is_closing():
            self.cancel_timer()
            self.transport.write(response_of(error, keep=False))
            self.transport.linger()  # type: ignore[attr-defined]

    def still_arriving(self) -> bool:
        """Whether a request has been received in part."""
        return bool(self.head_bytes) if self.in_head else not self.received

    def start_timer(self, seconds: float) -> None:
        """Close the connection after `seconds`, unless the timer is cancelled."""
        self.cancel_timer()
        self.timer = self.loop.call_later(seconds, self.on_timeout)

    def on_timeout(self) -> None:
        """Answer 408 if the headers are incomplete, and close the connection."""
        self.timer = None
        if self.in_head and self.head_bytes:
            self.refuse(HEADERS_TIMED_OUT)
        else:
            self.transport.abort()

    def cancel_timer(self) -> None:
        """Cancel the timer, if there is one."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


def guarded(options: ServiceOptions, admission: Admission | None = None) -> type[asyncio.Protocol]:
    """A protocol class for uvicorn with the limits of `options`; without `admission`, nobody waits."""
    return type("GuardedProtocol", (Guarded,), {"options": options, "admission": admission})
