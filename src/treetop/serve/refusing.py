"""Refuse requests at overload, before their bodies are parsed.

A refusal must cost much less than an answer: otherwise, at several times the capacity of a server,
refusing leaves no time to answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from http import HTTPStatus

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from treetop.serve.errors import RequestError
from treetop.serve.guard import HEADERS
from treetop.serve.options import ServiceOptions

# Requests that wait for the model: name and route.
ROUTES = {
    b"predict": "/v1/predict",
    b"explain": "/v1/explain",
    b"suggest": "/v1/projects/{project_id}/suggest",
    b"suggest-batch": "/v1/projects/{project_id}/suggest-batch",
}
PATH = re.compile(
    rb"(?:/[^?]*)?/v1/(?:projects/[^/?]+/(suggest|suggest-batch)|(predict|explain))(?:\?|$)"
)
# A longer body is not received: the connection is closed instead.
LARGEST_BODY = 65_536

# Given a route: why it would be refused now, or None. Counts the refusal.
Overload = Callable[[str], RequestError | None]


def never(_: str) -> RequestError | None:
    """The server is never overloaded."""
    return None


class Refusing(HttpToolsProtocol):
    """Answers 503 to requests for the model while the queue is full, without the application."""

    options: ServiceOptions
    overload: Overload = staticmethod(never)
    refusal: RequestError | None = None  # of the request that is being received

    def find_refusal(self) -> RequestError | None:
        """Why the request whose headers are complete is refused; None if the application answers it."""
        if self.cycle is not None and not self.cycle.response_complete:
            return None  # pipelined: the answer to the request before comes first
        if self.parser.get_method() != b"POST" or not (path := PATH.match(self.url)):
            return None
        if self.options.allow_origin and any(name == b"origin" for name, _ in self.headers):
            return None  # another website can read only what the application answers
        return self.overload(ROUTES[path[1] or path[2]])

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

    def send_refusal(self) -> None:
        """Answer the refused request, and keep the connection."""
        assert self.refusal is not None
        self.transport.write(response_of(self.refusal, keep=True))
        self.refusal = None
        self.server_state.total_requests += 1
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )


def response_of(error: RequestError, keep: bool) -> bytes:
    """An error as the bytes of an HTTP response."""
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
