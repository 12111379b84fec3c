"""One worker: the model it serves, the queue before it, and what happens to both."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from treetop.runtime import Runtime
from treetop.serve.batching import Batcher, Piece
from treetop.serve.engine import Question, Reasons, Served, mark_of
from treetop.serve.feedback import Journal
from treetop.serve.limits import Refused
from treetop.serve.measures import Measures
from treetop.serve.options import ServiceOptions
from treetop.serve.schemas import PredictRequest

log = logging.getLogger("treetop.serve")
# Texts computed together: with an encoder more of them would only make each one wait longer.
LINEAR_BATCH, ENCODER_BATCH = 64, 16


@dataclass(frozen=True)
class Request:
    """One request: the model it is answered with, and when its time is over."""

    served: Served
    until: float


class Worker:
    """Answers questions about texts with the model of the moment."""

    def __init__(self, options: ServiceOptions, served: Served, runtime: Runtime) -> None:
        self.options, self.served, self.runtime = options, served, runtime
        self.measures = Measures()
        self.journal = Journal(options.feedback) if options.feedback is not None else None
        self.tell_others: Callable[[], None] = lambda: None  # that the model was exchanged
        self.reloading = asyncio.Lock()
        self.tasks: set[asyncio.Task[None]] = set()
        self.ready = False
        most = options.batch or (ENCODER_BATCH if served.model.has_encoder else LINEAR_BATCH)
        self.batcher = Batcher(self.answer, options, most, self.watch_batch)

    async def start(self) -> None:
        """Open what is opened late, and begin to answer."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self.batcher.thread, self.warm_up, self.served)
        self.running = asyncio.create_task(self.batcher.run())
        self.ready = True

    async def stop(self) -> None:
        """Finish what was accepted."""
        self.ready = False
        await self.batcher.finish(self.options.timeout)
        self.running.cancel()

    def watch_batch(self, texts: int, seconds: float) -> None:
        """Figures of a batch."""
        self.measures.batch(texts, seconds)
        self.measures.queue.set(self.batcher.waiting)

    def warm_up(self, served: Served) -> None:
        """Make the first request as quick as any other."""
        if served.model.has_encoder:
            limit_torch(self.runtime.thread_count)
        served.answer([Piece(["a first text"], Question())], self.runtime)

    def answer(self, pieces: list[Piece]) -> list[list[Any]]:
        """What the batcher asks, in its thread: a batch may be for two models, the old and the new."""
        answers: dict[int, list[Any]] = {}
        for served in {id(piece.options.served): piece.options.served for piece in pieces}.values():
            own = [n for n, piece in enumerate(pieces) if piece.options.served is served]
            made = served.answer([pieces[n] for n in own], self.runtime)
            answers |= dict(zip(own, made, strict=True))
        return [answers[number] for number in range(len(pieces))]

    def request(self) -> Request:
        """A request that comes now."""
        return Request(self.served, time.monotonic() + self.options.timeout)

    async def predict(self, request: Request, body: PredictRequest) -> list[list[tuple[str, float]]]:
        """Labels of the texts of one request."""
        texts = [body.text] if body.text is not None else list(body.texts or ())
        self.check_texts(texts)
        allow = None if body.allow is None else tuple(sorted(set(body.allow)))
        refuse_unknown_labels(request.served, allow or ())
        question = Question(body.k, body.threshold, allow, request.served)
        return await self.batcher.submit(texts, question, request.until)

    async def explain(
        self, request: Request, text: str, labels: list[str], words: int
    ) -> list[dict[str, Any]]:
        """Why a text gets labels."""
        self.check_texts([text])
        refuse_unknown_labels(request.served, labels)
        asked = Reasons(tuple(labels), words, request.served)
        reasons: list[dict[str, Any]] = (await self.batcher.submit([text], asked, request.until))[0]
        return reasons

    def keep(self, decisions: list[tuple[str, list[str], list[str]]]) -> None:
        """Keep texts with their right and their rejected labels, to train on later."""
        if self.journal is None:
            raise Refused(409, "no_feedback", "this server keeps no feedback: start it with --feedback")
        self.check_texts([text for text, _, _ in decisions])
        for decision in decisions:
            self.journal.add(*decision)

    def check_texts(self, texts: list[str]) -> None:
        """Refuse too many texts, and texts that are too long."""
        most = self.options.max_texts
        if len(texts) > most:
            raise Refused(413, "too_many_texts", f"{len(texts):,} texts: the limit is {most:,}")
        most = self.options.max_characters
        for number, text in enumerate(texts):
            if len(text) > most:
                message = f"text {number} has {len(text):,} characters: the limit is {most:,}"
                raise Refused(413, "text_too_long", message)

    async def reload(self) -> bool:
        """Exchange the model for the one that is in its folder now; False if it is the same."""
        if self.reloading.locked():
            raise Refused(409, "reloading", "a new model is being opened already")
        async with self.reloading:
            loop, before = asyncio.get_running_loop(), self.served
            try:
                made = await loop.run_in_executor(None, self.open_again, before)
            except Exception as error:
                log.error("the new model cannot be opened, the old one stays: %s", error)
                message = "the new model cannot be opened: the old one stays"
                raise Refused(409, "not_reloaded", message) from None
            if made is None:
                return False
            self.served = made
            self.measures.swaps.inc()
            log.info("now serving the new model, %s labels", len(made.model.classes))
            return True

    def open_again(self, before: Served) -> Served | None:
        """The model in the folder, ready to answer, if it is another one."""
        if mark_of(self.options.model) == before.mark:
            return None
        made = Served(self.options.model, self.runtime)
        made.prepare()
        self.warm_up(made)
        return made


def refuse_unknown_labels(served: Served, labels: Iterable[str]) -> None:
    """Refuse labels that the model does not have."""
    for name in labels:
        if name not in served.numbers:
            raise Refused(404, "unknown_label", f"label {name!r} is not known to the model")


def limit_torch(threads: int) -> None:
    """Leave the other cores to the other workers."""
    try:
        import torch
    except ImportError:
        return
    torch.set_num_threads(threads)
