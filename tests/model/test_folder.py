"""Model folders: complete or absent, and nothing of the user's is replaced."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import treetop
from treetop.errors import TreetopError
from treetop.model import layout
from treetop.runtime import files
from treetop.runtime.arrays import read_arrays, write_arrays
from treetop.settings.auto import TITLES

TEXTS = ["red apple", "green pear", "red cherry", "green grass", "blue sky"] * 4
LABELS = [["red", "fruit"], ["green", "fruit"], ["red", "fruit"], ["green"], ["blue"]] * 4


@pytest.fixture
def model():
    return treetop.XRLinear(threads=1).fit(TEXTS, LABELS)


@pytest.fixture
def folder(model, tmp_path):
    model.save(tmp_path / "model")
    return tmp_path / "model"


def test_files_are_compatible_with_the_safetensors_library(tmp_path, rng):
    arrays = {
        "a": rng.random((3, 4)).astype(np.float32),
        "b": np.arange(5),
        "c": np.frombuffer(b"xyz", np.uint8),
        "empty": np.empty((0, 2), np.int32),
    }
    write_arrays(tmp_path / "ours", arrays)
    for name, values in load_file(tmp_path / "ours").items():
        np.testing.assert_array_equal(values, arrays[name])
    save_file(arrays, tmp_path / "theirs")
    for name, values in read_arrays(tmp_path / "theirs").items():
        np.testing.assert_array_equal(values, arrays[name])
        assert values.dtype == arrays[name].dtype


def test_a_loaded_model_predicts_the_same(model, folder):
    again = treetop.load(folder)
    assert again.predict(TEXTS) == model.predict(TEXTS)
    assert list(again.classes_) == list(model.classes_)
    # a loaded model knows what `auto` and null came to ...
    assert again.settings_ == model.settings_
    decided = vars(again.settings_)
    assert decided["ngrams"] == TITLES
    assert (decided["tree"], decided["bias"], decided["score_transform"]) == ("flat", 1.0, "sigmoid")
    assert None not in [decided[name] for name in ("lambda_", "alpha", "cost_sensitive")]
    # ... is trained again as the first time, and knows nothing of the machine
    assert model.get_params()["threads"] == 1
    assert again.get_params() == {**model.get_params(), "threads": None}
    assert (folder / "README.md").read_text().count("# A treetop model") == 1


def test_label_names_may_be_any_unicode_text(tmp_path):
    labels = [["Käse", "漢字"], ["a b\tc", " x "], ["\u2028"], ["ok"]]
    treetop.XRLinear().fit(["a", "b", "c", "d"] * 2, labels * 2).save(tmp_path / "m")
    assert set(treetop.load(tmp_path / "m").classes_) == {name for line in labels for name in line}


def test_weights_are_memory_mapped(folder):
    weights = treetop.load(folder).rankers_[0].weights
    assert not weights.cells.flags.writeable
    assert not weights.cells.flags.owndata


def change(path, content):
    path.write_bytes(content(path.read_bytes()))


def flip(content):
    middle = len(content) - 5
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "labels.txt").unlink(), "labels.txt: missing"),
        (lambda f: (f / "ranker.safetensors").unlink(), "ranker.safetensors: missing"),
        (lambda f: (f / "config.json").unlink(), "config.json is missing"),
        (lambda f: change(f / "config.json", lambda c: c[:-30]), "config.json: damaged"),
        (lambda f: change(f / "ranker.safetensors", lambda c: c[:-8]), "bytes instead of"),
        (lambda f: change(f / "ranker.safetensors", flip), "checksum differs"),
        (lambda f: change(f / "tfidf.safetensors", flip), "checksum differs"),
        (
            lambda f: change(f / "config.json", lambda c: c.replace(b'"treetop": 3', b'"treetop": 9')),
            "made by a newer treetop",
        ),
    ],
)
def test_a_damaged_folder_is_an_error_of_one_line(folder, damage, message):
    damage(folder)
    with pytest.raises(TreetopError, match=message) as error:
        treetop.load(folder)
    assert "\n" not in str(error.value)


def test_a_missing_folder_is_an_error():
    with pytest.raises(TreetopError, match="no such model folder") as error:
        treetop.load("/nowhere/at/all")
    assert error.value.__context__ is None  # Python would print two errors


# Folders that may be replaced


def contents(folder):
    """Read every file below a folder; None stands for a subfolder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def assert_refused(model, target, message):
    """Assert that saving to `target` is an error of one line and changes no file around it."""
    before = contents(target.parent)
    with pytest.raises(TreetopError) as error:
        model.save(target)
    assert str(error.value) == f"{target}: {message}"
    assert contents(target.parent) == before


NOT_A_MODEL = "exists and is not a treetop model: choose another folder"


@pytest.mark.parametrize(
    "files",
    [
        {"thesis.txt": "years of work"},
        # an encoder of the transformers library
        {"config.json": '{"model_type": "bert", "hidden_size": 16}', "model.safetensors": "weights"},
        # notes, some of them almost a treetop model
        {"config.json": "", "thesis.txt": "years of work"},
        {"config.json": "[1, 2]"},
        {"config.json": '{"treetop": 1}'},
        {"config.json": '{"files": {}}'},
        {"config.json": '{"treetop": true, "files": {}}'},
        {"config.json": '{"treetop": "1", "files": {}}'},
        {"config.json": '{"treetop": 1, "files": ["config.json"]}'},
        {"config.json/treetop": "a folder of this name"},
    ],
)
def test_a_folder_that_is_not_a_model_is_not_replaced(model, tmp_path, files):
    target = tmp_path / "out"
    for name, text in files.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text)
    assert_refused(model, target, NOT_A_MODEL)


def test_a_file_is_not_replaced(model, tmp_path):
    (tmp_path / "out").write_text("years of work")
    assert_refused(model, tmp_path / "out", NOT_A_MODEL)


@pytest.mark.parametrize(
    ("added", "named"),
    [
        ("notes.txt", "notes.txt"),
        ("a.txt", "a.txt"),
        ("notes/a.txt", "notes"),
        (".git/HEAD", ".git"),
        (".gitattributes", ".gitattributes"),
        (".DS_Store", ".DS_Store"),
        (".labels.txt.part", ".labels.txt.part"),
        ("member-0/README.md", "member-0"),
    ],
)
def test_a_model_with_an_added_file_is_not_replaced(model, folder, added, named):
    (folder / added).parent.mkdir(exist_ok=True)
    (folder / added).write_text("mine")
    message = f"holds {named}, which treetop did not write: choose another folder or move it"
    assert_refused(model, folder, message)


def test_a_model_with_an_added_folder_is_not_replaced(model, folder):
    (folder / "notes").mkdir()
    assert_refused(
        model, folder, "holds notes, which treetop did not write: choose another folder or move it"
    )


def test_edited_cards_and_leftovers_of_a_kill_are_replaced(model, folder):
    (folder / "README.md").write_text("mine")
    (folder / ".README.md.part").write_text("cut sh")
    (folder / ".config.json.part").write_text("{")
    model.save(folder, {"P@1": 0.5})
    assert json.loads((folder / "config.json").read_text())["metrics"] == {"P@1": 0.5}
    assert {path.name for path in folder.iterdir()} == {
        "README.md",
        "config.json",
        "labels.txt",
        "ranker.safetensors",
        "seen.safetensors",
        "tfidf.safetensors",
        "tree.safetensors",
    }


def test_an_empty_folder_is_used(model, tmp_path):
    (tmp_path / "out").mkdir()
    model.save(tmp_path / "out")
    assert treetop.load(tmp_path / "out").predict(["blue sky"]) == model.predict(["blue sky"])
    assert os.listdir(tmp_path) == ["out"]


def test_a_symbolic_link_is_not_replaced(model, folder):
    link = folder.parent / "link"
    message = "is a symbolic link: choose another folder, or give the one it points to"
    for pointed_to in (folder, folder.parent / "nothing"):
        link.symlink_to(pointed_to)
        assert_refused(model, link, message)
        assert link.readlink() == pointed_to
        link.unlink()


@pytest.mark.parametrize("name", ["labels.txt", "README.md", "config.json", "more"])
def test_a_model_with_a_symbolic_link_is_not_replaced(model, folder, name):
    elsewhere = folder.parent / "elsewhere"
    if name == "more":
        elsewhere.mkdir()
        (elsewhere / "labels.txt").write_text("mine")
    else:
        (folder / name).rename(elsewhere)
    (folder / name).symlink_to(elsewhere)
    assert_refused(
        model, folder, f"holds {name}, which treetop did not write: choose another folder or move it"
    )


def test_a_folder_must_be_given_by_name(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (".", "", ".."):
        with pytest.raises(TreetopError, match="give the folder by its name"):
            model.save(name)
    assert os.listdir(tmp_path) == []


def test_a_mount_point_is_not_replaced(model, tmp_path, monkeypatch):
    (tmp_path / "out").mkdir()
    monkeypatch.setattr(os.path, "ismount", lambda path: path == tmp_path / "out")
    message = "is a mount point, which cannot be replaced: choose a folder inside it"
    assert_refused(model, tmp_path / "out", message)


def test_a_file_added_during_a_save_is_kept(model, folder, monkeypatch):
    write_config = layout.write_config

    def slowly(*arguments):
        write_config(*arguments)
        (folder / "notes.txt").write_text("mine")

    monkeypatch.setattr(layout, "write_config", slowly)
    with pytest.raises(TreetopError, match=r"holds notes\.txt"):
        model.save(folder)
    assert (folder / "notes.txt").read_text() == "mine"
    assert os.listdir(folder.parent) == ["model"]


def test_a_failed_save_keeps_the_old_model(model, folder, monkeypatch):
    before = (folder / "config.json").read_text()

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(layout, "write_config", full_disk)
    with pytest.raises(TreetopError, match=r"cannot be written \(No space left on device"):
        model.save(folder)
    assert (folder / "config.json").read_text() == before
    assert os.listdir(folder.parent) == ["model"]


def test_folders_are_replaced_without_atomic_exchange(model, folder, monkeypatch):
    monkeypatch.setattr(files, "exchange", lambda *_: False)
    model.save(folder, {"P@1": 0.5})
    assert json.loads((folder / "config.json").read_text())["metrics"] == {"P@1": 0.5}
    assert os.listdir(folder.parent) == ["model"]


@pytest.mark.slow
def test_a_killed_save_keeps_the_old_model_complete(folder, start_process):
    script = textwrap.dedent(f"""
        import treetop
        model = treetop.load({str(folder)!r})
        print("ready", flush=True)
        while True:
            model.save({str(folder)!r})
    """)
    expected = treetop.load(folder).predict(["red apple"])
    for pause in (0.01, 0.03, 0.05, 0.08):
        child = start_process([sys.executable, "-c", script], stdout=subprocess.PIPE)
        assert child.stdout.readline() == b"ready\n"
        time.sleep(pause)
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert treetop.load(folder, verify=True).predict(["red apple"]) == expected


def test_large_models_load_without_being_read(folder, tmp_path):
    """Loading must not read the weights, here a sparse file of 5 GB."""
    expected = treetop.load(folder).predict(["red apple"])
    path = folder / "ranker.safetensors"
    config = json.loads((folder / "config.json").read_text())
    size = 5 << 30
    with path.open("r+b") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        end = max(entry["data_offsets"][1] for entry in header.values())
        header["padding"] = {
            "dtype": "U8",
            "shape": [size - end],
            "data_offsets": [end, size],
        }
        body = file.read()
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % 64)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + body)
        file.truncate(8 + len(text) + size)
    config["files"]["ranker.safetensors"]["bytes"] = path.stat().st_size
    (folder / "config.json").write_text(json.dumps(config))
    treetop.load(folder)
    started = time.process_time()  # other processes do not count
    model = treetop.load(folder)
    assert time.process_time() - started < 1.0
    assert model.predict(["red apple"]) == expected
