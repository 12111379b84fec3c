"""The folder of a run: resumed or overwritten, without deleting foreign files."""

import json
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from treetop.errors import TreetopError
from treetop.settings.schema import LinearSettings
from treetop.training.run import Run, Stage, check_run

DATA = "0123456789abcdef" * 2
OTHER = "f" * 32


def contents(folder):
    return {path.name: path.read_bytes() if path.is_file() else None for path in folder.iterdir()}


def train(folder, data=DATA, **options):
    """Run two stages; return the values that they computed or read."""
    with Run.opened(folder, data, **options) as run:
        made = [
            run.stage(
                Stage(name, (), after),
                LinearSettings(),
                lambda _: {"values": np.frombuffer(os.urandom(8), np.uint8)},
            )
            for name, after in (("tokens", ("data",)), ("level-12", ("tokens",)))
        ]
    return [arrays["values"].tolist() for arrays in made]


@pytest.fixture
def folder(tmp_path):
    train(tmp_path / "run")
    return tmp_path / "run"


def test_run_json_identifies_treetop(folder):
    assert json.loads((folder / "run.json").read_text()) == {"treetop": 1, "data": DATA}


def test_an_existing_run_requires_resume_or_overwrite(folder):
    before = contents(folder)
    with pytest.raises(TreetopError) as error:
        train(folder)
    assert str(error.value) == (
        f"{folder}: holds an earlier run: continue it (--resume, resume=True) "
        "or start again (--overwrite, overwrite=True)"
    )
    assert contents(folder) == before


def test_resume_reads_stages_and_overwrite_repeats_them(folder):
    made = train(folder, resume=True)
    assert train(folder, resume=True) == made
    assert train(folder, overwrite=True) != made


@pytest.mark.parametrize("options", [{}, {"resume": True}, {"overwrite": True}])
def test_new_and_empty_folders_need_neither_resume_nor_overwrite(tmp_path, options):
    train(tmp_path / "new" / "run", **options)
    (tmp_path / "empty").mkdir()
    train(tmp_path / "empty", **options)
    # killed before run.json was complete
    (tmp_path / "killed").mkdir()
    (tmp_path / "killed" / ".run.json.part").write_text('{"tr')
    train(tmp_path / "killed", **options)
    assert set(contents(tmp_path / "killed")) == set(contents(tmp_path / "empty"))


def test_resume_and_overwrite_exclude_each_other(folder):
    before = contents(folder)
    for place in (folder, None):
        with pytest.raises(TreetopError, match="resume or overwrite, not both"):
            check_run(place, resume=True, overwrite=True)
    assert contents(folder) == before


def test_runs_of_earlier_versions_are_recognized(folder):
    (folder / "run.json").write_text(json.dumps({"data": DATA}) + "\n")
    made = train(folder, resume=True)
    with pytest.raises(TreetopError, match="holds an earlier run"):
        train(folder)
    assert train(folder, overwrite=True) != made
    assert json.loads((folder / "run.json").read_text())["treetop"] == 1


def test_a_run_on_other_data_cannot_be_resumed(folder):
    before = contents(folder)
    with pytest.raises(TreetopError, match="began on other data: give that data, or start again"):
        train(folder, OTHER, resume=True)
    assert contents(folder) == before
    train(folder, OTHER, overwrite=True)
    assert json.loads((folder / "run.json").read_text())["data"] == OTHER


@pytest.mark.parametrize("options", [{}, {"resume": True}, {"overwrite": True}])
@pytest.mark.parametrize(
    "facts",
    [
        None,
        "",
        "[]",
        "{}",
        '{"data": "runs/2024"}',
        '{"data": ["a", "b"]}',
        '{"treetop": 1}',
        '{"treetop": true, "data": "x"}',
        f'{{"data": "{DATA}", "name": "mine"}}',
    ],
)
def test_a_folder_that_is_not_a_run_is_left_unchanged(tmp_path, facts, options):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "tokens.safetensors").write_bytes(b"mine")
    if facts is not None:
        (folder / "run.json").write_text(facts)
    before = contents(folder)
    with pytest.raises(TreetopError) as error:
        train(folder, **options)
    message = "exists and is not the folder of a run: choose another folder"
    assert str(error.value) == f"{folder}: {message}"
    assert contents(folder) == before


@pytest.mark.parametrize(
    "name",
    [
        "notes.txt",
        ".DS_Store",
        "levels.safetensors",
        "level-.safetensors",
        "tokens.safetensors.bak",
        "atokens.safetensors",
        ".notes.part",
        "tokens.safetensors.part",
    ],
)
def test_foreign_files_in_a_run_are_never_deleted(folder, name):
    (folder / name).write_text("mine")
    before = contents(folder)
    with pytest.raises(TreetopError) as error:
        train(folder, overwrite=True)
    message = f"holds {name}, which treetop did not write: choose another folder or move it"
    assert str(error.value) == f"{folder}: {message}"
    assert contents(folder) == before
    # resuming deletes nothing
    train(folder, resume=True)
    assert contents(folder) == before


def test_foreign_folders_in_a_run_are_never_deleted(folder):
    (folder / "rankers.safetensors").mkdir()
    (folder / "rankers.safetensors" / "mine").write_text("mine")
    with pytest.raises(TreetopError, match=r"holds rankers\.safetensors, which treetop did not write"):
        train(folder, overwrite=True)
    assert (folder / "rankers.safetensors" / "mine").read_text() == "mine"


def test_incomplete_files_of_a_killed_run_are_removed(folder):
    for name in (".level-3.safetensors.part", ".run.json.part", ".history.jsonl.part"):
        (folder / name).write_text("cut sh")
    train(folder, overwrite=True)
    assert set(contents(folder)) == {"run.json", "tokens.safetensors", "level-12.safetensors"}


def test_nothing_is_deleted_through_a_symbolic_link(folder):
    link = folder.with_name("link")
    link.symlink_to(folder)
    made = train(link, resume=True)
    before = contents(folder)
    with pytest.raises(TreetopError, match="link: is a symbolic link, and nothing is deleted through"):
        train(link, overwrite=True)
    assert contents(folder) == before
    assert train(folder, resume=True) == made
    (folder / "rankers.safetensors").symlink_to(folder / "tokens.safetensors")
    with pytest.raises(TreetopError, match=r"holds rankers\.safetensors, which treetop did not write"):
        train(folder, overwrite=True)
    assert (folder / "rankers.safetensors").is_symlink()


def test_a_file_in_place_of_the_folder_is_an_error(tmp_path):
    (tmp_path / "run").write_text("mine")
    for options in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(TreetopError, match="cannot be used for a run"):
            train(tmp_path / "run", **options)
    assert (tmp_path / "run").read_text() == "mine"


def damaged_copies(content):
    """What a full disk, an interrupted copy or a broken disk may leave of a file."""
    for length in (0, 1, 7, 8, 40, len(content) // 2, len(content) - 1):
        yield content[:length]
    yield content[:-4] + bytes(4)
    yield bytes(len(content))
    yield content[1:]


def test_a_damaged_stage_is_repeated(folder):
    made = train(folder, resume=True)
    whole = (folder / "tokens.safetensors").read_bytes()
    for damaged in damaged_copies(whole):
        (folder / "tokens.safetensors").write_bytes(damaged)
        again = train(folder, resume=True)
        assert again[0] != made[0]
        assert again[1] == made[1]  # the other stage is read
        assert train(folder, resume=True) == again
    (folder / "level-12.safetensors").unlink()
    assert train(folder, resume=True)[0] == again[0]


RUN_JSON = [
    b"",
    b"[]",
    b"{}",
    b"null",
    b"1" * 5000,
    b'{"data": ["a", "b"]}',
    b'{"treetop": "1", "data": 3}',
    b'{"treetop": 1, "da',
    b"\xff\xfe",
    b"[" * 100_000,
]


@pytest.mark.parametrize("content", [*RUN_JSON, None], ids=range(len(RUN_JSON) + 1))
def test_a_run_with_a_damaged_run_json_is_recognized_by_its_stages(folder, content):
    made = train(folder, resume=True)

    def damage():
        (folder / "run.json").unlink()
        if content is not None:
            (folder / "run.json").write_bytes(content)

    damage()
    with pytest.raises(TreetopError, match="holds an earlier run: continue it"):
        train(folder)
    assert train(folder, resume=True) == made
    assert json.loads((folder / "run.json").read_text()) == {"treetop": 1, "data": DATA}
    damage()
    assert train(folder, OTHER, overwrite=True) != made
    damage()
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(TreetopError, match=r"holds notes\.txt, which treetop did not write"):
        train(folder, overwrite=True)


def test_a_second_training_is_told_who_holds_the_run(folder):
    with Run.opened(folder, DATA, resume=True):
        for options in ({}, {"resume": True}, {"overwrite": True}):
            with pytest.raises(TreetopError, match=f"is being written by process {os.getpid()} on"):
                in_thread(lambda options=options: check_run(folder, **options))
            with pytest.raises(TreetopError, match=f"is being written by process {os.getpid()} on"):
                in_thread(lambda options=options: train(folder, **options))
    assert ".run.lock" not in contents(folder)


def test_the_lock_of_a_killed_process_is_taken_over(folder):
    (folder / ".run.lock").write_text("process 1 on another machine since yesterday\n")
    train(folder, resume=True)
    assert ".run.lock" not in contents(folder)
    (folder / ".run.lock").write_text("process 1 on another machine since yesterday\n")
    train(folder, overwrite=True)
    assert ".run.lock" not in contents(folder)


def in_thread(work):
    """Call `work` in another thread, which holds no locks; raise its error."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()
