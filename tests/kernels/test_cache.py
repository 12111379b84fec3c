"""Compiled functions are loaded from folders that cannot be written to, and saved where they can be."""

import errno
import os

from numba import int64, njit
from numba.core.caching import InTreeCacheLocator

from treetop.kernels import all_kernels
from treetop.kernels.cache import LayeredCache, folder_cache


def double(number):
    return 2 * number


def locator(folder, writable=True):
    """A kind of folder as numba has them: one that applies to every function."""

    class Locator(InTreeCacheLocator):
        def get_cache_path(self):
            return str(folder)

        def ensure_cache_path(self):
            if not writable:
                raise OSError(errno.EROFS, "Read-only file system")
            super().ensure_cache_path()

    return folder_cache(Locator)


def compiled(*kinds):
    """`double`, compiled with a cache in folders of these kinds; whether it came from the cache."""
    dispatcher = njit(double)
    dispatcher._cache = LayeredCache(double, kinds)
    dispatcher.compile((int64,))
    assert dispatcher(4) == 8
    return bool(dispatcher.stats.cache_hits)


def test_a_function_is_loaded_from_a_read_only_folder(tmp_path):
    assert not compiled(locator(tmp_path / "image"))
    assert compiled(locator(tmp_path / "image", writable=False))


def test_read_only_folders_are_read_and_the_first_writable_one_is_written_to(tmp_path):
    kinds = locator(tmp_path / "package", writable=False), locator(tmp_path / "user")
    assert not compiled(*kinds)
    assert compiled(*kinds)
    assert not (tmp_path / "package").exists()
    assert len(list((tmp_path / "user").iterdir())) == 2  # an index and the function


def test_without_a_writable_folder_functions_are_compiled_in_memory(tmp_path):
    read_only = locator(tmp_path, writable=False)
    assert not compiled(read_only)
    assert not compiled(read_only)
    assert not compiled()
    assert os.listdir(tmp_path) == []


def test_a_file_in_place_of_the_folder_is_no_error(tmp_path):
    (tmp_path / "file").touch()
    assert not compiled(locator(tmp_path / "file"))


def test_every_kernel_has_such_a_cache():
    assert all(isinstance(kernel.dispatcher._cache, LayeredCache) for kernel in all_kernels())
