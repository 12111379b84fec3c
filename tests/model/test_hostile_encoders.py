"""Encoders in model folders from a stranger: nothing but numbers is read, and mistakes are one line."""

import builtins
import json
import os
import shutil
import socket

import numpy as np
import pytest

import treetop
from tests.model.test_hostile_folders import FOLDERS, RUNTIME, seal
from treetop.errors import TreetopError
from treetop.features.encoders.untrusted import check_encoder, errors_in_one_line
from treetop.model.compress import compress
from treetop.model.folder import read_model
from treetop.runtime.arrays import read_arrays, write_arrays


@pytest.fixture
def folder_of(tmp_path):
    """Copies a folder of an earlier version, which tests may change."""

    def copy(name):
        return shutil.copytree(FOLDERS / name, tmp_path / name)

    return copy


@pytest.fixture(autouse=True)
def nobody_is_asked(monkeypatch):
    """Neither a network nor the person at the terminal."""

    def fail(*_):
        raise AssertionError("asked")

    monkeypatch.setattr(socket.socket, "connect", fail)
    monkeypatch.setattr(builtins, "input", fail)


def assert_refused(folder, message):
    seal_all(folder)
    with pytest.raises(TreetopError, match=message) as error:
        treetop.load(folder, runtime=RUNTIME).predict(["red apple old boat"], k=3)
    assert "\n" not in str(error.value)
    assert str(folder) in str(error.value)
    assert "/proc/" not in str(error.value)


def seal_all(folder):
    """List the files that are there, with their checksums."""
    config = json.loads((folder / "config.json").read_text())
    files = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    config["files"] = dict.fromkeys(set(files) - {"config.json", "README.md"})
    (folder / "config.json").write_text(json.dumps(config))
    seal(folder)


def change_json(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def with_setting(name, value):
    return lambda config: config.__setitem__(name, value)


SETTINGS = [
    (with_setting("attn_implementation", "kernels-community/flash-attn"), "attn_implementation is set"),
    (with_setting("_attn_implementation", {"": "a/b"}), "_attn_implementation is set"),
    (with_setting("text_config", {"experts_implementation": "a/b"}), "experts_implementation is set"),
    (with_setting("quantization_config", {"quant_method": "bnb"}), "quantization_config is set"),
    (with_setting("transformers_weights", "../../x.bin"), "transformers_weights is set"),
    (with_setting("num_hidden_layers", 10**6), "num_hidden_layers is too large"),
    (
        with_setting("intermediate_size", 10**6),
        "describes an encoder of .* numbers, but its weights are",
    ),
    (with_setting("vocab_size", 2**30), "describes an encoder of"),
    (with_setting("hidden_size", 2**70), "hidden_size is too large"),
    (with_setting("hidden_size", "wide"), "cannot be (used|read)"),
    (with_setting("num_attention_heads", 0), "cannot be (used|read)"),
    (with_setting("hidden_act", "evil"), "cannot be (used|read)"),
    (with_setting("to_dict", 1), "cannot be (used|read)"),
    (with_setting("chunk_size_feed_forward", 7), "the encoder cannot be used"),
    (with_setting("layer_norm_eps", float("nan")), "NaN"),
    (with_setting("model_type", "gpt2"), "is a decoder"),
    (lambda c: c.update(model_type="own", auto_map={"AutoConfig": "own.Config"}), "requires code"),
]


@pytest.mark.parametrize(("change", "message"), SETTINGS, ids=range(len(SETTINGS)))
def test_a_configuration_that_asks_for_more_is_refused(folder_of, change, message):
    pytest.importorskip("torch")
    folder = folder_of("transformer")
    change_json(folder / "encoder" / "config.json", change)
    (folder / "encoder" / "own.py").write_text("raise SystemExit('ran')")
    assert_refused(folder, message)


def test_pickled_weights_are_never_opened(folder_of):
    torch = pytest.importorskip("torch")
    folder = folder_of("transformer")
    (folder / "encoder" / "model.safetensors").unlink()
    torch.save({}, folder / "encoder" / "pytorch_model.bin")
    assert_refused(folder, r"no weights in safetensors files here; pickled ones \(pytorch_model.bin\)")


@pytest.mark.parametrize("shard", ["pytorch_model.bin", "../../other.safetensors"])
def test_shards_are_safetensors_files_of_the_folder(tmp_path, shard):
    index = {"weight_map": {"w": shard}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(TreetopError, match="is not a safetensors file of its folder"):
        check_encoder(tmp_path)


def test_adapters_are_refused(folder_of):
    pytest.importorskip("torch")
    folder = folder_of("transformer")
    (folder / "encoder" / "adapter_config.json").write_text("{}")
    assert_refused(folder, "holds an adapter")


def test_a_missing_encoder_is_not_looked_for_elsewhere(folder_of):
    folder = folder_of("transformer")
    shutil.rmtree(folder / "encoder")
    assert_refused(folder, "encoder: missing: copy the whole model folder")


def test_weights_that_make_nan_are_refused(folder_of):
    pytest.importorskip("torch")
    folder = folder_of("transformer")
    path = folder / "encoder" / "model.safetensors"
    arrays = {name: values.copy() for name, values in read_arrays(path).items()}
    for values in arrays.values():
        values[...] = np.nan
    path.unlink()
    write_arrays(path, arrays, {"format": "pt"})
    assert_refused(folder, "NaN or infinity")


def test_tokens_that_the_model_does_not_know_are_refused(folder_of):
    pytest.importorskip("torch")
    folder = folder_of("transformer")
    path = folder / "encoder" / "tokenizer.json"
    path.write_text(
        path.read_text().replace('"red": 5', '"red": 50000').replace('"<unk>": 3', '"<unk>": 70')
    )
    assert_refused(folder, "the tokenizer has tokens beyond the 40 that its model knows")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": "1.0"}', "\xff"])
def test_a_damaged_tokenizer_is_refused(folder_of, content):
    pytest.importorskip("torch")
    folder = folder_of("transformer")
    (folder / "encoder" / "tokenizer.json").write_text(content)
    assert_refused(folder, "encoder")


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"width": 16, "longest": 64}, "onnx.json: missing or damaged"),
        ({"width": 10**12, "longest": 64, "padding": 0}, "onnx.json: missing or damaged"),
        ({"width": 2**31 - 1, "longest": 64, "padding": 0}, "onnx.json: missing or damaged"),
        ({"width": "16", "longest": 64, "padding": 0}, "onnx.json: missing or damaged"),
        ({"width": 16, "longest": -1, "padding": 0}, "onnx.json: missing or damaged"),
        ([1], "onnx.json: missing or damaged"),
        ({"width": 17, "longest": 64, "padding": 0}, "does not make vectors of 17 numbers"),
    ],
)
def test_facts_of_an_exported_encoder(folder_of, facts, message):
    pytest.importorskip("onnxruntime")
    folder = folder_of("onnx")
    (folder / "encoder" / "onnx.json").write_text(json.dumps(facts))
    assert_refused(folder, message)


def test_a_damaged_onnx_file_is_refused(folder_of):
    pytest.importorskip("onnxruntime")
    folder = folder_of("onnx")
    path = folder / "encoder" / "model.onnx"
    path.write_bytes(path.read_bytes()[:-1000])
    assert_refused(folder, "the encoder cannot be used")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda vectors: vectors[:-1], "vectors has"),
        (lambda vectors: vectors[:, 0], "vectors has 1 dimensions instead of 2"),
        (lambda vectors: vectors[:, :-1], "makes vectors of 7 numbers, but the model expects 8"),
        (lambda vectors: vectors * np.float32(np.nan), "vectors holds NaN or infinity"),
        (lambda vectors: vectors.astype(np.int8), "vectors is of type int8"),
    ],
)
def test_word_vectors_that_do_not_fit_are_refused(folder_of, change, message):
    folder = folder_of("wordvectors")
    path = folder / "encoder" / "vectors.safetensors"
    vectors = read_arrays(path)["vectors"].copy()
    path.unlink()
    write_arrays(path, {"vectors": change(vectors)})
    assert_refused(folder, message)


@pytest.mark.parametrize("content", [None, b"\xff\n"])
def test_words_that_cannot_be_read_are_refused(folder_of, content):
    folder = folder_of("wordvectors")
    (folder / "encoder" / "words.txt").unlink()
    if content:
        (folder / "encoder" / "words.txt").write_bytes(content)
    assert_refused(folder, "words.txt: missing or not UTF-8")


def test_panics_of_libraries_are_errors_and_interrupts_are_not(tmp_path):
    PanicException = type("PanicException", (BaseException,), {})
    with (
        pytest.raises(TreetopError, match="PanicException: index out of range"),
        errors_in_one_line(tmp_path),
    ):
        raise PanicException("index out of\nrange")
    with pytest.raises(KeyboardInterrupt), errors_in_one_line(tmp_path):
        raise KeyboardInterrupt


@pytest.mark.parametrize("name", ["transformer", "onnx"])
@pytest.mark.parametrize("nested", [False, True])
def test_a_template_with_an_undefined_token_is_refused_before_it_panics(folder_of, capfd, name, nested):
    folder = folder_of(name)

    def forget_first_token(tokenizer):
        template = tokenizer["post_processor"]
        del template["special_tokens"]["<s>"]
        if nested:
            tokenizer["post_processor"] = {"type": "Sequence", "processors": [template]}

    change_json(folder / "encoder" / "tokenizer.json", forget_first_token)
    assert_refused(folder, "names the special token '<s>', which it does not define")
    assert "panicked" not in capfd.readouterr().err


def test_a_panic_prints_no_backtrace(monkeypatch, tmp_path):
    """With too little memory for the symbols of torch, printing it would never end."""
    monkeypatch.setenv("RUST_BACKTRACE", "1")
    with errors_in_one_line(tmp_path):
        assert os.environ["RUST_BACKTRACE"] == "0"
    assert os.environ["RUST_BACKTRACE"] == "1"
    monkeypatch.delenv("RUST_BACKTRACE")
    with errors_in_one_line(tmp_path):
        assert "RUST_BACKTRACE" not in os.environ


def test_compressing_reads_headers_of_encoders_that_were_never_opened(folder_of):
    folder = folder_of("transformer")
    (folder / "encoder" / "model.safetensors").write_bytes(b"\x02" + bytes(7) + b"[]")
    seal_all(folder)
    model = read_model(folder, runtime=RUNTIME)
    with pytest.raises(TreetopError, match="not a readable safetensors file"):
        compress(model, folder, 10**6, "int8", RUNTIME)


UNREAD = "config.json does not list it"


@pytest.mark.parametrize(
    ("name", "place", "message"),
    [
        ("encoder/config.json", os.mkfifo, "config.json: not a file"),
        ("labels.txt", os.mkfifo, "labels.txt: not a file"),
        ("labels.txt", lambda path: path.symlink_to("/dev/zero"), "labels.txt: not a file"),
        ("labels.txt", lambda path: path.write_text("a\n"), UNREAD),
        ("seen.safetensors", lambda path: path.write_text(""), UNREAD),
        ("encoder/adapter_config.json", lambda path: path.write_text("{}"), UNREAD),
        ("encoder/2_Other", lambda path: path.symlink_to("/"), "a link to a folder"),
        ("config.json", os.mkfifo, "config.json is missing"),
    ],
)
def test_pipes_devices_and_unlisted_files_are_refused(folder_of, name, place, message):
    folder = folder_of("transformer")
    config = json.loads((folder / "config.json").read_text())
    config["files"].pop(name, None)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / name).unlink(missing_ok=True)
    place(folder / name)
    with pytest.raises(TreetopError, match=message) as error:
        treetop.load(folder)
    assert "\n" not in str(error.value)


def test_other_files_beside_a_model_are_fine(folder_of):
    folder = folder_of("tree")
    (folder / "LICENSE").write_text("free")
    (folder / "pictures").mkdir()
    (folder / "pictures" / "notes.txt").write_text("mine")
    assert treetop.load(folder).classes_.size == 118
