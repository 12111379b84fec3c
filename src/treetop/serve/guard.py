"""Before and after every request: token, size and time of the body, headers, figures."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from treetop.serve.limits import Refused, busy, internal_error, stopping
from treetop.serve.options import ServiceOptions

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Any, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
OPEN = ("/healthz", "/readyz")
log = logging.getLogger("treetop.serve")


class Guard:
    """An ASGI application around another one."""

    def __init__(
        self,
        app: App,
        options: ServiceOptions,
        watch: Callable[[str, int, float], None],
    ) -> None:
        self.app, self.options, self.watch = app, options, watch
        self.token = None if options.token is None else options.token.encode()
        self.held = 0  # bytes of bodies that are being read or answered

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """One request, or the beginning and end of the application."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status, body = time.monotonic(), 0, Body()

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        try:
            self.check_origin(scope)
            self.check_token(scope)
            await self.read_body(scope, receive, body)
            await self.app(scope, replayed(body, receive), answer)
        except Refused as refused:
            await respond(refused, answer, body.whole)
        except asyncio.CancelledError:
            if not status:
                await respond(stopping(), answer, False)
            raise
        except Exception:
            log.exception("a request failed")
            if not status:
                await respond(internal_error(), answer, False)
        finally:
            self.held -= body.size
            route = scope.get("route")
            path = getattr(route, "path", "other")
            self.watch(path, status or 499, time.monotonic() - started)

    def check_token(self, scope: Any) -> None:
        """Refuse a request to the API without the token; the page itself holds nothing secret."""
        path = scope["path"]
        if self.token is None or path in OPEN or not path.startswith(("/v1", "/metrics", "/openapi")):
            return
        given = header(scope, b"authorization")
        if not hmac.compare_digest(given, b"Bearer " + self.token):
            raise Refused(
                401,
                "unauthorized",
                "give the token: Authorization: Bearer …",
                www_authenticate="Bearer",
            )

    def check_origin(self, scope: Any) -> None:
        """Refuse what a page of another site makes a browser send, unless that site is allowed."""
        if scope["method"] != "POST" or header(scope, b"sec-fetch-site") != b"cross-site":
            return
        if header(scope, b"origin").decode("latin-1") not in self.options.allow_origin:
            raise Refused(403, "other_site", "pages of other sites may not call: see --allow-origin")

    async def read_body(self, scope: Any, receive: Receive, body: Body) -> None:
        """The whole body, up to the limits of size and time; all bodies together have one too."""
        most, length = self.options.body_bytes, header(scope, b"content-length")
        if length.isdigit() and int(length) > most:
            raise too_large(most)
        try:
            async with asyncio.timeout(self.options.body_seconds):
                while not body.whole:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refused(400, "cut_off", "the request ended early")
                    chunk = message.get("body", b"")
                    body.add(chunk)
                    self.held += len(chunk)
                    if body.size > most:
                        raise too_large(most)
                    if self.held > max(self.options.held_bytes, most):
                        raise busy(1)
                    body.whole = not message.get("more_body")
        except TimeoutError:
            raise Refused(408, "slow", "the body took too long to arrive") from None


class Body:
    """What has come of a request's body."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.size, self.whole = 0, False

    def add(self, chunk: bytes) -> None:
        """A piece more."""
        self.chunks.append(chunk)
        self.size += len(chunk)


def header(scope: Any, name: bytes) -> bytes:
    """Value of a header, empty if it is not there."""
    return next((bytes(value) for key, value in scope["headers"] if key == name), b"")


def replayed(body: Body, receive: Receive) -> Receive:
    """A body that was read already, and then whatever comes."""
    read = False

    async def again() -> Message:
        nonlocal read
        if not read:
            read = True
            return {"type": "http.request", "body": b"".join(body.chunks), "more_body": False}
        return await receive()

    return again


def too_large(most: int) -> Refused:
    """The body is over the limit; the rest of it is not read."""
    return Refused(413, "too_large", f"the body is larger than {most:,} bytes")


async def respond(refused: Refused, send: Send, whole: bool) -> None:
    """An error as JSON. The connection ends unless the request was read as a whole."""
    body = json.dumps(refused.body).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [] if whole else [(b"connection", b"close")]
    headers += [(name.encode(), value.encode()) for name, value in refused.headers.items()]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
