"""One worker: the model it serves, the queue before it, and what happens to both."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from treetop.errors import TreetopError
from treetop.serve.batching import Batcher, Piece
from treetop.serve.engine import Question, Reasons, Served, members
from treetop.serve.feedback import Journal
from treetop.serve.limits import Limits, Refused
from treetop.serve.measures import Measures
from treetop.serve.schemas import Ask

log = logging.getLogger("treetop.serve")


@dataclass(frozen=True)
class Options:
    """What `treetop serve` was told."""

    folder: Path
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    threads: int = 1  # a worker
    device: str | None = None
    token: str | None = None
    feedback: Path | None = None
    origins: tuple[str, ...] = ()
    batch: int = 64  # texts computed together at most
    batch_wait: float = 0.0  # seconds a batch waits for more
    access_log: bool = False
    limits: Limits = field(default_factory=Limits)


class Worker:
    """Answers questions about texts with the model of the moment."""

    def __init__(self, options: Options, served: Served) -> None:
        self.options, self.served = options, served
        self.measures = Measures()
        self.journal = Journal(options.feedback) if options.feedback is not None else None
        self.tell_others: Callable[[], None] = lambda: None  # that the model was exchanged
        self.reloading = asyncio.Lock()
        self.tasks: set[asyncio.Task[None]] = set()
        self.ready = False
        self.batcher = Batcher(
            self.answer, options.limits, options.batch, options.batch_wait, self.measures.batch
        )

    async def start(self) -> None:
        """Open what is opened late, and begin to answer."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self.batcher.thread, self.warm_up, self.served)
        self.running = asyncio.create_task(self.batcher.run())
        self.ready = True

    async def stop(self) -> None:
        """Finish what was accepted."""
        self.ready = False
        await self.batcher.finish(self.options.limits.seconds)
        self.running.cancel()

    def warm_up(self, served: Served) -> None:
        """Make the first request as quick as any other."""
        if served.has_encoder:
            limit_torch(self.options.threads)
        for member in members(served.model):
            member.tfidf_.threads = self.options.threads
        served.answer([Piece(["a first text"], Question())], self.options.threads)

    def answer(self, pieces: list[Piece]) -> list[list[Any]]:
        """What the batcher asks, in its thread."""
        return self.served.answer(pieces, self.options.threads)

    async def predict(self, ask: Ask) -> list[list[tuple[str, float]]]:
        """Labels of the texts of one request."""
        texts = [ask.text] if ask.text is not None else list(ask.texts or ())
        self.check_texts(texts)
        if ask.explain and len(texts) > self.options.limits.explained:
            most = self.options.limits.explained
            raise Refused(413, "too_many_texts", f"reasons are given for up to {most} texts")
        allow = None if ask.allow is None else tuple(sorted(set(ask.allow)))
        self.check_labels(allow or ())
        return await self.batcher.submit(texts, Question(ask.k, ask.threshold, allow))

    async def explain(self, text: str, labels: list[str], words: int) -> list[dict[str, Any]]:
        """Why a text gets labels."""
        self.check_texts([text])
        self.check_labels(labels)
        reasons: list[dict[str, Any]] = (
            await self.batcher.submit([text], Reasons(tuple(labels), words))
        )[0]
        return reasons

    def check_texts(self, texts: list[str]) -> None:
        """Refuse too many texts, and texts that are too long."""
        most = self.options.limits.texts
        if len(texts) > most:
            raise Refused(413, "too_many_texts", f"{len(texts):,} texts: the limit is {most:,}")
        most = self.options.limits.characters
        for number, text in enumerate(texts):
            if len(text) > most:
                message = f"text {number} has {len(text):,} characters: the limit is {most:,}"
                raise Refused(413, "text_too_long", message)

    def check_labels(self, labels: Any) -> None:
        """Refuse labels that the model does not have."""
        numbers = self.served.numbers
        for name in labels:
            if name not in numbers:
                raise Refused(404, "unknown_label", f"label {name!r} is not known to the model")

    async def reload(self) -> bool:
        """Exchange the model for the one that is in its folder now; False if it is the same."""
        async with self.reloading:
            loop, before = asyncio.get_running_loop(), self.served
            try:
                made = await loop.run_in_executor(None, self.open_again, before)
            except (TreetopError, OSError) as error:
                log.error("the new model cannot be opened, the old one stays: %s", error)
                message = "the new model cannot be opened: the old one stays"
                raise Refused(409, "not_reloaded", message) from None
            if made is None:
                return False
            self.served = made
            self.measures.swaps.inc()
            log.info("now serving the new model, %s labels", len(made.model.classes_))
            return True

    def open_again(self, before: Served) -> Served | None:
        """The model in the folder, ready to answer, if it is another one."""
        try:
            made = Served(self.options.folder, self.options.device)
        except FileNotFoundError:
            raise TreetopError(f"{self.options.folder}: no model here") from None
        if made.mark == before.mark:
            return None
        self.warm_up(made)
        return made


def limit_torch(threads: int) -> None:
    """Leave the other cores to the other workers."""
    try:
        import torch
    except ImportError:
        return
    torch.set_num_threads(threads)
