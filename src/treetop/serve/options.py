"""The options of the service, each declared here and nowhere else.

`treetop serve` has an option for every documented field; `treetop.serve.run.serve` serves from Python.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from pathlib import Path

from treetop.errors import TreetopError
from treetop.fields import check_fields, documented


def check_token(token: str) -> None:
    """Raise unless a token can be sent in a header."""
    if not (token and token.isascii()):
        raise TreetopError("the token must be made of ASCII characters, at least one")


@dataclass(frozen=True)
class ServiceOptions:
    """How a model is served, and how much a client may ask for.

    Beyond a limit a client gets an error, never a growing queue.
    """

    model: Path = documented(MISSING, "A model folder.", flags=())
    host: str = documented("127.0.0.1", "Address to listen on; 0.0.0.0: every one.")
    port: int = documented(8000, "0: any that is free.", at_least=0, below=65536)
    workers: int | None = documented(
        None, "Processes; else one a core, with an encoder fewer.", at_least=1
    )
    device: str | None = documented(None, "Of the encoder: cpu, cuda, cuda:1 …")
    token: str | None = documented(
        None,
        "Clients must send it: Authorization: Bearer …",
        parse=check_token,
        environment="TREETOP_TOKEN",
    )
    feedback: Path | None = documented(None, "Keep accepted and rejected labels in this JSONL file.")
    allow_origin: tuple[str, ...] = documented((), "Another site whose pages may call (CORS).")
    batch: int | None = documented(
        None, "Texts computed together at most; else by the model.", at_least=1
    )
    batch_wait: float = documented(0.0, "Milliseconds a batch waits for more texts.", at_least=0)
    max_body: float = documented(8.0, "Megabytes of a request.", at_least=0.001)
    max_texts: int = documented(256, "Texts a request.", at_least=1)
    max_characters: int = documented(1_000_000, "Characters a text.", at_least=1)
    max_wait: float = documented(
        1.5, "Seconds in the queue above which requests get 503.", at_least=0.01
    )
    timeout: float = documented(30.0, "Seconds a request may take.", at_least=0.1)
    access_log: bool = documented(False, "Print every request.")

    # From Python only
    queue_texts: int = 1024  # waiting
    head_bytes: int = 32 << 10  # of a request's line and headers
    head_seconds: float = 10.0  # to send them
    body_seconds: float = 20.0  # to send the body
    connections: int = 2000
    held_bytes: int = 256 << 20  # of all bodies together

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def body_bytes(self) -> int:
        """Most bytes of a request's body."""
        return int(self.max_body * 1e6)
