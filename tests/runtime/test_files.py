"""Atomic writes: after a failure the old file or folder is still there, and nothing else."""

import os
import signal
import stat
import subprocess
import sys
import textwrap

import pytest

from treetop.errors import TreetopError
from treetop.runtime import files
from treetop.runtime.files import replacing_file, replacing_folder


@pytest.fixture
def target(tmp_path):
    (tmp_path / "out.txt").write_text("old")
    return tmp_path / "out.txt"


@pytest.fixture
def umask():
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def permissions(path):
    return stat.S_IMODE(path.stat().st_mode)


def allow_any(target):
    """A check that lets every folder be replaced."""


def test_a_file_is_replaced_when_the_block_ends(target):
    with replacing_file(target) as file:
        file.write("naïve\n")
        file.flush()
        assert target.read_text() == "old"
    assert target.read_bytes() == "naïve\n".encode()
    with replacing_file(target, "wb") as file:
        file.write(b"\xff")
    assert target.read_bytes() == b"\xff"
    assert os.listdir(target.parent) == ["out.txt"]


@pytest.mark.parametrize("failure", [RuntimeError("a bug"), KeyboardInterrupt()])
def test_a_failure_leaves_the_old_file_and_nothing_else(target, failure):
    def write():
        with replacing_file(target) as file:
            file.write("new")
            raise failure

    with pytest.raises(type(failure)):
        write()
    assert target.read_text() == "old"
    assert os.listdir(target.parent) == ["out.txt"]


def test_a_missing_folder_is_named(tmp_path):
    path = tmp_path / "absent" / "deep" / "out.txt"
    with pytest.raises(TreetopError) as error, replacing_file(path):
        pass
    assert str(error.value) == (
        f"{path}: cannot be written (No such file or directory): "
        f"create {tmp_path / 'absent'} or choose another path"
    )


def test_a_full_disk_gives_a_one_line_error(target, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(TreetopError) as error, replacing_file(target) as file:
        file.write("new")
    assert str(error.value) == (
        f"{target}: cannot be written (No space left on device): choose another path"
    )
    assert target.read_text() == "old"
    assert os.listdir(target.parent) == ["out.txt"]


def test_a_killed_process_leaves_the_old_file_and_a_part_that_is_overwritten(target):
    script = textwrap.dedent(f"""
        import os, signal
        from pathlib import Path
        from treetop.runtime.files import replacing_file
        with replacing_file(Path({str(target)!r})) as file:
            file.write("cut sh")
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    """)
    done = subprocess.run([sys.executable, "-c", script], check=False)
    assert done.returncode == -signal.SIGKILL
    assert target.read_text() == "old"
    assert sorted(os.listdir(target.parent)) == [".out.txt.part", "out.txt"]
    with replacing_file(target) as file:
        file.write("new")
    assert target.read_text() == "new"
    assert os.listdir(target.parent) == ["out.txt"]


def test_a_file_is_flushed_to_disk_before_it_is_moved_into_place(target, monkeypatch):
    seen = []
    fsync = os.fsync

    def note(handle):
        size = os.fstat(handle).st_size
        seen.append((size, target.read_text()))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", note)
    with replacing_file(target) as file:
        file.write("newer")
    assert seen == [(5, "old")]


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_permissions_follow_the_umask(tmp_path, umask, mask, mode):
    umask(mask)
    with replacing_file(tmp_path / "file") as file:
        file.write("x")
    with replacing_folder(tmp_path / "folder", allow_any) as folder:
        (folder / "file").write_text("x")
    assert permissions(tmp_path / "file") == permissions(tmp_path / "folder" / "file") == mode
    assert permissions(tmp_path / "folder") == 0o777 & ~mask


def test_a_symbolic_link_in_place_of_the_part_is_not_followed(target):
    victim = target.with_name("victim")
    victim.write_text("mine")
    files.part_of(target).symlink_to(victim)
    with replacing_file(target) as file:
        file.write("new")
    assert victim.read_text() == "mine"
    assert target.read_text() == "new"


@pytest.mark.parametrize("name", ["", "inner/absent/file", "out.txt/file"])
def test_a_path_that_cannot_be_written_gives_a_one_line_error(target, name):
    path = target.parent / name
    with pytest.raises(TreetopError, match="cannot be written") as error, replacing_file(path) as file:
        file.write("new")
    assert str(error.value).startswith(f"{path}: ")
    assert os.listdir(target.parent) == ["out.txt"]


def test_a_device_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with (
        pytest.raises(TreetopError, match=r"pipe: cannot be written \(not a regular file\)"),
        replacing_file(tmp_path / "pipe"),
    ):
        pass
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_folder_is_replaced_when_the_block_ends(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").write_text("old")
    with replacing_folder(tmp_path / "out", allow_any) as folder:
        (folder / "new").write_text("new")
        assert os.listdir(tmp_path / "out") == ["old"]
    assert os.listdir(tmp_path / "out") == ["new"]
    assert os.listdir(tmp_path) == ["out"]


def test_a_folder_is_checked_before_and_after_it_is_written(tmp_path):
    def check(target):
        if (target / "mine").exists():
            raise TreetopError(f"{target}: not ours")

    def write(name, meanwhile=()):
        with replacing_folder(tmp_path / "out", check) as folder:
            (folder / name).write_text("x")
            for added in meanwhile:
                (tmp_path / "out" / added).write_text("x")

    write("new")
    with pytest.raises(TreetopError, match="not ours"):
        write("newer", ["mine"])
    assert sorted(os.listdir(tmp_path / "out")) == ["mine", "new"]
    with pytest.raises(TreetopError, match="not ours"):
        write("newest", [])
    assert sorted(os.listdir(tmp_path / "out")) == ["mine", "new"]
    assert os.listdir(tmp_path) == ["out"]
