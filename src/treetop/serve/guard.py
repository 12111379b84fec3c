"""Before and after every request: token, size and time of the body, headers, figures."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from treetop.serve.limits import Limits, Refused, busy

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
        self, app: App, limits: Limits, token: str | None, watch: Callable[[str, int, float], None]
    ) -> None:
        self.app, self.limits, self.watch = app, limits, watch
        self.token = None if token is None else token.encode()
        self.held = 0  # bytes of bodies that are being read or answered

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """One request, or the beginning and end of the application."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status, size = time.monotonic(), 0, 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        try:
            self.check_token(scope)
            size = self.reserve(scope)
            body = await self.read_body(receive)
            await self.app(scope, replayed(body, receive), answer)
        except Refused as refused:
            await respond(refused, answer)
        except Exception:
            log.exception("a request failed")
            if not status:
                await respond(Refused(500, "internal", "the server made a mistake"), answer)
        finally:
            self.held -= size
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
                401, "unauthorized", "give the token: Authorization: Bearer …",
                www_authenticate="Bearer",
            )  # fmt: skip

    def reserve(self, scope: Any) -> int:
        """Room for a body: its length if it is given, else the most it may have."""
        length, most = header(scope, b"content-length"), self.limits.body_bytes
        chunked = header(scope, b"transfer-encoding")
        size = int(length) if length.isdigit() else most if chunked else 0
        if size > most:
            raise too_large(most)
        if self.held + size > max(self.limits.held_bytes, most):
            raise busy(1)
        self.held += size
        return size

    async def read_body(self, receive: Receive) -> bytes:
        """The whole body, up to the limits of size and time."""
        most = self.limits.body_bytes
        chunks, size = [], 0
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refused(400, "cut_off", "the request ended early", connection="close")
                    chunk = message.get("body", b"")
                    chunks.append(chunk)
                    size += len(chunk)
                    if size > most:
                        raise too_large(most)
                    if not message.get("more_body"):
                        return chunks[0] if len(chunks) == 1 else b"".join(chunks)
        except TimeoutError:
            raise Refused(408, "slow", "the body took too long to arrive", connection="close") from None


def header(scope: Any, name: bytes) -> bytes:
    """Value of a header, empty if it is not there."""
    return next((bytes(value) for key, value in scope["headers"] if key == name), b"")


def replayed(body: bytes, receive: Receive) -> Receive:
    """A body that was read already, and then whatever comes."""
    read = False

    async def again() -> Message:
        nonlocal read
        if not read:
            read = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return again


def too_large(most: int) -> Refused:
    """The body is over the limit; the rest of it is not read."""
    return Refused(413, "too_large", f"the body is larger than {most:,} bytes", connection="close")


async def respond(refused: Refused, send: Send) -> None:
    """An error as JSON."""
    body = json.dumps(refused.body).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.encode(), value.encode()) for name, value in refused.headers.items()]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
