"""Arrays on disk: what is written is read, wherever it lies; and a full disk is one line."""

import errno

import numpy as np
import pytest

from treetop.errors import TreetopError
from treetop.runtime import spool
from treetop.runtime.spool import ArrayFile, NewArray


@pytest.mark.parametrize("limit", [10, 1 << 20])
def test_arrays_are_read_back_in_any_order(rng, monkeypatch, limit):
    monkeypatch.setattr(spool, "IN_MEMORY", limit)
    written = [
        rng.integers(0, 100, rng.integers(0, 50)).astype(dtype) for dtype in ("i4", "u2", "f4") * 9
    ]
    file = ArrayFile()
    places = [file.append(array) for array in written]
    for number in rng.permutation(len(written)):
        array = written[number]
        np.testing.assert_array_equal(file.read(places[number], array.size, array.dtype), array)
    tail = written[0][1:]
    np.testing.assert_array_equal(file.read(places[0] + 4, tail.size, "i4"), tail)


@pytest.mark.parametrize("limit", [10, 1 << 20])
def test_an_array_is_written_in_parts(rng, monkeypatch, limit):
    monkeypatch.setattr(spool, "IN_MEMORY", limit)
    values = rng.integers(0, 1000, (50, 2)).astype(np.int32)
    new = NewArray(values.shape, np.int32)
    for first in rng.permutation(np.arange(0, 50, 10)):
        new.write(int(first), values[first : first + 10])
    finished = new.finished()
    np.testing.assert_array_equal(finished, values)
    assert not finished.flags.writeable
    assert NewArray((0, 2), np.int32).finished().shape == (0, 2)


class FullFile:
    def seek(self, place):
        return place

    def write(self, content):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_an_error_that_says_what_to_do():
    file = ArrayFile()
    file._file = FullFile()
    with pytest.raises(TreetopError, match=r"temporary files .*No space left.*: set TMPDIR to"):
        file.append(np.zeros(3))


@pytest.mark.parametrize("shape", [(0,), (1000,), (50, 7)])
def test_an_array_off_memory_is_the_same(rng, monkeypatch, shape):
    values = rng.normal(size=shape).astype(np.float32)
    assert spool.off_memory(values) is values
    monkeypatch.setattr(spool, "IN_MEMORY", 40)
    moved = spool.off_memory(values)
    np.testing.assert_array_equal(moved, values)
    assert values.size == 0 or not moved.flags.owndata


def test_a_shelf_keeps_arrays_in_memory_up_to_its_limit(rng):
    shelf = spool.Shelf(1000)
    arrays = [rng.random(size).astype(dtype) for size in (0, 100, 100, 3000, 0, 7) for dtype in "fd"]
    kept = [shelf.put(array) for array in arrays]
    for array, own in zip(arrays, kept, strict=True):
        np.testing.assert_array_equal(own, array)
        assert own.dtype == array.dtype
    in_memory = [own is array for array, own in zip(arrays, kept, strict=True)]
    assert in_memory == [True, True, True, False, True, False, False, False, True, True, True, True]


def test_no_temporary_folder_at_all_is_an_error_that_says_what_to_do(monkeypatch):
    def missing(*_, **__):
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr(spool.tempfile, "gettempdir", missing)
    monkeypatch.setattr(spool.tempfile, "TemporaryFile", missing)
    assert NewArray((3,), np.int32).finished().size == 3
    with pytest.raises(TreetopError, match=r"written to any folder \(No usable .*: set TMPDIR"):
        NewArray((3,), np.int32, limit=0)
