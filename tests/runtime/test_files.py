"""Files and folders: whole or not there."""

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


def anything(target):
    """A check that lets every folder be replaced."""


def test_text_and_bytes_appear_at_the_end(target):
    with replacing_file(target) as file:
        file.write("naïve\n")
        file.flush()
        assert target.read_text() == "old"
    assert target.read_bytes() == "naïve\n".encode()
    with replacing_file(target, "wb") as file:
        file.write(b"\xff")
    assert target.read_bytes() == b"\xff"
    assert os.listdir(target.parent) == ["out.txt"]


@pytest.mark.parametrize("failure", [RuntimeError("a mistake"), KeyboardInterrupt()])
def test_a_failure_leaves_the_old_file_and_nothing_else(target, failure):
    def write():
        with replacing_file(target) as file:
            file.write("new")
            raise failure

    with pytest.raises(type(failure)):
        write()
    assert target.read_text() == "old"
    assert os.listdir(target.parent) == ["out.txt"]


def test_a_full_disk_is_one_line(target, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(TreetopError) as error, replacing_file(target) as file:
        file.write("new")
    assert str(error.value) == f"{target}: cannot be written (No space left on device)"
    assert target.read_text() == "old"
    assert os.listdir(target.parent) == ["out.txt"]


def test_a_kill_leaves_the_old_file_and_its_part_is_no_obstacle(target):
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


def test_a_file_is_on_disk_before_it_is_in_its_place(target, monkeypatch):
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
def test_permissions_are_those_of_any_new_file(tmp_path, umask, mask, mode):
    umask(mask)
    with replacing_file(tmp_path / "file") as file:
        file.write("x")
    with replacing_folder(tmp_path / "folder", anything) as folder:
        (folder / "file").write_text("x")
    assert permissions(tmp_path / "file") == permissions(tmp_path / "folder" / "file") == mode
    assert permissions(tmp_path / "folder") == 0o777 & ~mask


def test_a_link_in_place_of_the_part_is_not_followed(target):
    victim = target.with_name("victim")
    victim.write_text("mine")
    files.part_of(target).symlink_to(victim)
    with replacing_file(target) as file:
        file.write("new")
    assert victim.read_text() == "mine"
    assert target.read_text() == "new"


@pytest.mark.parametrize("name", ["", "inner/absent/file", "out.txt/file"])
def test_what_cannot_be_written_is_one_line(target, name):
    place = target.parent / name
    with pytest.raises(TreetopError, match="cannot be written") as error, replacing_file(place) as file:
        file.write("new")
    assert str(error.value).startswith(f"{place}: ")
    assert os.listdir(target.parent) == ["out.txt"]


def test_a_device_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with (
        pytest.raises(TreetopError, match=r"pipe: cannot be written \(not a regular file\)"),
        replacing_file(tmp_path / "pipe"),
    ):
        pass
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").write_text("old")
    with replacing_folder(tmp_path / "out", anything) as folder:
        (folder / "new").write_text("new")
        assert os.listdir(tmp_path / "out") == ["old"]
    assert os.listdir(tmp_path / "out") == ["new"]
    assert os.listdir(tmp_path) == ["out"]


def test_a_folder_is_checked_before_and_after_it_is_written(tmp_path):
    def check(target):
        if (target / "mine").exists():
            raise TreetopError(f"{target}: holds mine")

    def write(name, meanwhile=()):
        with replacing_folder(tmp_path / "out", check) as folder:
            (folder / name).write_text("x")
            for added in meanwhile:
                (tmp_path / "out" / added).write_text("x")

    write("new")
    with pytest.raises(TreetopError, match="holds mine"):
        write("newer", ["mine"])
    assert sorted(os.listdir(tmp_path / "out")) == ["mine", "new"]
    with pytest.raises(TreetopError, match="holds mine"):
        write("newest", [])
    assert sorted(os.listdir(tmp_path / "out")) == ["mine", "new"]
    assert os.listdir(tmp_path) == ["out"]
