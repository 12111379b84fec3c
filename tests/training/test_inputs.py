"""What `fit` takes: labels in many forms, matrices instead of texts, and what is refused."""

import numpy as np
import pytest
import scipy.sparse as sp

import treetop
from treetop.errors import TreetopError

TEXTS = ["red apple", "green pear", "red cherry", "green grass", "blue sky"] * 6
LABELS = [["red", "fruit"], ["green", "fruit"], ["red", "fruit"], ["green"], ["blue"]] * 6


def test_a_matrix_of_labels_with_names():
    Y = sp.csr_matrix(np.array([[1, 0], [0, 1], [1, 0]]))
    model = treetop.XRLinear(min_df=1).fit(["a b", "c d", "a e"], Y, label_names=["ab", "cd"])
    assert model.predict(["c d"], k=1)[0][0][0] == "cd"


def test_matrices_instead_of_texts(rng):
    X = rng.random((40, 6))
    y = np.where(X[:, 0] > X[:, 1], "left", "right")
    for features in (X, sp.csr_matrix(X), treetop.features.hybrid.features(X[:, :1], X[:, 1:])):
        model = treetop.XRLinear(lambda_=0.01).fit(features, y)
        assert model.score(features, y) > 0.9


def test_documents_without_labels_are_negatives():
    model = treetop.XRLinear().fit([*TEXTS, "grey fog", "grey fog"], [*LABELS, [], []])
    assert model.predict(["grey fog"], k=1)[0][0][1] < 0.9


def test_relevance_and_duplicates_in_a_line():
    model = treetop.XRLinear().fit(TEXTS, [[*line, line[0]] for line in LABELS])
    plain = treetop.XRLinear().fit(TEXTS, LABELS)
    assert model.predict(TEXTS) == plain.predict(TEXTS)


def test_a_label_that_never_occurs_is_kept_and_ranks_last():
    Y = sp.csr_matrix(np.array([[1, 0, 0], [0, 1, 0]] * 10))
    model = treetop.XRLinear().fit(["a", "b"] * 10, Y, label_names=["a", "b", "never"])
    assert [name for name, _ in model.predict(["a"], k=3)[0]][-1] == "never"


def test_score_takes_the_matrix_that_fit_took():
    texts, names = ["red sky", "blue sea", "red sea"] * 4, ["r", "b"]
    Y = sp.csr_matrix(np.array([[1, 0], [0, 1], [1, 0]] * 4, np.float32))
    model = treetop.XRLinear().fit(texts, Y, label_names=names)
    assert model.score(texts, Y) == 1.0 == model.score(texts, [["r"], ["b"], ["r"]] * 4)


def test_integer_labels_are_found_by_number_and_by_name(tmp_path):
    texts = ["red sky", "blue sea"] * 4
    model = treetop.XRLinear().fit(texts, np.array([7, 3] * 4))
    model.save(tmp_path / "m")  # a saved model has strings as names
    for one in (model, treetop.load(str(tmp_path / "m"))):
        assert one.score(texts, [[7], [3]] * 4) == 1.0 == one.score(texts, [["7"], ["3"]] * 4)
        for allow in ([3], ["3"], [np.int64(3)]):
            assert str(one.predict(["red sky"], k=1, allow=allow)[0][0][0]) == "3"


def test_labels_as_a_series_as_iterators_and_with_line_breaks():
    texts = ["red sky", "blue sea"] * 4
    one = treetop.XRLinear().fit(texts, np.array(["r", "b"] * 4, dtype=object))
    assert one.predict(["red sky"])[0][0][0] == "r"
    once = treetop.XRLinear().fit(texts, [map(str, [name]) for name in ["r", "b"] * 4])
    assert once.score(texts, [["r"], ["b"]] * 4) == 1.0
    with pytest.raises(TreetopError, match="line break"):
        treetop.XRLinear().fit(texts, np.array(["r\nx", "b"] * 4))


def test_dimensions_that_disagree(rng):
    model = treetop.XRLinear().fit(rng.random((10, 3)), np.arange(10) % 2)
    with pytest.raises(TreetopError, match="X has 4 features, but XRLinear is expecting 3"):
        model.predict(rng.random((1, 4)))
    with pytest.raises(TreetopError, match="trained on a feature matrix"):
        model.predict(["text"])
    with pytest.raises(TreetopError, match="k is 0"):
        model.predict(rng.random((1, 3)), k=0)
