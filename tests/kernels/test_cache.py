"""Kernels are loaded from folders that cannot be written to, and saved where they can be."""

import errno
import os
from dataclasses import replace

import numpy as np
import pytest

from treetop.kernels import Kernel, cache, machine_code, text
from treetop.kernels.machine_code import MachineCode

NAME = text.fill_table.name
REAL_TEMPORARY_FILE = cache.temporary_file


def slots(kernel):
    """Where a kernel like `fill_table` puts two hashes into a table of 4."""
    keys, values = np.zeros(4, np.uint64), np.full(4, -1, np.int32)
    kernel(np.array([5, 6], np.uint64), np.array([10, 20], np.int32), keys, values)
    return values.tolist()


def fresh():
    """The kernel as it is in a process that has not run it yet."""
    return Kernel(text.fill_table.function, text.fill_table.signature, None)


def comes_from_the_cache():
    """Whether a new process would load the kernel; it runs in any case, and is kept if possible."""
    found, kernel = cache.read(NAME) is not None, fresh()
    assert slots(kernel) == [-1, 10, 20, -1]
    return found


@pytest.fixture
def use(monkeypatch):
    """Sets the folders of the cache, and which of them are on a read-only file system."""

    def set_folders(*folders, read_only=()):
        def temporary_file(target):
            if target.parent in read_only:
                raise OSError(errno.EROFS, "Read-only file system")
            return REAL_TEMPORARY_FILE(target)

        monkeypatch.setattr(cache, "folders", lambda: list(folders))
        monkeypatch.setattr(cache, "temporary_file", temporary_file)

    return set_folders


def test_a_kernel_is_loaded_from_a_read_only_folder(tmp_path, use):
    use(tmp_path)
    assert not comes_from_the_cache()
    use(tmp_path, read_only=[tmp_path])
    assert comes_from_the_cache()


def test_the_first_writable_folder_is_written_to_and_all_are_read(tmp_path, use):
    package, user = tmp_path / "package", tmp_path / "user"
    use(package, user, read_only=[package])
    assert not comes_from_the_cache()
    assert comes_from_the_cache()
    assert os.listdir(package) == []
    assert len(os.listdir(user)) == 1


def test_without_a_writable_folder_kernels_are_compiled_in_memory(tmp_path, use):
    (tmp_path / "file").touch()
    use(tmp_path / "file", tmp_path / "file" / "folder")
    assert not cache.has_writable_folder()
    assert not comes_from_the_cache()
    use()
    assert not cache.has_writable_folder()
    assert not comes_from_the_cache()


def test_a_kernel_of_another_source_is_replaced(tmp_path, use, monkeypatch):
    use(tmp_path)
    monkeypatch.setattr(cache, "source_stamp", lambda: "old")
    assert not comes_from_the_cache()
    monkeypatch.setattr(cache, "source_stamp", lambda: "new")
    assert not comes_from_the_cache()
    assert comes_from_the_cache()
    assert len(os.listdir(tmp_path)) == 1


def test_each_processor_has_its_own_kernels(tmp_path, use, monkeypatch):
    use(tmp_path)
    assert not comes_from_the_cache()
    monkeypatch.setattr(cache, "suffix", lambda: "-another")
    assert cache.read(NAME) is None


def test_a_processor_can_be_asked_for(monkeypatch):
    monkeypatch.setenv("NUMBA_CPU_NAME", "x86-64-v3")
    monkeypatch.setenv("NUMBA_CPU_FEATURES", "+avx2")
    assert cache.processor.__wrapped__() == "x86-64-v3 +avx2"
    monkeypatch.delenv("NUMBA_CPU_FEATURES")
    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
    assert cache.processor.__wrapped__() == "generic "


def test_the_folder_can_be_chosen(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert cache.folders() == [tmp_path]
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.folders()[1:] == [tmp_path / "treetop" / "kernels"]


@pytest.mark.parametrize(
    "damage", [lambda d: d[:-9], lambda d: d[:90], lambda d: b"", lambda d: d[:-1] + b"x"]
)
def test_a_damaged_kernel_is_compiled_again(tmp_path, use, damage):
    use(tmp_path)
    assert not comes_from_the_cache()
    (file,) = tmp_path.iterdir()
    file.write_bytes(damage(file.read_bytes()))
    assert not comes_from_the_cache()
    assert comes_from_the_cache()


def test_a_kernel_that_needs_an_unknown_function_is_not_loaded(tmp_path, use):
    """LLVM would end the process."""
    use(tmp_path)
    fresh().compile()
    code = cache.read(NAME)
    cache.write(NAME, replace(code, needs=[*code.needs, "a_function_of_another_numba"]))
    assert not comes_from_the_cache()


def test_with_a_numba_that_is_built_in_another_way_kernels_are_compiled(tmp_path, use, monkeypatch):
    def extension(name):
        raise ImportError(f"numba has no module {name}")

    use(tmp_path)
    assert not comes_from_the_cache()
    monkeypatch.setattr(machine_code, "extension", extension)
    machine_code.loader.cache_clear()
    try:
        assert not comes_from_the_cache()
    finally:
        machine_code.loader.cache_clear()


def test_machine_code_becomes_bytes_and_back(tmp_path, use):
    use(tmp_path)
    fresh().compile()
    code = cache.read(NAME)
    assert MachineCode.from_bytes(code.to_bytes()) == code
    assert MachineCode.from_bytes(b'{"entry": 1}\n') is None
