"""Tasks on several threads: results in order, errors and interrupts reach the caller."""

import os
import sys
import threading
import time

import pytest

from treetop.runtime import parallel
from treetop.runtime.background import Later, short_turns


def test_results_are_in_the_order_of_the_tasks():
    def work(task, _):
        time.sleep(0.002 * (5 - task))
        return task * task

    assert parallel.run(work, range(5), 3) == [0, 1, 4, 9, 16]


def test_an_error_cancels_the_other_tasks_and_is_raised():
    done = []

    def work(task, cancel):
        if task == 0:
            raise ValueError("task 0")
        while not cancel[0]:
            time.sleep(0.001)
        done.append(task)

    with pytest.raises(ValueError, match="task 0"):
        parallel.run(work, range(10), 2)
    assert len(done) <= 1


def test_an_interrupt_cancels_the_tasks(monkeypatch):
    seen = threading.Event()

    def work(_, cancel):
        while not cancel[0]:
            time.sleep(0.001)
        seen.set()

    join = threading.Thread.join
    calls = []

    def interrupted(self, timeout=None):
        if not calls:
            calls.append(1)
            raise KeyboardInterrupt
        join(self, timeout)

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        parallel.run(work, [0], 1)
    assert seen.is_set()


def test_an_interrupt_cancels_nested_runs(monkeypatch):
    begun = threading.Event()

    def inner(_, cancel):
        begun.set()
        while not cancel[0]:
            time.sleep(0.001)

    main, join = threading.current_thread(), threading.Thread.join

    def interrupted(self, timeout=None):
        if threading.current_thread() is main and not interrupted.done:
            begun.wait()
            interrupted.done = True
            raise KeyboardInterrupt
        join(self, timeout)

    interrupted.done = False
    monkeypatch.setattr(threading.Thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        parallel.run(lambda task, cancel: parallel.run(inner, [task], 1), range(2), 2)


def test_an_interrupt_does_not_reach_the_runs_of_other_threads(monkeypatch):
    begun, interrupted = threading.Barrier(2), threading.Event()
    main, join = threading.current_thread(), threading.Thread.join

    def join_or_interrupt(self, timeout=None):
        if threading.current_thread() is main and not interrupted.is_set():
            interrupted.set()
            raise KeyboardInterrupt
        join(self, timeout)

    def other(task, cancel):
        if task == 0:
            begun.wait(30)
            interrupted.wait(30)
        return task + cancel[0]

    own = Later(lambda: parallel.run(other, range(9), 2))
    begun.wait(30)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "join", join_or_interrupt)
        with pytest.raises(KeyboardInterrupt):
            parallel.run(lambda *_: time.sleep(0.01), range(3), 2)
    assert own.result() == list(range(9))


@pytest.mark.parametrize("threads", [1, 2])
def test_incomplete_results_are_never_returned(threads):
    returned, begun = [], threading.Event()

    def inner(_, cancel):
        begun.set()
        while not cancel[0]:
            time.sleep(0.001)

    def work(task, _):
        if task == 0:
            begun.wait(30)
            raise ValueError("task 0")
        returned.append(parallel.over_ranges(inner, 4, threads))

    with pytest.raises(ValueError, match="task 0"):
        parallel.run(work, range(2), 2)
    assert returned == []


def test_short_turns_of_two_threads_end_as_they_began():
    usual, leave = sys.getswitchinterval(), threading.Event()

    def other(_):
        with short_turns():
            entered.set()
            leave.wait(30)
            return sys.getswitchinterval()

    entered = threading.Event()
    with short_turns():
        later = Later(lambda: other(0))
        entered.wait(30)
    assert sys.getswitchinterval() == pytest.approx(usual / 10)
    leave.set()
    assert later.result() == pytest.approx(usual / 10)
    assert sys.getswitchinterval() == pytest.approx(usual)


def test_ranges_cover_every_item_once():
    for count in (1, 2, 7, 100):
        for parts in (1, 3, 8):
            edges = parallel.ranges(count, parts)
            assert [n for first, last in edges for n in range(first, last)] == list(range(count))
            assert all(first < last for first, last in edges)


def test_the_default_is_every_core_that_the_process_may_use(monkeypatch):
    assert parallel.thread_count(3) == 3
    cores = len(os.sched_getaffinity(0))
    for limit, expected in ((None, cores), (1, 1), (cores + 8, cores)):
        monkeypatch.setattr(parallel, "container_cores", lambda limit=limit: limit)
        assert parallel.thread_count(None) == expected


@pytest.mark.parametrize(
    ("content", "cores"),
    [
        ("200000 100000\n", 2),
        ("150000 100000\n", 2),
        ("1000 100000\n", 1),
        ("max 100000\n", None),
        ("", None),
    ],
)
def test_the_cpu_limit_of_a_container_is_read(tmp_path, content, cores):
    (tmp_path / "cpu.max").write_text(content)
    assert parallel.container_cores(tmp_path / "cpu.max") == cores
    assert parallel.container_cores(tmp_path / "absent") is None


def test_a_background_call_returns_its_result_or_raises_its_error():
    assert Later(lambda: 3).result() == 3
    failing = Later(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        failing.result()


def test_memory_is_returned_where_the_c_library_can_do_that(monkeypatch):
    asked = []

    class Glibc:
        malloc_trim = staticmethod(asked.append)

    for library in (Glibc, object(), None):
        monkeypatch.setattr(parallel, "c_library", lambda library=library: library)
        parallel.give_back()
    assert asked == [0]
    monkeypatch.undo()
    parallel.give_back()


def test_the_error_of_a_background_call_is_raised_before_its_result_is_needed():
    gate = threading.Event()

    def fail():
        gate.wait(10)
        raise ValueError("no such device")

    later = Later(fail)
    later.check()  # not yet
    gate.set()
    with pytest.raises(ValueError, match="no such device"):
        later.result()
    with pytest.raises(ValueError, match="no such device"):
        later.check()
