"""A worker: its model, and the queue of requests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from treetop.model.calibration import NOT_CALIBRATED
from treetop.runtime import Runtime
from treetop.serve.admission import Admission
from treetop.serve.batching import Batcher, Caller, Piece
from treetop.serve.engine import ExplainQuery, PredictQuery, Served
from treetop.serve.errors import RequestError, timed_out
from treetop.serve.features import check_inputs, text_in
from treetop.serve.feedback import Journal
from treetop.serve.metrics import Metrics
from treetop.serve.options import ServiceOptions
from treetop.serve.protocol import HAS_GONE
from treetop.serve.refusing import LEAVE
from treetop.serve.reloading import Reloader
from treetop.serve.requests import Document, PredictRequest

# Maximum number of texts per batch. With an encoder, larger batches only make each text wait longer.
LINEAR_BATCH, ENCODER_BATCH = 64, 16


class Worker:
    """Answers requests with a model."""

    def __init__(self, options: ServiceOptions, served: Served, runtime: Runtime) -> None:
        self.options, self.served, self.runtime = options, served, runtime
        self.metrics = Metrics()
        self.journal = Journal(options.feedback) if options.feedback is not None else None
        self.reloader: Reloader | None = None
        self.ready = False
        self.searching = ThreadPoolExecutor(1, "search")
        max_texts = options.batch or (ENCODER_BATCH if served.model.has_encoder else LINEAR_BATCH)
        self.batcher = Batcher(self.answer, options, max_texts, self.observe_batch)
        self.admission = Admission(options, self.batcher)

    async def start(self) -> None:
        """Warm up the model, and start to answer requests."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self.batcher.thread, self.warm_up, self.served)
        self.running = asyncio.gather(self.batcher.run(), self.admission.run())
        self.ready = True

    async def stop(self) -> None:
        """Stop after the accepted requests have been answered."""
        self.ready = False
        await self.batcher.close(self.options.timeout)
        self.running.cancel()
        self.searching.shutdown(wait=False, cancel_futures=True)

    def observe_batch(self, texts: int) -> None:
        """Update the metrics after a batch."""
        self.metrics.observe_batch(texts)
        self.metrics.queue.set(self.batcher.waiting)

    def warm_up(self, served: Served) -> None:
        """Compile and load what the first request would otherwise wait for."""
        if served.model.has_encoder:
            limit_torch_threads(self.runtime.thread_count)
        served.answer([Piece([served.warm_up_document], PredictQuery())], self.runtime)

    def answer(self, pieces: list[Piece]) -> list[list[Any]]:
        """Compute a batch, in the batcher's thread."""
        return self.served.answer(pieces, self.runtime)

    def caller(self, scope: Any) -> Caller:
        """Who waits for the answer to a request that arrives now."""
        has_gone = scope.get(HAS_GONE, lambda: False)
        leave = scope.get(LEAVE, lambda: None)
        return Caller(time.monotonic() + self.options.timeout, has_gone, leave)

    def count_refused(self) -> None:
        """Update the metrics by the requests that were refused before they reached the application."""
        for route, count in self.admission.take_refused().items():
            self.metrics.observe_refused(route, count)

    async def predict(
        self, caller: Caller, body: PredictRequest
    ) -> list[list[tuple[str, float, float | None]]]:
        """Label, score and, of a calibrated model, probability for each text, best first."""
        documents = body.documents
        self.check_documents(documents)
        allow = None if body.allow is None else tuple(sorted(set(body.allow)))
        check_labels(self.served, allow or ())
        query = PredictQuery(body.k, body.threshold, allow, self.least_probability(body))
        return await self.batcher.submit(documents, query, caller)

    def least_probability(self, body: PredictRequest) -> float:
        """The minimum probability that a request asks for; 409 if the model is not calibrated."""
        if body.probability is None and body.precision is None:
            return 0.0
        thresholds = self.served.model.thresholds
        if thresholds is None:
            raise RequestError(409, "not_calibrated", NOT_CALIBRATED)
        promised = 0.0 if body.precision is None else thresholds.for_precision(body.precision).threshold
        return max(promised, body.probability or 0.0)

    async def explain(
        self, caller: Caller, document: Document, labels: list[str], words: int
    ) -> list[dict[str, Any]]:
        """One explanation per label."""
        self.check_documents([document])
        check_labels(self.served, labels)
        return await self.batcher.submit(labels, ExplainQuery(document, words), caller, slow=True)

    def save_feedback(self, decisions: list[tuple[str, list[str], list[str]]]) -> None:
        """Append (text, accepted labels, rejected labels) to the feedback file."""
        if self.journal is None:
            raise RequestError(409, "no_feedback", "Feedback is off: start the server with --feedback")
        self.check_texts([text for text, _, _ in decisions])
        for decision in decisions:
            self.journal.add(*decision)

    async def find_labels(self, query: str, limit: int) -> list[tuple[str, int]]:
        """Names of labels that contain `query`, and their number of training documents."""
        loop, search = asyncio.get_running_loop(), self.served.search
        try:
            async with asyncio.timeout(self.options.timeout):
                return await loop.run_in_executor(self.searching, search.find, query, limit)
        except TimeoutError:
            raise timed_out(self.options.timeout) from None

    def check_documents(self, documents: list[Document]) -> None:
        """Answer an error if there are too many documents, or the model cannot take one of them."""
        self.check_texts(documents)
        check_inputs(documents, self.served.model.reads_texts, self.served.columns)

    def check_texts(self, texts: Sequence[Document]) -> None:
        """Answer 413 if there are too many texts, or a text is too long."""
        limit = self.options.max_texts
        if len(texts) > limit:
            message = f"Request has {len(texts):,} texts; the limit is {limit:,}"
            raise RequestError(413, "too_many_texts", message)
        limit = self.options.max_characters
        for number, text in enumerate(texts):
            text = text_in(text) or ""
            if len(text) > limit:
                message = f"Text {number} has {len(text):,} characters; the limit is {limit:,}"
                raise RequestError(413, "text_too_long", message)

    async def reload(self) -> bool:
        """Have the model in the folder loaded; False if it has not changed."""
        if self.reloader is None:
            raise RequestError(409, "not_reloaded", "Reload failed: this process has no supervisor")
        return await self.reloader.reload()


def check_labels(served: Served, labels: Iterable[str]) -> None:
    """Answer 404 if the model does not know a label."""
    for name in labels:
        if name not in served.numbers:
            raise RequestError(404, "unknown_label", f"Label {name!r} not found in the model")


def limit_torch_threads(threads: int) -> None:
    """Leave the other cores to the other workers."""
    try:
        import torch
    except ImportError:
        return
    torch.set_num_threads(threads)
