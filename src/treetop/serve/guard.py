"""ASGI middleware for every request: host, token, limits of the body, security headers, metrics."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from treetop.serve.errors import RequestError, busy, gone, internal_error, stopping, too_large
from treetop.serve.hosts import Hosts, header
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
WITHOUT_TOKEN = ("/healthz", "/readyz")
WITH_TOKEN = ("/v1", "/metrics", "/openapi")  # the page itself contains nothing secret
log = logging.getLogger("treetop.serve")


class Guard:
    """An ASGI application that wraps another one."""

    def __init__(
        self,
        app: App,
        options: ServiceOptions,
        observe: Callable[[str, int, float], None],
    ) -> None:
        self.app, self.options, self.observe = app, options, observe
        self.hosts = Hosts(options)
        self.token = None if options.token is None else options.token.encode()
        self.held = 0  # bytes of all bodies in memory

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Handle a request, or pass on a lifespan event."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status, body, prefix = time.monotonic(), 0, Body(), self.options.root_path
        if prefix and scope["path"] == prefix:
            await redirect(prefix + "/", send)
            return
        scope = below(prefix, scope)

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        try:
            self.check_access(scope)
            await self.read_body(scope, receive, body)
            await self.app(scope, replay(body, receive), send_with_headers)
        except RequestError as error:
            await respond(error, send_with_headers, body.complete)
        except asyncio.CancelledError:
            if not status:
                await respond(stopping(), send_with_headers, False)
            raise
        except Exception:
            log.exception("Exception while handling a request")
            if not status:
                await respond(internal_error(), send_with_headers, False)
        finally:
            self.held -= body.size
            route = scope.get("route")
            path = getattr(route, "path", "other")
            self.observe(path, status or 499, time.monotonic() - started)

    def check_access(self, scope: Any) -> None:
        """Answer 403 or 401 to requests that may not be answered."""
        if scope["path"] not in WITHOUT_TOKEN:
            self.hosts.check(scope)
        self.hosts.check_origin(scope)
        self.check_token(scope)

    def check_token(self, scope: Any) -> None:
        """Answer 401 to requests to the API without the token."""
        path = scope["path"]
        if self.token is None or path in WITHOUT_TOKEN or not path.startswith(WITH_TOKEN):
            return
        given = header(scope, b"authorization").encode("latin-1")
        if not hmac.compare_digest(given, b"Bearer " + self.token):
            what = "Wrong token" if given[:7].lower() == b"bearer " else "Missing token"
            message = f"{what}: send the header Authorization: Bearer TOKEN"
            raise RequestError(401, "unauthorized", message, www_authenticate="Bearer")

    async def read_body(self, scope: Any, receive: Receive, body: Body) -> None:
        """Read the body, within the limits of its size, of its duration and of all bodies in memory."""
        limit, length = self.options.body_bytes, header(scope, b"content-length")
        if length.isdigit() and int(length) > limit:
            raise too_large(limit)
        try:
            async with asyncio.timeout(self.options.body_seconds):
                while not body.complete:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise gone()
                    chunk = message.get("body", b"")
                    body.add(chunk)
                    self.held += len(chunk)
                    if body.size > limit:
                        raise too_large(limit)
                    if self.held > max(self.options.held_bytes, limit):
                        raise busy(1)
                    body.complete = not message.get("more_body")
        except TimeoutError:
            raise RequestError(408, "slow", "Timed out while receiving the request body") from None


class Body:
    """The part of a request body that has been received."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.size, self.complete = 0, False

    def add(self, chunk: bytes) -> None:
        """Append a chunk."""
        self.chunks.append(chunk)
        self.size += len(chunk)


def below(prefix: str, scope: Any) -> Any:
    """The request as if the server were not below the path `prefix`; a proxy may have removed it."""
    path: str = scope["path"]
    if not prefix or not path.startswith(prefix + "/"):
        return scope
    return {**scope, "path": path[len(prefix) :], "raw_path": path[len(prefix) :].encode()}


async def redirect(path: str, send: Send) -> None:
    """Redirect to another path of this server."""
    headers = [(b"location", path.encode()), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 308, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def replay(body: Body, receive: Receive) -> Receive:
    """A `receive` that returns the body as one message, and then what `receive` does."""
    replayed = False

    async def receive_again() -> Message:
        nonlocal replayed
        if not replayed:
            replayed = True
            return {"type": "http.request", "body": b"".join(body.chunks), "more_body": False}
        return await receive()

    return receive_again


async def respond(error: RequestError, send: Send, complete: bool) -> None:
    """Send an error as JSON, and close the connection unless the whole request was received."""
    body = json.dumps(error.body).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [] if complete else [(b"connection", b"close")]
    headers += [(name.encode(), value.encode()) for name, value in error.headers.items()]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
