"""How much a client may ask for, and the errors it gets beyond that."""

from __future__ import annotations

from typing import Any

# What a client may ask for whatever the options are: the OpenAPI names these limits.
MOST_LABELS = 1000  # labels asked for per text
MOST_ALLOWED = 10_000  # names in an allow-list
MOST_EXPLAINED = 50  # labels, of all texts of a request, whose reasons are asked for


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


def internal_error() -> Refused:
    """Something failed that is not the client's fault; what, is in the log only."""
    return Refused(500, "internal", "internal server error")
