"""How much a client may ask for, and the errors it gets beyond that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Limits:
    """What one worker takes on. Beyond a limit a client gets an error, never a growing queue."""

    body_bytes: int = 8 << 20  # of a request
    texts: int = 256  # of a request
    explained: int = 50  # labels, of all texts of a request, whose reasons are asked for
    characters: int = 1_000_000  # of a text
    labels: int = 1000  # asked for a text
    allowed: int = 10_000  # names in an allow-list
    seconds: float = 30.0  # a request may take in all
    queue_texts: int = 1024  # waiting
    wait_seconds: float = 1.5  # a request may expect to wait before its turn
    head_bytes: int = 32 << 10  # of a request's line and headers
    head_seconds: float = 10.0  # to send them
    body_seconds: float = 20.0  # to send the body
    connections: int = 2000
    held_bytes: int = 256 << 20  # of all bodies together


class Refused(Exception):  # noqa: N818 - it is an answer
    """A request that is not answered as asked: status, a word for programs, a line for people."""

    def __init__(self, status: int, code: str, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    @property
    def body(self) -> dict[str, Any]:
        """What the client reads."""
        return {"error": {"code": self.code, "message": self.message}}


def busy(seconds: float) -> Refused:
    """The queue is full: come back in some seconds."""
    wait = str(max(1, round(seconds)))
    return Refused(503, "busy", "too many requests are waiting: try again later", retry_after=wait)


def stopping() -> Refused:
    """The server is going down."""
    return Refused(503, "stopping", "the server is stopping", retry_after="2")


def mistake() -> Refused:
    """Something failed that is not the client's fault; what, is in the log only."""
    return Refused(500, "internal", "the server made a mistake")
