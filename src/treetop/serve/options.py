"""The options of the service, each declared here and nowhere else.

`treetop serve` has an option for every documented field. From Python, see `treetop.serve.run.serve`.
"""

from __future__ import annotations

import re
from dataclasses import MISSING, dataclass
from pathlib import Path

from treetop.errors import TreetopError
from treetop.fields import check_fields, documented


def check_token(token: str) -> None:
    """Raise unless the token can be sent in an HTTP header."""
    if not (token and token.isascii()):
        raise TreetopError("the token must not be empty and must consist of ASCII characters")


def check_root_path(path: str) -> None:
    """Raise unless a path starts with a slash and ends without one."""
    if path and not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", path):
        raise TreetopError(f"root_path is {path!r}: give a path such as /tags")


@dataclass(frozen=True)
class ServiceOptions:
    """How a model is served, and the limits of what a client may request.

    Requests beyond a limit are answered with an error: queues and memory stay bounded.
    """

    model: Path = documented(MISSING, "Model folder.", flags=())
    host: str = documented("127.0.0.1", "Address to listen on; 0.0.0.0 listens on all interfaces.")
    port: int = documented(8000, "Port to listen on; 0 picks a free one.", at_least=0, below=65536)
    uds: Path | None = documented(None, "Listen on this Unix domain socket instead of a port.")
    root_path: str = documented(
        "",
        "Path below which a proxy publishes the server, such as /tags.",
        metavar="PATH",
        parse=check_root_path,
    )
    tls_cert: Path | None = documented(None, "PEM file with the certificate chain, to serve HTTPS.")
    tls_key: Path | None = documented(None, "PEM file with the certificate's private key.")
    workers: int | None = documented(
        None, "Number of processes; by default one per core, with an encoder at most 4.", at_least=1
    )
    device: str | None = documented(None, "Device of the encoder: cpu, cuda, cuda:1 or mps.")
    token: str | None = documented(
        None,
        "Require this token from clients, as Authorization: Bearer TOKEN.",
        parse=check_token,
        environment="TREETOP_TOKEN",
    )
    feedback: Path | None = documented(None, "JSONL file to save accepted and rejected labels to.")
    allow_origin: tuple[str, ...] = documented(
        (), "Origin of another website that may call the API (CORS).", metavar="ORIGIN"
    )
    allow_host: tuple[str, ...] = documented(
        (),
        "Another name of this server, besides localhost and IP addresses; * allows any. Without a "
        "token, requests for other names are rejected, as a protection against DNS rebinding.",
        metavar="HOST",
    )
    batch: int | None = documented(
        None, "Maximum number of texts per batch; by default 64, with an encoder 16.", at_least=1
    )
    batch_wait: float = documented(
        0.0, "Milliseconds to wait for further texts before a batch is started.", at_least=0
    )
    max_body: float = documented(8.0, "Maximum size of a request in MB.", at_least=0.001)
    max_texts: int = documented(256, "Maximum number of texts per request.", at_least=1)
    max_characters: int = documented(1_000_000, "Maximum number of characters per text.", at_least=1)
    max_wait: float = documented(
        1.5,
        "Answer 503 if a request would wait in the queue longer than this, in seconds.",
        at_least=0.01,
    )
    timeout: float = documented(30.0, "Maximum duration of a request in seconds.", at_least=0.1)
    reload_timeout: float = documented(
        300.0,
        "Seconds after which the server gives up on a new model that is not ready.",
        at_least=0.1,
    )
    access_log: bool = documented(False, "Log every request.")

    # From Python only
    queue_texts: int = 1024  # maximum number of texts in the queue
    head_bytes: int = 32 << 10  # maximum size of the request line and headers
    head_seconds: float = 10.0  # to receive them
    body_seconds: float = 20.0  # to receive the body
    connections: int = 2000  # per worker
    held_bytes: int = 256 << 20  # of all request bodies in memory, per worker
    hang_seconds: float = 30.0  # without a sign of life, after which a worker is killed

    def __post_init__(self) -> None:
        check_fields(self)
        if (self.tls_cert is None) != (self.tls_key is None):
            raise TreetopError("HTTPS needs both files: --tls-cert and --tls-key")

    @property
    def stop_seconds(self) -> float:
        """Time for workers to answer the requests they have accepted."""
        return self.body_seconds + self.timeout + 10

    @property
    def body_bytes(self) -> int:
        """Maximum size of a request body in bytes."""
        return int(self.max_body * 1e6)
