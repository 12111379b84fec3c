"""What the command serve does."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from treetop.errors import TreetopError
from treetop.model.layout import read_config
from treetop.runtime.extras import require
from treetop.runtime.parallel import thread_count

# Texts computed together: with an encoder more of them would only make each one wait longer.
LINEAR_BATCH, ENCODER_BATCH = 64, 16
# Processes with an encoder: each needs memory of its own to compute in.
ENCODER_WORKERS = 4


class Order(NamedTuple):
    """The command's options."""

    model: Path
    host: str
    port: int
    workers: int | None
    device: str | None
    token: str | None
    feedback: Path | None
    origins: tuple[str, ...]
    batch: int | None
    batch_wait: float
    max_body: float
    max_texts: int
    max_characters: int
    max_wait: float
    timeout: float
    access_log: bool


def serve_model(order: Order) -> int:
    """Serve a model until told to stop."""
    # Not prometheus_client: workers import it once PROMETHEUS_MULTIPROC_DIR is set.
    require("the web page and the HTTP API", "serve", "fastapi", "uvicorn", "httptools")
    from treetop.serve.limits import Limits
    from treetop.serve.run import gpu_at_hand, serve
    from treetop.serve.worker import Options

    if order.token is not None and not (order.token and order.token.isascii()):
        raise TreetopError("the token must be made of ASCII characters, at least one")
    config = read_config(order.model)
    cores, linear = thread_count(None), config.get("model") == "xr-linear"
    workers = order.workers or cores
    if not (order.workers or linear):
        on_cpu = order.device == "cpu" or (order.device is None and not gpu_at_hand())
        workers = min(cores, ENCODER_WORKERS) if on_cpu else 1
    batch = order.batch or (LINEAR_BATCH if linear else ENCODER_BATCH)
    limits = Limits(
        body_bytes=int(order.max_body * 1e6),
        texts=order.max_texts,
        seconds=order.timeout,
        characters=order.max_characters,
        wait_seconds=order.max_wait,
    )
    options = Options(
        order.model,
        order.host,
        order.port,
        workers,
        max(1, cores // workers),
        order.device,
        order.token,
        order.feedback,
        order.origins,
        batch,
        order.batch_wait / 1e3,
        order.access_log,
        limits,
    )
    return serve(options)
