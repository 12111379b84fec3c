"""Requests joined to batches: who is computed with whom, and who is refused."""

import asyncio
import threading
import time

import pytest

from treetop.serve.batching import SHARE, Batcher
from treetop.serve.limits import Refused
from treetop.serve.options import ServiceOptions


class Engine:
    """Answers a text with itself and its options; remembers the batches."""

    def __init__(self, seconds=0.0):
        self.batches, self.seconds = [], seconds
        self.hold = threading.Event()
        self.hold.set()

    def __call__(self, pieces):
        self.hold.wait(5)
        time.sleep(self.seconds)
        self.batches.append([text for piece in pieces for text in piece.texts])
        if any("bad" in piece.texts for piece in pieces):
            raise ValueError("bad text")
        return [[(text, piece.options) for text in piece.texts] for piece in pieces]


def run(test, engine=None, most=64, **options):
    async def whole():
        batcher = Batcher(engine or Engine(), ServiceOptions("model", **options), most)
        task = asyncio.create_task(batcher.run())
        try:
            return await test(batcher)
        finally:
            task.cancel()
            batcher.thread.shutdown()

    return asyncio.run(whole())


def test_each_request_gets_its_own_answers():
    async def test(batcher):
        jobs = [batcher.submit([f"{n}-{i}" for i in range(n)], n) for n in range(1, 60)]
        return await asyncio.gather(*jobs)

    for n, answers in enumerate(run(test, queue_texts=9999), start=1):
        assert answers == [(f"{n}-{i}", n) for i in range(n)]


def test_requests_that_arrive_together_are_computed_together():
    engine = Engine()

    async def test(batcher):
        engine.hold.clear()
        jobs = [asyncio.create_task(batcher.submit([str(n)], None)) for n in range(20)]
        await asyncio.sleep(0.05)
        engine.hold.set()
        await asyncio.gather(*jobs)

    run(test, engine)
    assert [len(batch) for batch in engine.batches] == [20]


def test_a_batch_waits_for_more_when_told_to():
    engine = Engine()

    async def test(batcher):
        first = asyncio.create_task(batcher.submit(["a"], None))
        await asyncio.sleep(0.02)
        second = asyncio.create_task(batcher.submit(["b"], None))
        await asyncio.gather(first, second)

    run(test, engine, batch_wait=200)
    assert engine.batches == [["a", "b"]]


def test_a_large_request_does_not_keep_a_small_one_waiting():
    engine = Engine()

    async def test(batcher):
        engine.hold.clear()
        large = asyncio.create_task(batcher.submit(["large"] * 500, None))
        await asyncio.sleep(0.02)
        small = asyncio.create_task(batcher.submit(["small"], None))
        await asyncio.sleep(0.02)
        engine.hold.set()
        await asyncio.gather(large, small)

    run(test, engine, most=64)
    place = next(number for number, batch in enumerate(engine.batches) if "small" in batch)
    assert place <= 1
    assert all(batch.count("large") <= SHARE for batch in engine.batches)


def test_a_full_queue_refuses_at_once_and_says_when_to_come_back():
    engine = Engine()

    async def test(batcher):
        engine.hold.clear()
        running = asyncio.create_task(batcher.submit(["a"], None))
        await asyncio.sleep(0.05)
        waiting = [asyncio.create_task(batcher.submit(["b"], None)) for _ in range(10)]
        await asyncio.sleep(0)
        with pytest.raises(Refused) as error:
            await batcher.submit(["c"], None)
        engine.hold.set()
        await asyncio.gather(running, *waiting)
        assert await batcher.submit(["d"], None) == [("d", None)]
        return error.value

    refused = run(test, engine, queue_texts=10)
    assert refused.status == 503
    assert refused.headers == {"retry-after": "1"}


def test_a_long_expected_wait_refuses():
    engine = Engine(seconds=0.05)

    async def test(batcher):
        for _ in range(5):
            await batcher.submit(["a"], None)
        jobs = [asyncio.create_task(batcher.submit(["b"], None)) for _ in range(40)]
        return await asyncio.gather(*jobs, return_exceptions=True)

    made = run(test, engine, max_wait=0.1, most=1)
    refused = [one for one in made if isinstance(one, Refused)]
    # one takes about 0.05 s: no more than the first few would be done within 0.1 s
    assert len(refused) == pytest.approx(37, abs=1)
    assert made[-len(refused) :] == refused


def test_a_request_that_waits_too_long_is_told_so():
    engine = Engine()

    async def test(batcher):
        engine.hold.clear()
        first = asyncio.create_task(batcher.submit(["a"], None))
        await asyncio.sleep(0.02)
        late = asyncio.create_task(batcher.submit(["b"], None))
        await asyncio.sleep(0.15)
        engine.hold.set()
        with pytest.raises(Refused, match=r"not done within 0.1 seconds"):
            await first  # while it is computed
        with pytest.raises(Refused, match=r"not done within 0.1 seconds"):
            await late
        assert await batcher.submit(["c"], None) == [("c", None)]

    run(test, engine, timeout=0.1)


def test_an_error_reaches_only_the_requests_of_its_batch():
    async def test(batcher):
        with pytest.raises(ValueError, match="bad text"):
            await batcher.submit(["bad"], None)
        return await batcher.submit(["good"], 1)

    assert run(test) == [("good", 1)]


def test_a_bad_text_fails_alone():
    engine = Engine()

    async def test(batcher):
        engine.hold.clear()
        first = asyncio.create_task(batcher.submit(["first"], None))
        await asyncio.sleep(0.02)
        jobs = [asyncio.create_task(batcher.submit([text], 1)) for text in ("a", "bad", "b")]
        await asyncio.sleep(0.02)
        engine.hold.set()
        await first
        return await asyncio.gather(*jobs, return_exceptions=True)

    good, bad, other = run(test, engine)
    assert (good, other) == ([("a", 1)], [("b", 1)])
    assert isinstance(bad, ValueError)


def test_finish_answers_what_was_accepted_and_takes_no_more():
    engine = Engine(seconds=0.02)

    async def test(batcher):
        jobs = [asyncio.create_task(batcher.submit([str(n)], None)) for n in range(5)]
        await asyncio.sleep(0)
        await batcher.finish(5)
        with pytest.raises(Refused, match="stopping"):
            await batcher.submit(["x"], None)
        return await asyncio.gather(*jobs)

    assert len(run(test, engine, most=1)) == 5
