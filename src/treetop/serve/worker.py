"""A worker: its model, the queue of requests, and reloading."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from treetop.runtime import Runtime
from treetop.serve.batching import Batcher, Piece
from treetop.serve.engine import ExplainQuery, PredictQuery, Served, version_of
from treetop.serve.errors import RequestError, timed_out
from treetop.serve.features import check_inputs
from treetop.serve.feedback import Journal
from treetop.serve.metrics import Metrics
from treetop.serve.options import ServiceOptions
from treetop.serve.requests import Document, PredictRequest

log = logging.getLogger("treetop.serve")
# Maximum number of texts per batch. With an encoder, larger batches only make each text wait longer.
LINEAR_BATCH, ENCODER_BATCH = 64, 16


@dataclass(frozen=True)
class Request:
    """The model that answers a request, and its deadline (a value of `time.monotonic`)."""

    served: Served
    deadline: float


class Worker:
    """Answers requests with the current model."""

    def __init__(self, options: ServiceOptions, served: Served, runtime: Runtime) -> None:
        self.options, self.served, self.runtime = options, served, runtime
        self.metrics = Metrics()
        self.journal = Journal(options.feedback) if options.feedback is not None else None
        self.notify_others: Callable[[], None] = lambda: None  # that the model has been replaced
        self.reloading = asyncio.Lock()
        self.tasks: set[asyncio.Task[None]] = set()
        self.ready = False
        self.searching = ThreadPoolExecutor(1, "search")
        max_texts = options.batch or (ENCODER_BATCH if served.model.has_encoder else LINEAR_BATCH)
        self.batcher = Batcher(self.answer, options, max_texts, self.observe_batch)

    async def start(self) -> None:
        """Warm up the model, and start to answer requests."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self.batcher.thread, self.warm_up, self.served)
        self.running = asyncio.create_task(self.batcher.run())
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
        """Compute a batch, in the batcher's thread; after a reload it may be for two models."""
        answers: dict[int, list[Any]] = {}
        for served in {id(piece.query.served): piece.query.served for piece in pieces}.values():
            own = [number for number, piece in enumerate(pieces) if piece.query.served is served]
            results = served.answer([pieces[number] for number in own], self.runtime)
            answers |= dict(zip(own, results, strict=True))
        return [answers[number] for number in range(len(pieces))]

    def request(self) -> Request:
        """A request that arrives now."""
        return Request(self.served, time.monotonic() + self.options.timeout)

    async def predict(self, request: Request, body: PredictRequest) -> list[list[tuple[str, float]]]:
        """The (label, score) pairs of each text, best first."""
        documents = body.documents
        self.check_documents(documents, request.served)
        allow = None if body.allow is None else tuple(sorted(set(body.allow)))
        check_labels(request.served, allow or ())
        query = PredictQuery(body.k, body.threshold, allow, request.served)
        return await self.batcher.submit(documents, query, request.deadline)

    async def explain(
        self, request: Request, document: Document, labels: list[str], words: int
    ) -> list[dict[str, Any]]:
        """One explanation per label."""
        self.check_documents([document], request.served)
        check_labels(request.served, labels)
        query = ExplainQuery(tuple(labels), words, request.served)
        results = await self.batcher.submit([document], query, request.deadline)
        explanations: list[dict[str, Any]] = results[0]
        return explanations

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

    def check_documents(self, documents: list[Document], served: Served) -> None:
        """Answer an error if there are too many documents, or the model cannot take one of them."""
        self.check_texts(documents)
        check_inputs(documents, served.columns)

    def check_texts(self, texts: Sequence[Document]) -> None:
        """Answer 413 if there are too many texts, or a text is too long."""
        limit = self.options.max_texts
        if len(texts) > limit:
            message = f"Request has {len(texts):,} texts; the limit is {limit:,}"
            raise RequestError(413, "too_many_texts", message)
        limit = self.options.max_characters
        for number, text in enumerate(texts):
            if isinstance(text, str) and len(text) > limit:
                message = f"Text {number} has {len(text):,} characters; the limit is {limit:,}"
                raise RequestError(413, "text_too_long", message)

    async def reload(self) -> bool:
        """Load the model in the folder; False if it has not changed."""
        if self.reloading.locked():
            raise RequestError(409, "reloading", "Model is already being reloaded")
        async with self.reloading:
            loop = asyncio.get_running_loop()
            try:
                served = await loop.run_in_executor(None, self.load_if_changed)
            except Exception as error:
                log.error("Reload failed, still serving the previous model: %s", error)
                message = "Reload failed: still serving the previous model, see the server's log"
                raise RequestError(409, "not_reloaded", message) from None
            if served is None:
                return False
            self.served = served
            self.metrics.reloads.inc()
            log.info("Model reloaded: %s labels", f"{len(served.model.classes):,}")
            return True

    def load_if_changed(self) -> Served | None:
        """The model in the folder, ready to answer; None if it has not changed."""
        if version_of(self.options.model) == self.served.version:
            return None
        served = Served(self.options.model, self.runtime)
        served.prepare()
        self.warm_up(served)
        return served


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
