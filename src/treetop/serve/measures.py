"""Figures for Prometheus, over all workers."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
TEXTS = (1, 2, 4, 8, 16, 32, 64)


def prepare_folder() -> str:
    """A folder in which the workers keep their figures; call before the first fork."""
    folder = tempfile.mkdtemp(prefix="treetop-metrics-")
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
    return folder


class Measures:
    """Counters and histograms of one worker."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self.own = CollectorRegistry()
        common: dict[str, Any] = {"registry": self.own}
        self.requests = Counter("treetop_requests", "Requests answered.", ["path", "status"], **common)
        self.seconds = Histogram(
            "treetop_request_seconds",
            "From the first byte to the last.",
            ["path"],
            buckets=SECONDS,
            **common,
        )
        self.texts = Counter("treetop_texts", "Texts labelled.", **common)
        self.batches = Histogram(
            "treetop_batch_texts", "Texts computed together.", buckets=TEXTS, **common
        )
        self.swaps = Counter("treetop_reloads", "Models exchanged.", **common)
        self.queue = Gauge(
            "treetop_queue_texts", "Texts waiting.", multiprocess_mode="livesum", **common
        )

    def batch(self, texts: int, seconds: float) -> None:
        """A batch was computed."""
        self.texts.inc(texts)
        self.batches.observe(texts)

    def page(self) -> bytes:
        """What Prometheus reads: the sum over all workers."""
        from prometheus_client import CollectorRegistry, generate_latest, multiprocess

        registry = self.own
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            registry = CollectorRegistry()
            multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return bytes(generate_latest(registry))


def forget_worker(process: int) -> None:
    """Gauges of a worker that has ended; its counters stay."""
    folder = Path(os.environ.get("PROMETHEUS_MULTIPROC_DIR", ""))
    for file in folder.glob(f"gauge_live*_{process}.db"):
        file.unlink(missing_ok=True)
