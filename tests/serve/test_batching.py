"""Micro-batching: which requests share a batch, and which are refused."""

import asyncio
import threading
import time

import pytest

from tests.serve.conftest import run_async
from treetop.serve.batching import TEXTS_PER_TURN, Batcher, Caller
from treetop.serve.errors import RequestError
from treetop.serve.options import ServiceOptions


class Engine:
    """Answers a text with itself and its query; remembers the batches."""

    def __init__(self, seconds=0.0):
        self.batches, self.seconds = [], seconds
        self.hold = threading.Event()
        self.hold.set()

    def __call__(self, pieces):
        self.hold.wait(60)
        time.sleep(self.seconds)
        self.batches.append([text for piece in pieces for text in piece.texts])
        if any("bad" in piece.texts for piece in pieces):
            raise ValueError("bad text")
        return [[(text, piece.query) for text in piece.texts] for piece in pieces]


def run(test, engine=None, max_texts=64, **options):
    async def run_with_batcher():
        batcher = Batcher(engine or Engine(), ServiceOptions("model", **options), max_texts)
        task = asyncio.create_task(batcher.run())
        try:
            return await test(batcher)
        finally:
            task.cancel()
            batcher.thread.shutdown()

    return run_async(run_with_batcher())


def test_each_request_gets_its_own_answers():
    async def test(batcher):
        jobs = [batcher.submit([f"{n}-{i}" for i in range(n)], n) for n in range(1, 60)]
        return await asyncio.gather(*jobs)

    for n, answers in enumerate(run(test, queue_texts=9999), start=1):
        assert answers == [(f"{n}-{i}", n) for i in range(n)]


def test_requests_that_arrive_at_once_share_a_batch():
    engine = Engine()

    async def test(batcher):
        engine.hold.clear()
        jobs = [asyncio.create_task(batcher.submit([str(n)], None)) for n in range(20)]
        await asyncio.sleep(0.05)
        engine.hold.set()
        await asyncio.gather(*jobs)

    run(test, engine)
    assert [len(batch) for batch in engine.batches] == [20]


def test_batch_wait_lets_a_batch_wait_for_further_texts():
    engine = Engine()

    async def test(batcher):
        first = asyncio.create_task(batcher.submit(["a"], None))
        for _ in range(5):
            await asyncio.sleep(0)  # the batcher waits now
        second = asyncio.create_task(batcher.submit(["b"], None))
        await asyncio.gather(first, second)

    run(test, engine, batch_wait=200)
    assert engine.batches == [["a", "b"]]


def test_a_large_request_does_not_delay_a_small_one():
    engine = Engine()

    async def test(batcher):
        engine.hold.clear()
        large = asyncio.create_task(batcher.submit(["large"] * 500, None))
        await asyncio.sleep(0.02)
        small = asyncio.create_task(batcher.submit(["small"], None))
        await asyncio.sleep(0.02)
        engine.hold.set()
        await asyncio.gather(large, small)

    run(test, engine, max_texts=64)
    place = next(number for number, batch in enumerate(engine.batches) if "small" in batch)
    assert place <= 1
    assert all(batch.count("large") <= TEXTS_PER_TURN for batch in engine.batches)


def test_a_full_queue_answers_503_with_retry_after():
    engine = Engine()

    async def test(batcher):
        engine.hold.clear()
        running = asyncio.create_task(batcher.submit(["a"], None))
        await asyncio.sleep(0.05)
        waiting = [asyncio.create_task(batcher.submit(["b"], None)) for _ in range(10)]
        await asyncio.sleep(0)
        with pytest.raises(RequestError) as error:
            await batcher.submit(["c"], None)
        engine.hold.set()
        await asyncio.gather(running, *waiting)
        assert await batcher.submit(["d"], None) == [("d", None)]
        return error.value

    refused = run(test, engine, queue_texts=10)
    assert refused.status == 503
    assert refused.headers == {"retry-after": "1"}


def test_a_long_expected_wait_answers_503():
    async def test(batcher):
        batcher.quick.seconds_per_text = 0.04
        jobs = [asyncio.create_task(batcher.submit(["b"], None)) for _ in range(40)]
        return await asyncio.gather(*jobs, return_exceptions=True)

    answers = run(test, max_wait=0.1, max_texts=1)
    refused = [answer for answer in answers if isinstance(answer, RequestError)]
    assert len(refused) == 37  # three are computed within 0.12 s, the third begins after 0.08 s
    assert answers[-len(refused) :] == refused


def test_a_request_that_times_out_gets_503():
    engine = Engine()

    async def test(batcher):
        engine.hold.clear()
        first = asyncio.create_task(batcher.submit(["a"], None))
        await asyncio.sleep(0.02)
        late = asyncio.create_task(batcher.submit(["b"], None))
        await asyncio.sleep(0.15)
        engine.hold.set()
        with pytest.raises(RequestError, match=r"Request timed out after 0.1 seconds"):
            await first  # while it is computed
        with pytest.raises(RequestError, match=r"Request timed out after 0.1 seconds"):
            await late
        assert await batcher.submit(["c"], None, Caller(time.monotonic() + 60)) == [("c", None)]

    run(test, engine, timeout=0.1)


def test_an_error_does_not_stop_the_batcher():
    async def test(batcher):
        with pytest.raises(ValueError, match="bad text"):
            await batcher.submit(["bad"], None)
        return await batcher.submit(["good"], 1)

    assert run(test) == [("good", 1)]


def test_a_failing_text_does_not_fail_its_batch():
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


def test_close_answers_accepted_requests_and_refuses_new_ones():
    engine = Engine(seconds=0.02)

    async def test(batcher):
        jobs = [asyncio.create_task(batcher.submit([str(n)], None)) for n in range(5)]
        await asyncio.sleep(0)
        await batcher.close(60)
        with pytest.raises(RequestError, match="Server is shutting down"):
            await batcher.submit(["x"], None)
        return await asyncio.gather(*jobs)

    assert len(run(test, engine, max_texts=1)) == 5


def test_slow_work_alternates_with_batches():
    """Seven explanations of twenty labels each do not stop predictions."""
    engine = Engine()

    async def test(batcher):
        engine.hold.clear()
        first = asyncio.create_task(batcher.submit(["first"], None))
        await asyncio.sleep(0.02)
        slow = [
            asyncio.create_task(batcher.submit([f"slow {n}"] * 20, None, slow=True)) for n in range(7)
        ]
        quick = [asyncio.create_task(batcher.submit(["quick"] * 40, None)) for _ in range(4)]
        await asyncio.sleep(0.02)
        engine.hold.set()
        await asyncio.gather(first, *slow, *quick)

    run(test, engine, max_texts=64)
    kinds = [{text.split()[0] for text in batch} for batch in engine.batches[1:]]
    assert all(len(kind) == 1 for kind in kinds)
    last = max(number for number, kind in enumerate(kinds) if kind == {"quick"})
    assert kinds[: last + 1] == [{"slow"}, {"quick"}] * ((last + 1) // 2)
    slow = [batch for batch in engine.batches[1:] if batch[0].startswith("slow")]
    assert all(len(batch) == 1 for batch in slow)
    assert {batch[0] for batch in slow[:7]} == {f"slow {n}" for n in range(7)}  # in turn
    assert len(slow) == 140


@pytest.mark.parametrize("slow", [False, True])
def test_nothing_is_computed_for_a_client_that_has_gone(slow):
    engine = Engine()

    async def test(batcher):
        engine.hold.clear()
        first = asyncio.create_task(batcher.submit(["first"], None))
        await asyncio.sleep(0.02)
        gone = []
        caller = Caller(time.monotonic() + 60, lambda: bool(gone))
        left = asyncio.create_task(batcher.submit(["left"] * 20, None, caller, slow=slow))
        await asyncio.sleep(0.02)
        gone.append(True)
        engine.hold.set()
        await first
        with pytest.raises(RequestError, match="Client disconnected"):
            await left
        assert await batcher.submit(["next"], None) == [("next", None)]
        assert batcher.waiting == 0

    run(test, engine)
    assert engine.batches == [["first"], ["next"]]


def test_slow_work_stops_when_its_time_is_over():
    engine = Engine(seconds=0.05)

    async def test(batcher):
        with pytest.raises(RequestError, match="Request timed out"):
            await batcher.submit(["slow"] * 1000, None, Caller(time.monotonic() + 0.3), slow=True)
        await batcher.submit(["next"], None)

    run(test, engine)
    assert len(engine.batches) < 20


def test_a_batch_is_limited_by_the_length_of_its_texts():
    engine = Engine()

    async def test(batcher):
        await batcher.submit(["x" * 400_000] * 10, None)

    run(test, engine)
    assert [len(batch) for batch in engine.batches] == [3, 3, 3, 1]
