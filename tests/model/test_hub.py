"""The Hugging Face Hub: huggingface_hub against a fake server."""

import json
import os
import subprocess
import sys

import pytest

import treetop
from tests.hub_stand_in import start
from treetop.errors import TreetopError

pytest.importorskip("huggingface_hub")
TEXTS = ["red apple", "green grass", "blue sky"] * 4
LABELS = [["red"], ["green"], ["blue", "sky"]] * 4


@pytest.fixture(scope="module")
def model():
    return treetop.XRLinear().fit(TEXTS, LABELS)


def test_save_and_load_a_folder(model, tmp_path):
    model.save_pretrained(tmp_path / "m")
    assert {"config.json", "labels.txt", "README.md"} <= {p.name for p in (tmp_path / "m").iterdir()}
    again = treetop.XRLinear.from_pretrained(tmp_path / "m")
    assert again.predict(["blue sky"]) == model.predict(["blue sky"])
    again.save_pretrained(tmp_path / "m")  # over itself
    assert treetop.from_pretrained(tmp_path / "m").predict(["red"]) == model.predict(["red"])
    with pytest.raises(TreetopError, match="holds the model 'xr-linear', not 'xr-transformer'"):
        treetop.XRTransformer.from_pretrained(tmp_path / "m")
    with pytest.raises(TreetopError, match=r"config.json is missing"):
        treetop.from_pretrained(tmp_path)


@pytest.mark.parametrize("config", ['{"model_type": "bert"}', None])
def test_save_pretrained_does_not_replace_other_files(model, tmp_path, config):
    """huggingface_hub's own save_pretrained deletes the config.json of any folder."""
    folder = tmp_path / "m"
    if config is None:
        model.save(folder)
    else:
        (folder / "encoder").mkdir(parents=True)
        (folder / "config.json").write_text(config)
        (folder / "encoder" / "weights").write_bytes(b"mine")
    (folder / ".gitattributes").write_text("mine")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    message = r"holds \.gitattributes" if config is None else "is not a treetop model"
    with pytest.raises(TreetopError, match=message):
        model.save_pretrained(folder)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_the_model_card_is_valid_on_the_hub_and_may_be_edited(model, tmp_path):
    from huggingface_hub import ModelCard

    model.save(
        tmp_path / "m",
        {
            "P@1": 0.5,
            "P@3": 0.25,
            "intervals": {"P@1": [0.4, 0.625]},
            "by_frequency": {"1": {"labels": 3, "recall": 0.25, "precision": 1.0}},
        },
    )
    card = ModelCard.load(tmp_path / "m" / "README.md")
    assert card.data.library_name == "treetop"
    for said in (
        "12 documents",
        "| P@1 | 50.00 | 40.00 to 62.50 |",
        "| P@3 | 25.00 |  |",
        "| 1 | 3 | 25.00 | 100.00 |",
        "treetop.load",
        "## Limits",
        "`beam`",
    ):
        assert said in card.text
    (tmp_path / "m" / "README.md").write_text("mine")
    assert treetop.load(str(tmp_path / "m")).predict(["red"]) == model.predict(["red"])


def run(code, server, home):
    address = f"http://127.0.0.1:{server.server_port}"
    environment = {
        "HF_ENDPOINT": address,
        "HF_HOME": str(home),
        "HF_TOKEN": "hf_x",
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_OFFLINE": "0",
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        timeout=120,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.fixture
def server():
    """A fake Hub, which is stopped after the test."""
    server = start()
    yield server
    server.shutdown()
    server.server_close()


def test_push_and_download(model, server, tmp_path):
    model.save(tmp_path / "m")
    push = f"import treetop; print(treetop.load({str(tmp_path / 'm')!r}).push_to_hub('someone/tags'))"
    code, said, errors = run(push, server, tmp_path / "home")
    assert code == 0, errors
    assert "commit" in said
    files = server.repos["someone/tags"]
    assert json.loads(files["config.json"])["model"] == "xr-linear"
    assert not any(name.endswith((".pkl", ".bin", ".pt")) for name in files)
    server.repos["someone/tags"]["evil.pkl"] = b"never fetched"
    fetch = (
        "import treetop; print(treetop.from_pretrained('someone/tags').predict(['blue sky'])[0][0][0])"
    )
    code, said, errors = run(fetch, server, tmp_path / "other")
    assert code == 0, errors
    assert said.strip() in ("blue", "sky")
    assert not list((tmp_path / "other").rglob("evil.pkl"))
    missing = (
        "import treetop\ntry: treetop.from_pretrained('someone/nothing')\n"
        "except treetop.TreetopError as error: print(error)"
    )
    code, said, errors = run(missing, server, tmp_path / "other")
    assert "someone/nothing: no such file or folder, and no such model on the Hub" in said, errors


class Unreachable:
    server_port = 9  # where nothing listens


def test_an_unreachable_hub_is_noticed_within_seconds_and_the_cache_used(model, server, tmp_path):
    model.save(tmp_path / "m")
    files = {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()}
    server.repos["someone/tags"] = files
    fetch = (
        "import time, treetop\nstarted = time.perf_counter()\n"
        "try: print(treetop.from_pretrained('someone/{}').predict(['blue sky'])[0][0][0])\n"
        "except treetop.TreetopError as error: print(error)\n"
        "print('fast' if time.perf_counter() - started < 20 else 'slow')"
    )
    label = run(fetch.format("tags"), server, tmp_path / "home")[1].split()[0]
    assert run(fetch.format("tags"), Unreachable, tmp_path / "home")[1].split() == [label, "fast"]
    _, said, errors = run(fetch.format("other"), Unreachable, tmp_path / "home")
    error, speed = said.splitlines()
    assert error.startswith(
        "someone/other: not a folder, not in the Hub cache, and 127.0.0.1:9 cannot be reached ("
    )
    assert speed == "fast"
    assert "Retry" not in errors


def test_save_and_push_in_one_call(model, server, tmp_path):
    model.save(tmp_path / "m")
    push = (
        f"import treetop; print(treetop.load({str(tmp_path / 'm')!r}).save_pretrained("
        f"{str(tmp_path / 'n')!r}, push_to_hub=True, repo_id='someone/else', commit_message='x'))"
    )
    code, said, errors = run(push, server, tmp_path / "home")
    assert code == 0, errors
    assert "commit" in said
    assert server.repos["someone/else"]["labels.txt"] == (tmp_path / "n" / "labels.txt").read_bytes()


def test_the_error_names_the_missing_package(model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(
        TreetopError, match=r"huggingface_hub is not.*: pip install 'treetop-xmc\[hub\]'"
    ):
        model.push_to_hub("a/b")
    with pytest.raises(TreetopError, match=r"pip install 'treetop-xmc\[hub\]'"):
        model.save_pretrained(tmp_path / "m", push_to_hub=True)
    assert not (tmp_path / "m").exists()
