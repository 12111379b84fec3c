"""An encoder as part of a model: opened once, pickled by its folder, copied when saved."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from treetop.features.encoders import handle as handle_module
from treetop.features.encoders.handle import EncoderHandle
from treetop.features.encoders.opening import open_encoder
from treetop.features.encoders.wordvectors import WordVectors
from treetop.runtime import Runtime
from treetop.runtime.arrays import read_arrays

TEXTS = ["red apple", "", "the sky is blue"]
FP32 = Runtime(threads=1, device="cpu", precision="fp32")


@pytest.fixture
def vectors():
    return WordVectors(["red", "sky"], np.array([[1, 0.1], [2, -3]], np.float32))


@pytest.fixture
def folder(vectors, tmp_path):
    """Saved word vectors: an encoder that needs no torch."""
    vectors.save(tmp_path / "vectors")
    return tmp_path / "vectors"


@pytest.fixture
def opened(monkeypatch):
    """The devices and precisions for which encoders were opened, in order."""
    calls = []

    def record_and_open(name, runtime, **options):
        calls.append((runtime.device, runtime.precision, options))
        return open_encoder(name, runtime, **options)

    monkeypatch.setattr(handle_module, "open_encoder", record_and_open)
    return calls


def test_an_encoder_is_opened_once_per_device_and_precision(folder, opened):
    handle = EncoderHandle(folder, "mean", 16, 0.2)
    first = handle.open(FP32)
    assert handle.open(replace(FP32, threads=2)) is first
    options = {"pooling": "mean", "max_length": 16, "dropout": 0.2, "to_learn": False}
    assert opened == [("cpu", "fp32", options)]
    second = handle.open(replace(FP32, precision="bf16"))
    assert second is not first
    assert handle.open(replace(FP32, precision="bf16")) is second
    # only the last one is kept, to save memory
    assert handle.open(FP32) is not first
    assert [call[:2] for call in opened] == [("cpu", "fp32"), ("cpu", "bf16"), ("cpu", "fp32")]


def test_an_open_encoder_is_held_and_moved_to_the_runtime(opened):
    class Placed(WordVectors):
        def place(self, runtime):
            self.placed = (runtime.device, runtime.precision)

    held = Placed(["red"], np.ones((1, 2), np.float32))
    assert EncoderHandle.holding(held, 16).open(FP32) is held
    assert held.placed == ("cpu", "fp32")
    assert opened == []


def test_a_handle_with_a_folder_is_pickled_without_the_open_encoder(folder, opened):
    handle = EncoderHandle(folder, "auto", 16, 0.1)
    expected = handle.open(FP32).embed_texts(TEXTS)
    restored = pickle.loads(pickle.dumps(handle))
    assert restored._open == {}
    assert (restored.folder, restored.pooling, restored.max_length, restored.dropout) == (
        folder,
        "auto",
        16,
        0.1,
    )
    np.testing.assert_array_equal(restored.open(FP32).embed_texts(TEXTS), expected)
    assert len(opened) == 2


def test_a_handle_without_a_folder_is_pickled_with_its_encoder(vectors):
    restored = pickle.loads(pickle.dumps(EncoderHandle.holding(vectors, 16)))
    encoder = restored.open(FP32)
    np.testing.assert_array_equal(encoder.embed_texts(TEXTS), vectors.embed_texts(TEXTS))


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_saving_copies_the_folder_without_opening_the_encoder(folder, opened, tmp_path):
    (folder / "more").mkdir()
    (folder / "more" / "notes.txt").write_text("kept")
    EncoderHandle(folder, "auto", 16, 0.1).save(tmp_path / "copy", half=False)
    assert contents(tmp_path / "copy") == contents(folder)
    assert opened == []


def test_saving_an_encoder_that_is_held_writes_it(vectors, folder, tmp_path):
    EncoderHandle.holding(vectors, 16).save(tmp_path / "copy", half=False)
    assert contents(tmp_path / "copy") == contents(folder)


def test_half_writes_float32_weights_as_float16_and_leaves_the_original(folder, tmp_path):
    before = contents(folder)
    EncoderHandle(folder, "auto", 16, 0.1).save(tmp_path / "half", half=True)
    assert contents(folder) == before
    whole = read_arrays(folder / "vectors.safetensors")["vectors"]
    half = read_arrays(tmp_path / "half" / "vectors.safetensors")["vectors"]
    assert (whole.dtype, half.dtype) == (np.float32, np.float16)
    np.testing.assert_array_equal(half, whole.astype(np.float16))


def test_a_transformer_saved_in_half_has_nearly_the_same_vectors(encoder, tmp_path):
    handle = EncoderHandle.holding(open_tiny(encoder), 16)
    handle.save(tmp_path / "half", half=True)
    saved = read_arrays(tmp_path / "half" / "model.safetensors")
    assert {values.dtype for values in saved.values()} == {np.dtype(np.float16)}
    restored = EncoderHandle(tmp_path / "half", "auto", 16, 0.1).open(FP32)
    expected = handle.open(FP32).embed_texts(TEXTS)
    np.testing.assert_allclose(restored.embed_texts(TEXTS), expected, atol=2e-3)


def open_tiny(encoder):
    return open_encoder(encoder, FP32, pooling="auto", max_length=16, dropout=0.1, to_learn=True)
