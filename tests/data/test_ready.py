"""Precomputed features beside the texts of archives, as PECOS and AttentionXML lay them out."""

import numpy as np
import pytest
import scipy.sparse as sp

from treetop.data import open_data
from treetop.data.convert import convert
from treetop.data.joining import joined
from treetop.data.partition import partition
from treetop.errors import TreetopError

TEXTS = {"trn": ["red apple", "green pear", "blue sea"], "tst": ["red sea"]}
X = {"trn": sp.csr_matrix(np.arange(12.0).reshape(3, 4)), "tst": sp.csr_matrix(np.ones((1, 4)))}
Y = {"trn": sp.csr_matrix(np.eye(3)), "tst": sp.csr_matrix([[1.0, 0, 1]])}


@pytest.fixture
def archive(tmp_path):
    """The layout of the paper's archives: texts, labels, TF-IDF features in a folder of their own."""
    folder = tmp_path / "eurlex-4k"
    (folder / "tfidf-attnxml").mkdir(parents=True)
    for short, texts in TEXTS.items():
        (folder / f"X.{short}.txt").write_text("".join(f"{text}\n" for text in texts))
        sp.save_npz(folder / f"Y.{short}.npz", Y[short])
        sp.save_npz(folder / "tfidf-attnxml" / f"X.{short}.npz", X[short])
    (folder / "output-items.txt").write_text("red\ngreen\nblue\n")
    return folder


def assert_texts_and_features(data):
    for name, short in (("train", "trn"), ("test", "tst")):
        split = data.split(name)
        assert list(split.texts) == TEXTS[short]
        np.testing.assert_array_equal(split.X.toarray(), X[short].toarray())
        assert list(split.documents.texts) == TEXTS[short]
        np.testing.assert_array_equal(split.documents.X.sparse.toarray(), X[short].toarray())


def test_the_features_of_an_archive_are_found_in_a_folder_of_it(archive):
    data = open_data(archive)
    assert_texts_and_features(data)
    assert data.label_names == ["red", "green", "blue"]
    assert data.detected == (
        "pecos (texts with precomputed features in tfidf-attnxml/X.trn.npz and tfidf-attnxml/X.tst.npz)"
    )
    assert data.reading.warnings == ()
    assert repr(data.split("train")) == "Split(3 texts with 4 features)"


def test_the_features_of_an_attentionxml_archive_are_found(archive):
    for short, name in (("trn", "train"), ("tst", "test")):
        (archive / f"X.{short}.txt").rename(archive / f"{name}_raw_texts.txt")
        (archive / f"Y.{short}.npz").unlink()
        labels = {"trn": "red\ngreen\nblue\n", "tst": "red blue\n"}
        (archive / f"{name}_labels.txt").write_text(labels[short])
        (archive / "tfidf-attnxml" / f"X.{short}.npz").rename(archive / f"X.{short}.npz")
    data = open_data(archive)
    assert data.format == "attentionxml"
    assert_texts_and_features(data)
    assert data.split("test").labels == [["red", "blue"]]


def test_features_are_left_out_on_request(archive):
    data = open_data(archive, features="none")
    assert data.split("train").X is None
    assert data.split("train").documents == TEXTS["trn"]
    assert data.detected == "pecos"


def test_of_several_folders_of_features_one_is_chosen(archive):
    other = archive / "tfidf-ngram"
    other.mkdir()
    for short, matrix in X.items():
        sp.save_npz(other / f"X.{short}.npz", 2 * matrix)
    with pytest.raises(
        TreetopError, match=r"has precomputed features in .*attnxml and .*ngram: choose a fol"
    ):
        open_data(archive)
    chosen = open_data(archive, features="tfidf-ngram").split("test")
    np.testing.assert_array_equal(chosen.X.toarray(), 2 * X["tst"].toarray())
    by_path = open_data(archive, features=str(other)).split("test")
    np.testing.assert_array_equal(by_path.X.toarray(), 2 * X["tst"].toarray())


def test_features_of_some_splits_are_not_used(archive):
    (archive / "tfidf-attnxml" / "X.tst.npz").unlink()
    data = open_data(archive)
    assert data.split("train").X is None
    (warning,) = data.reading.warnings
    assert "tfidf-attnxml: has features of train, but not of test: they are not used" in warning
    with pytest.raises(
        TreetopError, match=r"has no features of the split test: add one of X\.tst\.npz"
    ):
        open_data(archive, features="tfidf-attnxml")


def test_features_that_do_not_fit_are_errors(archive, tmp_path):
    file = archive / "tfidf-attnxml" / "X.trn.npz"
    sp.save_npz(file, X["trn"][:2])
    with pytest.raises(
        TreetopError, match=r"X\.trn\.npz: 2 rows, but the split train has 3 texts: give"
    ):
        open_data(archive)
    sp.save_npz(file, X["trn"][:, :3])
    with pytest.raises(TreetopError, match=r"X\.trn\.npz has 3 and .*X\.tst\.npz has 4 columns"):
        open_data(archive)
    with pytest.raises(TreetopError, match="--features nowhere: no such file or folder"):
        open_data(archive, features="nowhere")
    with pytest.raises(TreetopError, match="one file of features for the splits train, test"):
        open_data(archive, features=str(file))
    (tmp_path / "m.txt").write_text("2 2 1\n0 0:1\n0 1:1\n")
    with pytest.raises(TreetopError, match="has no texts to add features to"):
        open_data(tmp_path / "m.txt", features=str(file))


def test_any_format_with_texts_takes_a_file_of_features(tmp_path):
    (tmp_path / "a.csv").write_text("text,labels\nred apple,red\ngreen pear,green\nblue sea,blue\n")
    sp.save_npz(tmp_path / "mine.npz", X["trn"])
    split = open_data(tmp_path / "a.csv", features=str(tmp_path / "mine.npz")).split("train")
    assert list(split.texts) == TEXTS["trn"]
    np.testing.assert_array_equal(split.X.toarray(), X["trn"].toarray())
    frame = {"text": TEXTS["tst"], "labels": [["red"]]}
    sp.save_npz(tmp_path / "one.npz", X["tst"])
    assert open_data(frame, features=str(tmp_path / "one.npz")).split("train").X.shape == (1, 4)


def test_a_file_of_features_is_read_with_its_texts(archive):
    for short in TEXTS:
        (archive / "tfidf-attnxml" / f"X.{short}.npz").rename(archive / f"X.{short}.npz")
    split = open_data(archive / "X.tst.npz").split("train")
    assert list(split.texts) == TEXTS["tst"]
    np.testing.assert_array_equal(split.X.toarray(), X["tst"].toarray())


def test_texts_without_labels_keep_their_features(archive):
    (archive / "Y.tst.npz").unlink()
    for short in TEXTS:
        (archive / "tfidf-attnxml" / f"X.{short}.npz").rename(archive / f"X.{short}.npz")
    split = open_data(archive).split("test")
    assert list(split.texts) == TEXTS["tst"]
    assert not split.has_labels
    assert split.X.shape == (1, 4)


def test_a_copy_in_the_same_format_keeps_both(archive, tmp_path):
    convert(open_data(archive), tmp_path / "copy", "pecos")
    assert_texts_and_features(open_data(tmp_path / "copy"))


def test_rows_of_texts_and_features_stay_together(archive):
    split = open_data(archive).split("train")
    parts = partition(split, {"train": 2 / 3, "test": 1 / 3})
    for rows in parts.values():
        part = split.rows(rows)
        assert list(part.texts) == [TEXTS["trn"][row] for row in rows]
        np.testing.assert_array_equal(part.X.toarray(), X["trn"].toarray()[rows])


def test_data_sets_are_put_together_if_all_have_features_or_none(archive):
    both, texts = open_data(archive), open_data(archive, features="none")
    twice = joined([both, both], [archive, archive]).split("train")
    assert list(twice.texts) == 2 * TEXTS["trn"]
    np.testing.assert_array_equal(twice.X.toarray(), np.vstack(2 * [X["trn"].toarray()]))
    for pair in ([both, texts], [texts, both]):
        with pytest.raises(
            TreetopError, match=r"has texts alone, but the texts in .* have precomputed features"
        ):
            joined(pair, [archive, archive])
