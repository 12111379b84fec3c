"""Atomic writes: after a failure the old file or folder is still there, and nothing else."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import numpy as np
import pytest

import treetop
from treetop.data import open_data
from treetop.errors import TreetopError
from treetop.runtime import files, temporary
from treetop.runtime.arrays import write_arrays
from treetop.runtime.files import (
    check_absent,
    replacing_file,
    replacing_folder,
    reserving,
)
from treetop.runtime.temporary import has_temporary_folder, private_folder, scratch_folder
from treetop.training.run import check_run


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
        f"{target}: cannot be written (No space left on device): free some space or choose another path"
    )
    assert target.read_text() == "old"
    assert os.listdir(target.parent) == ["out.txt"]


KILLED = """
    import os, signal
    from pathlib import Path
    from treetop.runtime.files import check_absent, replacing_file, replacing_folder
    with replacing_file(Path({0!r}, "file")) as file, \\
            replacing_folder(Path({0!r}, "folder"), lambda _: None) as folder:
        file.write("cut sh")
        file.flush()
        (folder / "new").write_text("cut sh")
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_next_writer_deletes_what_a_killed_process_has_left(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / ".file.notes.part").write_text("mine")
    script = textwrap.dedent(KILLED.format(str(tmp_path)))
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", script], check=False)
        assert done.returncode == -signal.SIGKILL
        assert (tmp_path / "file").read_text() == "old"
        names = sorted(re.sub("[0-9a-f]{8}", "X", name) for name in os.listdir(tmp_path))
        parts = [".file.X.part", ".file.notes.part", ".folder.X.part", ".folder.lock"]
        assert names == [*parts, "file"]
    with replacing_file(tmp_path / "file") as file:
        file.write("new")
    with replacing_folder(tmp_path / "folder", allow_any):
        pass
    assert (tmp_path / "file").read_text() == "new"
    assert sorted(os.listdir(tmp_path)) == [".file.notes.part", "file", "folder"]


def test_two_writers_of_a_file_do_not_disturb_each_other(target):
    with replacing_file(target) as first:
        first.write("first")
        with replacing_file(target) as second:
            second.write("second")
        assert target.read_text() == "second"
    assert target.read_text() == "first"
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


def test_the_files_of_a_folder_get_the_same_permissions_whatever_wrote_them(tmp_path, umask):
    umask(0o027)
    with replacing_folder(tmp_path / "folder", allow_any) as folder:
        (folder / "inner").mkdir()
        (folder / "inner" / "file").write_text("x")
        (folder / "inner" / "file").chmod(0o600)  # as libraries do that write by way of a private file
    assert permissions(tmp_path / "folder" / "inner" / "file") == 0o640


def test_a_symbolic_link_in_place_of_a_part_is_not_followed(target, monkeypatch):
    victim = target.with_name("victim")
    victim.write_text("mine")
    monkeypatch.setattr(temporary.secrets, "token_hex", lambda _: "01234567")
    link = target.with_name(".out.txt.01234567.part")
    link.symlink_to(victim)
    with pytest.raises(TreetopError, match="cannot be written"), replacing_file(target) as file:
        file.write("new")
    assert victim.read_text() == "mine"
    assert link.is_symlink()
    assert target.read_text() == "old"


@pytest.mark.parametrize("name", ["", "inner/absent/file", "out.txt/file"])
def test_a_path_that_cannot_be_written_gives_a_one_line_error(target, name):
    path = target.parent / name
    with pytest.raises(TreetopError, match="cannot be written") as error, replacing_file(path) as file:
        file.write("new")
    assert str(error.value).startswith(f"{path}: ")
    assert os.listdir(target.parent) == ["out.txt"]


def test_a_pipe_is_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with replacing_file(pipe) as file:
        file.write("new")
    assert os.read(reader, 9) == b"new"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


def test_devices_and_open_files_are_written_to_at_their_end(target):
    with replacing_file(Path("/dev/null"), "wb") as file:
        file.write(b"new")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with target.open("a") as shell:  # as in `command -o /dev/fd/3 3>> out.txt`
        for mode, text in (("w", "er"), ("wb", b" and new")):
            with replacing_file(Path(f"/dev/fd/{shell.fileno()}"), mode) as file:
                file.write(text)
    assert target.read_text() == "older and new"
    assert os.listdir(target.parent) == ["out.txt"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_a_full_device_gives_a_one_line_error():
    with pytest.raises(TreetopError) as error, replacing_file(Path("/dev/full")) as file:
        file.write("new")
    assert str(error.value) == (
        "/dev/full: cannot be written (No space left on device): free some space or choose another path"
    )


def test_the_target_of_a_symbolic_link_is_replaced(target):
    link = target.with_name("latest")
    link.symlink_to("out.txt")
    with replacing_file(link) as file:
        file.write("new")
    assert target.read_text() == "new"
    assert link.is_symlink()
    assert sorted(os.listdir(target.parent)) == ["latest", "out.txt"]


def test_half_of_a_surrogate_pair_is_written_as_json_understands_it(target):
    with replacing_file(target) as file:
        file.write('"naïve \ud800"')
    assert json.loads(target.read_text("utf-8")) == "naïve \ud800"


def test_a_folder_is_replaced_when_the_block_ends(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").write_text("old")
    with replacing_folder(tmp_path / "out", allow_any) as folder:
        (folder / "new").write_text("new")
        assert os.listdir(tmp_path / "out") == ["old"]
    assert os.listdir(tmp_path / "out") == ["new"]
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("chosen", ["file", "inner"])
def test_a_part_of_the_folder_may_be_what_is_kept(tmp_path, chosen):
    with replacing_folder(tmp_path / "out", check_absent, lambda folder: folder / chosen) as folder:
        (folder / "file").write_text("text")
        (folder / "inner").mkdir()
        (folder / "inner" / "file").write_text("text")
        assert not (tmp_path / "out").exists()
    file = tmp_path / "out" if chosen == "file" else tmp_path / "out" / "file"
    assert file.read_text() == "text"
    assert os.listdir(tmp_path) == ["out"]
    with (
        pytest.raises(TreetopError, match="out: already exists: choose another path"),
        replacing_folder(tmp_path / "out", check_absent, lambda folder: folder / chosen),
    ):
        raise AssertionError("the block is not entered")
    assert file.read_text() == "text"


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


def test_folders_that_were_created_for_nothing_are_removed(tmp_path):
    with reserving(tmp_path / "a" / "b" / "model"):
        assert os.listdir(tmp_path / "a" / "b") == [".model.lock"]
    assert os.listdir(tmp_path) == []
    with reserving(tmp_path / "a" / "b" / "model"):
        (tmp_path / "a" / "notes.txt").write_text("mine")
    assert sorted(os.listdir(tmp_path / "a")) == ["notes.txt"]


def test_what_cannot_be_written_is_noticed_before_the_work(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(TreetopError, match="cannot be written"), reserving(tmp_path / "file" / "model"):
        raise AssertionError("the work has begun")
    monkeypatch.setattr(os, "write", lambda handle, content: 1)  # as on a disk that is nearly full
    with pytest.raises(TreetopError, match="free some space"), reserving(tmp_path / "model"):
        raise AssertionError("the work has begun")
    assert os.listdir(tmp_path) == ["file"]


def test_arrays_that_do_not_fit_on_the_disk_say_so():
    if not Path("/dev/full").exists():
        pytest.skip("no device that is always full")
    with pytest.raises(OSError, match="No space left on device"):
        write_arrays(Path("/dev/full"), {"weights": np.ones(100_000, np.float32)})


@pytest.mark.parametrize("killed_after", [1, 2])
def test_a_swap_that_was_killed_where_folders_cannot_be_exchanged(tmp_path, monkeypatch, killed_after):
    target = tmp_path / "model"
    with replacing_folder(target, allow_any) as fresh:
        (fresh / "file").write_text("first")
    renames, rename = [], Path.rename

    def rename_or_die(self, new):
        if len(renames) == killed_after:
            raise KeyboardInterrupt
        renames.append(new)
        return rename(self, new)

    monkeypatch.setattr(files, "exchange", lambda *_: False)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", rename_or_die)
        with pytest.raises(KeyboardInterrupt), replacing_folder(target, allow_any) as fresh:
            (fresh / "file").write_text("second")
    assert (tmp_path / ".model.old").is_dir()
    with replacing_folder(target, allow_any) as fresh:
        assert (target / "file").read_text() == ("first" if killed_after == 1 else "second")
        (fresh / "file").write_text("third")
    assert (target / "file").read_text() == "third"
    assert os.listdir(tmp_path) == ["model"]


def test_a_folder_of_the_user_that_is_named_like_an_old_one_is_kept(tmp_path):
    def refuse_notes(target):
        if (target / "notes.txt").exists():
            raise TreetopError("holds notes.txt")

    (tmp_path / "model").mkdir()
    (tmp_path / ".model.old").mkdir()
    (tmp_path / ".model.old" / "notes.txt").write_text("mine")
    with replacing_folder(tmp_path / "model", refuse_notes):
        pass
    assert (tmp_path / ".model.old" / "notes.txt").read_text() == "mine"


def test_temporary_folders_of_killed_processes_are_deleted_and_others_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with scratch_folder("export") as first:
        assert permissions(first) == 0o700
        abandoned = first.with_name(first.name.replace(first.name[-13:-5], "00000000"))
        abandoned.mkdir()
        (abandoned / "model.onnx").write_text("half")
        with scratch_folder("export") as second:
            assert sorted(tmp_path.iterdir()) == sorted([first, second])
    assert list(tmp_path.iterdir()) == []


def test_no_folder_for_temporary_files_can_be_written(monkeypatch):
    def none():
        raise FileNotFoundError(2, "No usable temporary directory found")

    assert has_temporary_folder()
    monkeypatch.setattr(tempfile, "gettempdir", none)
    assert not has_temporary_folder()


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="users have numbers")
def test_a_private_folder_is_never_one_that_somebody_else_made(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    own = private_folder("demo")
    assert own == private_folder("demo") == tmp_path / f"treetop-{os.getuid()}" / "demo"
    assert permissions(own.parent) == 0o700
    own.parent.chmod(0o777)
    other = private_folder("demo")
    assert other.parent not in (own.parent, tmp_path)
    assert permissions(other.parent) == 0o700
    own.rmdir()
    own.parent.rmdir()
    own.parent.symlink_to(tmp_path)
    assert tmp_path / "demo" not in (private_folder("demo"), *tmp_path.iterdir())


@pytest.mark.parametrize("name", ["half \ud800 of a pair", "nul\0l"])
def test_a_name_that_no_file_can_have_is_one_line(tmp_path, name):
    path = str(tmp_path / name)
    model = treetop.XRLinear().fit(["red", "green"] * 5, [["a"], ["b"]] * 5)
    attempts = [
        lambda: treetop.load(path),
        lambda: model.save(path),
        lambda: model.save(tmp_path / name / "inside"),
        lambda: open_data(path),
        lambda: check_run(path),
    ]
    for attempt in attempts:
        with pytest.raises(TreetopError, match="no file can have this name") as error:
            attempt()
        str(error.value).encode("utf-8")
        assert "\n" not in str(error.value)
    with pytest.raises(TreetopError, match="no file can have"), replacing_file(Path(path)) as file:
        file.write("lost")


def test_a_name_that_is_too_long_is_one_line(tmp_path):
    for attempt in (treetop.load, open_data, check_run):
        with pytest.raises(TreetopError, match="xxx…: the name is too long"):
            attempt(tmp_path / ("x" * 300))


def test_names_that_are_not_utf8_work(tmp_path):
    """Linux allows any bytes; Python calls them halves of surrogate pairs."""
    folder = tmp_path / os.fsdecode(b"m\xff")
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    treetop.XRLinear().fit(["red", "green"] * 5, [["a"], ["b"]] * 5).save(folder)
    (folder / "README.md").read_text("utf-8")
    table = tmp_path / os.fsdecode(b"t\xff.csv")
    table.write_text("text,labels\nred,a\ngreen,b\n")
    assert treetop.load(folder).predict(open_data(table).split("train").texts, k=1)[0][0][0] == "a"
