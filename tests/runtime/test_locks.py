"""Locks: the second writer of a folder is told who holds it, and killed holders do not matter."""

import errno
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

from treetop.errors import TreetopError
from treetop.runtime import locks
from treetop.runtime.files import replacing_folder, saving
from treetop.runtime.locks import lock_of, locked

HOLDER = """
    import sys
    from pathlib import Path
    from treetop.runtime.locks import lock_of, locked
    folder = Path({0!r})
    with locked(lock_of(folder), folder):
        print("held", flush=True)
        sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "model"


@pytest.fixture
def holder(folder, start_process):
    """A process that holds the lock of the folder."""
    script = textwrap.dedent(HOLDER.format(str(folder)))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = start_process([sys.executable, "-c", script], **pipes)
    assert process.stdout.readline() == b"held\n"
    return process


def test_the_second_process_is_told_who_holds_a_folder(folder, holder):
    with pytest.raises(TreetopError) as error, locked(lock_of(folder), folder):
        pass
    pattern = (
        rf"{re.escape(str(folder))}: is being written by process {holder.pid} on \S+ "
        r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d: wait until it ends, or choose another folder"
    )
    assert re.fullmatch(pattern, str(error.value))


def test_a_folder_is_not_replaced_while_another_process_holds_it(folder, holder, monkeypatch):
    monkeypatch.setattr("treetop.runtime.files.SAVING_SECONDS", 0.0)
    with (
        pytest.raises(TreetopError, match=f"is being written by process {holder.pid}"),
        replacing_folder(folder, lambda _: None),
    ):
        pass
    assert not folder.exists()


def test_a_save_waits_for_a_short_one(folder, holder):
    threading.Timer(0.1, holder.stdin.close).start()
    with replacing_folder(folder, lambda _: None):
        pass
    assert os.listdir(folder.parent) == ["model"]


def test_the_lock_of_a_killed_process_is_free(folder, holder):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert lock_of(folder).exists()
    with locked(lock_of(folder), folder):
        assert lock_of(folder).read_text().startswith(f"process {os.getpid()} on ")
    assert os.listdir(folder.parent) == []


def test_a_block_may_contain_another_one_for_the_same_folder(folder):
    with locked(lock_of(folder), folder):
        with locked(lock_of(folder), folder):
            pass
        assert lock_of(folder).exists()
    assert os.listdir(folder.parent) == []


def test_another_thread_of_the_same_process_is_refused(folder):
    errors = []

    def second():
        try:
            with locked(lock_of(folder), folder):
                pass
        except TreetopError as error:
            errors.append(str(error))

    with locked(lock_of(folder), folder):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert len(errors) == 1


def test_many_threads_hold_a_lock_one_after_another(folder):
    inside, most = [], []

    def work():
        for _ in range(20):
            with locked(lock_of(folder), folder, wait=60):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 80
    assert os.listdir(folder.parent) == []


def test_file_systems_without_locks_work_without_them(folder, monkeypatch):
    def unsupported(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(locks.fcntl, "flock", unsupported)
    with locked(lock_of(folder), folder), replacing_folder(folder, lambda _: None):
        pass
    assert os.listdir(folder.parent) == ["model"]


def test_nothing_is_locked_where_no_lock_file_can_be_created(folder, monkeypatch):
    def denied(*_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(locks, "open_locked", denied)
    with saving(folder):
        pass
