"""Prometheus metrics, summed over all workers."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from treetop.runtime.temporary import has_temporary_folder, scratch_folder

log = logging.getLogger("treetop.serve")

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
TEXTS = (1, 2, 4, 8, 16, 32, 64)


@contextmanager
def shared_folder() -> Iterator[None]:
    """Create the folder in which workers share their metrics; enter before the first fork."""
    if not has_temporary_folder():
        log.warning("No folder for temporary files can be written: metrics are those of one worker")
        yield
        return
    with scratch_folder("metrics") as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
        yield


class Metrics:
    """Counters, gauges and histograms of one worker."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self.registry = CollectorRegistry()
        common: dict[str, Any] = {"registry": self.registry}
        self.requests = Counter(
            "treetop_requests", "Requests by route and status.", ["path", "status"], **common
        )
        self.seconds = Histogram(
            "treetop_request_seconds",
            "Time from the start of a request to the end of its response.",
            ["path"],
            buckets=SECONDS,
            **common,
        )
        self.texts = Counter("treetop_texts", "Texts labeled.", **common)
        self.batches = Histogram("treetop_batch_texts", "Texts per batch.", buckets=TEXTS, **common)
        self.reloads = Counter("treetop_reloads", "Models reloaded.", **common)
        self.queue = Gauge(
            "treetop_queue_texts", "Texts in the queue.", multiprocess_mode="livesum", **common
        )

    def observe_request(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        self.requests.labels(path, str(status)).inc()
        self.seconds.labels(path).observe(seconds)

    def observe_refused(self, path: str, count: int) -> None:
        """Count requests that were refused with 503 at once; they have no duration."""
        self.requests.labels(path, "503").inc(count)

    def observe_batch(self, texts: int) -> None:
        """Count a batch."""
        self.texts.inc(texts)
        self.batches.observe(texts)

    def exposition(self) -> bytes:
        """The metrics of all workers in Prometheus's text format."""
        from prometheus_client import CollectorRegistry, generate_latest, multiprocess

        registry = self.registry
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            registry = CollectorRegistry()
            multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return bytes(generate_latest(registry))


def forget_worker(process: int) -> None:
    """Remove the gauges of a worker that has exited; its counters stay in the sums."""
    folder = Path(os.environ.get("PROMETHEUS_MULTIPROC_DIR", ""))
    for file in folder.glob(f"gauge_live*_{process}.db"):
        file.unlink(missing_ok=True)
