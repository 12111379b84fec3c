"""Make requests wait, or refuse them, before they are parsed.

A refusal must cost much less than an answer: otherwise, at several times the capacity of a server,
refusing leaves no time to answer.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from treetop.serve.admission import EXPLAIN, Admission
from treetop.serve.errors import RequestError
from treetop.serve.guard import HEADERS
from treetop.serve.options import ServiceOptions

# Requests that wait for the model: name and route.
ROUTES = {
    b"predict": "/v1/predict",
    b"explain": EXPLAIN,
    b"suggest": "/v1/projects/{project_id}/suggest",
    b"suggest-batch": "/v1/projects/{project_id}/suggest-batch",
}
NAME = rb"/v1/(?:projects/[^/? ]+/(suggest|suggest-batch)|(predict|explain))"
PATH = re.compile(rb"(?:/[^? ]*)?" + NAME + rb"(?:\?|$)")
REQUEST_LINE = re.compile(rb"POST (?:/[^? ]*)?" + NAME + rb"(?:\?[^ \r\n]*)? HTTP/1\.1\r\n")
# A longer body is not received: the connection is closed instead.
LARGEST_BODY = 65_536
# Only the parser understands requests with these words in their headers.
SPECIAL = (b"transfer-encoding", b"expect", b"upgrade", b"http2-settings")
# Under this key, the scope of a request has a function to call when it has its labels.
LEAVE = "treetop.leave"


class Refusing(HttpToolsProtocol):
    """Holds back requests for the model while others are answered, or answers 503 itself."""

    options: ServiceOptions
    admission: Admission | None = None
    refusal: RequestError | None = None  # of the request that is being received
    held, held_route = b"", ""  # a request, or its beginning, that waits for its turn
    has_waited = False  # so that the request that is parsed now is not refused any more
    refused_at = 0.0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.app = leaving(self.app)

    def is_held_back(self, data: bytes) -> bool:
        """Whether the request that begins with `data` waits for its turn, or has been refused."""
        admission = self.admission
        if admission is None or admission.is_open or len(data) > LARGEST_BODY:
            return False
        line = REQUEST_LINE.match(data)
        if line is None or (route := ROUTES[line[1] or line[2]]) == EXPLAIN:
            return False
        refusal = admission.refusal(route)
        if refusal is None:
            admission.wait(self)
        elif not self.is_plain(data):
            return False
        elif admission.may_refuse(self):
            self.send(refusal, route)
            return True
        self.held, self.held_route = data, route
        self.transport.pause_reading()
        self._unset_keepalive_if_required()
        return True

    def admit(self) -> None:
        """Hand the request that waits, if the client is still there, to the parser."""
        held, self.held = self.held, b""
        if held and not self.transport.is_closing():
            self.has_waited = True
            self.transport.resume_reading()
            self.parse(held)

    def refuse_held(self, error: RequestError) -> None:
        """Refuse the request that waits."""
        held, self.held = self.held, b""
        if held and not self.transport.is_closing():
            self.transport.resume_reading()
            self.send(error, self.held_route)

    def parse(self, data: bytes) -> None:
        """Hand data to the parser."""
        super().data_received(data)

    def shutdown(self) -> None:
        """Close the connection after the response to the last request, also to one that waits."""
        self.admit()
        super().shutdown()

    def is_plain(self, data: bytes) -> bool:
        """Whether this is one complete request with nothing special about it."""
        head, end, body = data.partition(b"\r\n\r\n")
        head = head.lower() + b"\r\n"
        if head.count(b"\nconnection") != head.count(b"\nconnection: keep-alive\r\n"):
            return False
        if not end or head.count(b"\ncontent-length") != 1 or any(word in head for word in SPECIAL):
            return False
        if self.options.allow_origin and b"\norigin" in head:
            return False  # another website can read only what the application answers
        length = head.partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0].strip()
        return length.isdigit() and int(length) == len(body)

    def model_route(self) -> str | None:
        """The route of the request whose headers are complete, if it waits for the model.

        A pipelined one does not: the answer to the request before comes first.
        """
        if self.cycle is not None and not self.cycle.response_complete:
            return None
        path = PATH.match(self.url) if self.parser.get_method() == b"POST" else None
        return ROUTES[path[1] or path[2]] if path else None

    def find_refusal(self, route: str | None) -> RequestError | None:
        """Why the request whose headers are complete is refused; None if the application answers it."""
        has_waited, self.has_waited = self.has_waited, False
        if route is None or has_waited or self.admission is None:
            return None
        if self.options.allow_origin and any(name == b"origin" for name, _ in self.headers):
            return None  # another website can read only what the application answers
        refusal = self.admission.refusal(route)
        self.admission.refused[route] += refusal is not None
        return refusal

    def is_worth_receiving(self) -> bool:
        """Whether to receive the body of a refused request, so that the connection can be kept."""
        headers = dict(self.headers)
        length = headers.get(b"content-length", b"")
        small = length.isdigit() and int(length) <= LARGEST_BODY
        return small and b"expect" not in headers and self.parser.should_keep_alive()

    def on_body(self, body: bytes) -> None:
        """Ignore the body of a refused request."""
        if self.refusal is None:
            super().on_body(body)

    def send(self, error: RequestError, route: str | None = None) -> None:
        """Send an error, and keep the connection for the next request."""
        if self.admission is not None and route is not None:
            self.admission.refused[route] += 1
        self.transport.write(response_of(error, keep=True))
        self.server_state.total_requests += 1
        self.refused_at = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self.close_if_idle_after(self.timeout_keep_alive)

    def close_if_idle_after(self, seconds: float) -> None:
        """Start the timer of the idle connection."""
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection if it is idle; refusals do not restart the timer, to save time."""
        left = self.refused_at + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self.close_if_idle_after(left)
        else:
            super().timeout_keep_alive_handler()


def leaving(app: Any) -> Any:
    """An application that notes when a request has left it."""

    async def run(scope: Any, receive: Any, send: Any) -> None:
        try:
            await app(scope, receive, send)
        finally:
            if LEAVE in scope:
                scope[LEAVE]()

    return run


@lru_cache(maxsize=256)
def response_to(
    status: int, code: str, message: str, headers: tuple[tuple[str, str], ...], keep: bool
) -> bytes:
    """An error as the bytes of an HTTP response."""
    error = RequestError(status, code, message, **dict(headers))
    body = json.dumps(error.body).encode()
    lines = [
        f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}",
        "content-type: application/json",
        f"content-length: {len(body)}",
        *([] if keep else ["connection: close"]),
        *(f"{name}: {value}" for name, value in error.headers.items()),
        *(f"{name.decode()}: {value.decode()}" for name, value in HEADERS),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def response_of(error: RequestError, keep: bool) -> bytes:
    """An error as the bytes of an HTTP response."""
    return response_to(error.status, error.code, error.message, tuple(error.headers.items()), keep)
