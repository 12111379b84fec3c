"""The limit of memory is kept: work that exceeds it ends with one line."""

import threading
import time

import numpy as np
import pytest

from treetop.errors import TreetopError
from treetop.runtime import memory, parallel
from treetop.runtime.cancelling import CancelledError, current
from treetop.runtime.memory import memory_in_use, memory_limit, peak_memory, size_text, status_bytes

MEGABYTE = 1 << 20
LINUX = pytest.mark.skipif(not memory.STATUS.is_file(), reason="needs /proc")


@LINUX
def test_memory_in_use_follows_what_is_allocated():
    before = memory_in_use()
    block = np.ones(64 * MEGABYTE, np.uint8)
    assert 60 * MEGABYTE < memory_in_use() - before < 90 * MEGABYTE
    assert peak_memory() >= before + block.nbytes - 4 * MEGABYTE


def test_without_proc_nothing_is_in_use_and_the_peak_comes_from_elsewhere(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "STATUS", tmp_path / "none")
    assert memory_in_use() == 0 == status_bytes("VmRSS")
    assert peak_memory() > MEGABYTE


@LINUX
def test_a_run_that_takes_too_much_is_stopped_with_one_line():
    kept = []

    def work(number, cancel):
        kept.append(np.ones(32 * MEGABYTE, np.uint8))
        time.sleep(0.1)

    limit = memory_in_use() + 100 * MEGABYTE
    with (
        pytest.raises(TreetopError, match=rf"more than memory={size_text(limit)}: raise memory"),
        memory_limit(limit),
    ):
        parallel.run(work, range(200), 2)
    assert len(kept) < 60
    assert current.cancel is None
    parallel.run(lambda number, _: number, range(3), 2)  # later work is not concerned


def test_without_a_limit_nothing_watches_and_other_errors_pass():
    with memory_limit(None):
        assert current.cancel is None
    with pytest.raises(CancelledError), memory_limit(1 << 60):
        raise CancelledError
    assert threading.active_count() < 50
