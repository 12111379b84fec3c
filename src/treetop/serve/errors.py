"""The errors a client can get, and the fixed limits of a request."""

from __future__ import annotations

from typing import Any

# Fixed, unlike the limits in `ServiceOptions`, because the OpenAPI schema states them.
MAX_LABELS = 1000  # labels per text
MAX_ALLOWED = 10_000  # labels in `allow`
MAX_EXPLAINED = 50  # explained labels per request, over all texts


class RequestError(Exception):
    """An error response: HTTP status, a stable code for programs, a message for people."""

    def __init__(self, status: int, code: str, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    @property
    def body(self) -> dict[str, Any]:
        """The JSON body of the response."""
        return {"error": {"code": self.code, "message": self.message}}


def busy(seconds: float) -> RequestError:
    """503: the queue is full; the client should retry in `seconds`."""
    wait = str(max(1, round(seconds)))
    return RequestError(503, "busy", "Too many requests: retry later", retry_after=wait)


def stopping() -> RequestError:
    """503: the server is shutting down."""
    return RequestError(503, "stopping", "Server is shutting down", retry_after="2")


def timed_out(seconds: float) -> RequestError:
    """503: the request took longer than `--timeout`."""
    message = f"Request timed out after {seconds:g} seconds"
    return RequestError(503, "timeout", message, retry_after="5")


def gone() -> RequestError:
    """400: the client closed the connection, so nobody will read this."""
    return RequestError(400, "cut_off", "Client disconnected")


def too_large(limit: int) -> RequestError:
    """413: the body is larger than `--max-body`."""
    return RequestError(413, "too_large", f"Request body exceeds the limit of {limit:,} bytes")


def internal_error() -> RequestError:
    """500, without details: those are only logged."""
    return RequestError(500, "internal", "Internal server error")
