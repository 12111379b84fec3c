"""Word vectors of every file format as an encoder that needs no torch."""

import struct

import numpy as np
import pytest

import treetop
from treetop.errors import TreetopError
from treetop.features.encoders.fasttext import fnv, subword_rows
from treetop.features.encoders.wordvectors import WordVectors

WORDS = ["red", "grün", "sky"]
VECTORS = np.array([[1, 0, 2], [0, 3, 0], [5, 0, 0.5]], np.float32)


def lines(header: str) -> bytes:
    rows = (f"{word} {' '.join(map(str, row))}\n" for word, row in zip(WORDS, VECTORS, strict=True))
    return (header + "".join(rows)).encode()


def word2vec_binary() -> bytes:
    rows = (
        word.encode() + b" " + row.tobytes() + b"\n" for word, row in zip(WORDS, VECTORS, strict=True)
    )
    return b"3 3\n" + b"".join(rows)


def fasttext_binary(shortest=3, longest=4, buckets=7) -> bytes:
    """The layout of fastText's own files: arguments, dictionary, input matrix."""
    content = struct.pack("<ii", 793_712_314, 12)
    content += struct.pack("<12i", 3, 5, 5, 1, 5, 1, 1, 2, buckets, shortest, longest, 100)
    content += struct.pack("<d", 1e-4) + struct.pack("<3i", 4, 3, 1) + struct.pack("<qq", 10, -1)
    for word in (*WORDS, "__label__x"):
        content += word.encode() + b"\0" + struct.pack("<qb", 1, int(word.startswith("__")))
    matrix = np.concatenate([VECTORS, np.arange(3 * buckets, dtype=np.float32).reshape(buckets, 3)])
    return content + b"\0" + struct.pack("<qq", *matrix.shape) + matrix.tobytes()


@pytest.mark.parametrize("content", [lines("3 3\n"), lines(""), word2vec_binary()])
def test_every_format_is_read(tmp_path, content):
    (tmp_path / "v").write_bytes(content)
    loaded = WordVectors.load(tmp_path / "v")
    assert loaded.words == WORDS
    np.testing.assert_array_equal(loaded.vectors, VECTORS)
    loaded.save(tmp_path / "saved")
    restored = WordVectors.load(tmp_path / "saved")
    assert restored.words == WORDS
    np.testing.assert_array_equal(restored.vectors, VECTORS)


def test_the_vector_of_a_text_is_the_mean_of_its_words():
    loaded = WordVectors(WORDS, VECTORS)
    means = loaded.embed_texts(["Red sky, GRÜN!", "unknown", ""])
    np.testing.assert_allclose(means[0], VECTORS[[0, 2, 1]].mean(axis=0))
    np.testing.assert_array_equal(means[1:], 0)


def test_a_word_may_contain_spaces(tmp_path):
    (tmp_path / "v").write_bytes(b"red 1 2\n. . . 3 4\n")
    loaded = WordVectors.load(tmp_path / "v")
    assert loaded.words == ["red", ". . ."]
    np.testing.assert_array_equal(loaded.vectors, [[1, 2], [3, 4]])


def test_binary_fasttext_models_include_subwords(tmp_path):
    (tmp_path / "v.bin").write_bytes(fasttext_binary())
    loaded = WordVectors.load(tmp_path / "v.bin")
    assert loaded.words == WORDS
    parts = ["<sk", "<sky", "sky", "sky>", "ky>"]
    rows = [2, *(3 + fnv(part.encode()) % 7 for part in parts)]
    matrix = np.concatenate([VECTORS, np.arange(21, dtype=np.float32).reshape(7, 3)])
    np.testing.assert_allclose(loaded.vectors[2], matrix[rows].mean(axis=0), rtol=1e-6)
    assert sorted(subword_rows("sky", 3, 4, 7, 3)) == sorted(rows[1:])
    assert fnv(b"a") == 0xE40C292C  # the published value of FNV-1a


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"red 1 2\nsky 1 x\n", ":2: not a word followed by numbers"),
        (b"red 1 2\nsky 1\n", ":2: 1 numbers instead of 2"),
        (b"\n", "contains no word vectors"),
        (word2vec_binary()[:-9], "the file is truncated, at word 3 of 3"),
        (fasttext_binary()[:90], "not a readable fastText model"),
    ],
)
def test_damaged_files_are_refused(tmp_path, content, message):
    (tmp_path / "v").write_bytes(content)
    with pytest.raises(TreetopError, match=message):
        WordVectors.load(tmp_path / "v")


def test_a_model_with_word_vectors_saves_and_loads(tmp_path):
    (tmp_path / "v").write_bytes(lines(""))
    texts, labels = ["red sky", "grün", "red", "sky"] * 3, [["a"], ["b"], ["a"], ["c"]] * 3
    settings = {"encoder": str(tmp_path / "v")}
    with pytest.raises(TreetopError, match="word vectors cannot be fine-tuned: set fine_tune=false"):
        treetop.XRTransformer(**settings).fit(texts, labels)
    model = treetop.XRTransformer(**settings, fine_tune=False).fit(texts, labels)
    model.save(tmp_path / "model")
    loaded = treetop.load(str(tmp_path / "model"))
    assert loaded.predict(texts) == model.predict(texts)
    assert loaded.predict(["grün"])[0][0][0] == "b"
    assert model.model_.feature_map.widths[1] == 3
