"""Arguments of `fit`: forms of labels, matrices instead of texts, and errors."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import treetop
from treetop.errors import TreetopError
from treetop.features.hybrid import features
from treetop.training.inputs import check_rows, read_labels, read_weights

TEXTS = ["red apple", "green pear", "red cherry", "green grass", "blue sky"] * 6
LABELS = [["red", "fruit"], ["green", "fruit"], ["red", "fruit"], ["green"], ["blue"]] * 6


NAMES = ["b", "a", "b"]
SINGLE_LABELS = [[0, 1], [1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("y", "label_names", "classes", "expected"),
    [
        ([["b"], ["a"], ["b"]], None, ["a", "b"], SINGLE_LABELS),
        ([("b", "a"), (), {"b"}], None, ["a", "b"], [[1, 1], [0, 0], [0, 1]]),
        ([["b", "b"], ["a"], []], None, ["a", "b"], [[0, 1], [1, 0], [0, 0]]),
        ([iter(["b"]), iter(["a"]), iter(["b"])], None, ["a", "b"], SINGLE_LABELS),
        (np.array(NAMES), None, ["a", "b"], SINGLE_LABELS),
        (np.array(NAMES, dtype=object), None, ["a", "b"], SINGLE_LABELS),
        (pd.Series(NAMES), None, ["a", "b"], SINGLE_LABELS),
        (np.array([7, 3, 7]), None, [3, 7], SINGLE_LABELS),
        ([7, 3, 7], None, [3, 7], SINGLE_LABELS),
        ([[7], [3], [7]], None, [3, 7], SINGLE_LABELS),
        (NAMES, None, ["a", "b"], SINGLE_LABELS),
        (np.array(SINGLE_LABELS), [7, 3], [7, 3], SINGLE_LABELS),
        (pd.DataFrame(SINGLE_LABELS, columns=["x", "y"]), None, ["x", "y"], SINGLE_LABELS),
        (pd.DataFrame(SINGLE_LABELS), None, ["0", "1"], SINGLE_LABELS),
        (np.array([True, False, True]), None, [False, True], SINGLE_LABELS),
        (np.array(SINGLE_LABELS), ["x", "y"], ["x", "y"], SINGLE_LABELS),
        (np.array(SINGLE_LABELS), None, ["0", "1"], SINGLE_LABELS),
        (sp.coo_matrix(SINGLE_LABELS), ["x", "y"], ["x", "y"], SINGLE_LABELS),
        (pd.DataFrame(SINGLE_LABELS), ["x", "y"], ["x", "y"], SINGLE_LABELS),
        (np.array([[0.5, 0], [0, 2]]), ["x", "y"], ["x", "y"], [[0.5, 0], [0, 2]]),
        (np.array([[1, 0, 0], [0, 1, 0]]), list("xyz"), list("xyz"), [[1, 0, 0], [0, 1, 0]]),
    ],
)
def test_all_forms_of_labels_are_converted_to_a_matrix_and_names(y, label_names, classes, expected):
    Y, names = read_labels(y, label_names)
    assert names.tolist() == classes
    assert (type(Y), Y.dtype) == (sp.csr_matrix, np.float32)
    assert Y.toarray().tolist() == expected


@pytest.mark.parametrize(
    ("y", "label_names", "message"),
    [
        (None, None, "requires y to be passed, but the target y is None"),
        (np.array([1j]), None, "Complex data not supported"),
        (
            np.array([1.0, np.nan]),
            None,
            "Input y contains NaN or infinity: leave out documents without a label",
        ),
        ([[], []], None, "no document has a label"),
        (np.zeros((2, 2)), ["x", "y"], "no document has a label"),
        (np.ones((1, 1)), ["x", "y"], "2 label names for 1 columns of labels"),
        (np.ones((1, 2)), ["x", "x"], "label names must differ from each other: 'x' occurs twice"),
        ([["r\nx"]], None, r"label 'r\nx' contains a line break: replace it by a space"),
        (-np.ones((1, 1)), None, "label matrix: relevance must be finite and not negative"),
        ([["a"], "b"], None, "labels of document 1 are the string 'b': give a list of names"),
        (
            [["a"], 3],
            None,
            "Unknown label type: labels of document 1 are 3: give a list of names, [] for a document "
            "without labels",
        ),
        ([[b"a"]], None, "Unknown label type: label b'a' is of type bytes, not a string or a number"),
        (
            [["a"], [3]],
            None,
            "labels are of several types: 'a' is of type str, 3 of type int: give all names as "
            "strings, or all as numbers of one type",
        ),
        (
            [["a"]],
            ["a"],
            "label_names= names the columns of a matrix, but y holds label names: leave it out (for "
            "column numbers, give [label_names[number] for number in y])",
        ),
        (np.eye(3), "abc", "label_names is a str: give a list of one name per column"),
    ],
)
def test_invalid_labels_are_explained(y, label_names, message):
    with pytest.raises(TreetopError) as error:
        read_labels(y, label_names)
    assert str(error.value) == message


def test_document_weights_are_read_as_float32():
    assert read_weights(None, 3) is None
    assert read_weights([1, 1, 1], 3) is None  # all weights are 1
    weights = read_weights(np.array([[2], [0], [0.5]]), 3)
    assert (weights.dtype, weights.tolist()) == (np.float32, [2, 0, 0.5])
    assert read_weights([2, 2], 2).tolist() == [2, 2]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], "2 weights for 3 documents"),
        ([1, -1, 1], "sample_weight: weights must be finite and not negative"),
        ([1, np.inf, 1], "sample_weight: weights must be finite and not negative"),
        ([0, 0, 0], "sample_weight: every weight is zero"),
    ],
)
def test_invalid_document_weights_are_explained(weights, message):
    with pytest.raises(TreetopError) as error:
        read_weights(weights, 3)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((0, 2)), "there are no documents"),
        (np.zeros((3, 0)), "0 feature(s) (shape=(3, 0)) while a minimum of 1 is required."),
        (np.ones((2, 2)), "2 documents but labels for 3: inconsistent numbers of samples"),
    ],
)
def test_numbers_of_documents_and_labels_must_agree(X, message):
    with pytest.raises(TreetopError) as error:
        check_rows(features(dense=X), sp.csr_matrix((3, 2)))
    assert str(error.value) == message


def test_fit_accepts_a_label_matrix_with_names():
    Y = sp.csr_matrix(np.array([[1, 0], [0, 1], [1, 0]]))
    model = treetop.XRLinear(min_df=1).fit(["a b", "c d", "a e"], Y, label_names=["ab", "cd"])
    assert model.predict(["c d"], k=1)[0][0][0] == "cd"


def test_fit_accepts_feature_matrices(rng):
    X = rng.random((40, 6))
    y = np.where(X[:, 0] > X[:, 1], "left", "right")
    exactly = {"lambda_": 0.01, "tolerance": 1e-6, "passes": 10_000}
    expected = treetop.XRLinear(**exactly).fit(X, y)
    assert expected.score(X, y) == 1.0
    for matrix in (sp.csr_matrix(X), features(X[:, :1], X[:, 1:]), X.astype(np.float32)):
        model = treetop.XRLinear(**exactly).fit(matrix, y)
        made, scores = model.predict_scores(matrix, 2), expected.predict_scores(X, 2)
        np.testing.assert_allclose(made.toarray(), scores.toarray(), atol=1e-3)


@pytest.mark.parametrize("tree", ["L", "4-L"])
def test_a_document_of_weight_2_is_the_document_twice(rng, tree):
    X, weights = rng.normal(size=(60, 8)).astype(np.float32), np.where(np.arange(60) % 3, 1, 2)
    labels = [[f"l{n % 4}", "m"][: 1 + (x[0] > 0)] for n, x in enumerate(X)]
    rows = np.repeat(np.arange(60), weights)
    exactly = {"tolerance": 1e-6, "passes": 10_000, "tree": tree}
    weighted = treetop.XRLinear(**exactly).fit(X, labels, sample_weight=weights)
    repeated = treetop.XRLinear(**exactly).fit(X[rows], [labels[row] for row in rows])
    difference = weighted.predict_scores(X, 5) - repeated.predict_scores(X, 5)
    assert abs(difference).max() < 1e-6


def test_text_features_count_each_document_once_whatever_its_weight():
    """Weights that sum to 1 do not make every word rarer than `min_df`."""
    plain = treetop.XRLinear(min_df=2).fit(TEXTS, LABELS)
    tiny = treetop.XRLinear(min_df=2).fit(TEXTS, LABELS, sample_weight=np.full(len(TEXTS), 0.01))
    expected = plain.model_.features(TEXTS, treetop.Runtime())
    found = tiny.model_.features(TEXTS, treetop.Runtime())
    assert (found.sparse != expected.sparse).nnz == 0


def test_documents_without_labels_are_negatives():
    texts = [*TEXTS, "grey fog"]  # words are learned from all documents
    with_fog = treetop.XRLinear().fit([*texts, "grey fog"], [*LABELS, [], []])
    assert with_fog.train_documents_ == 32
    assert with_fog.predict(["grey fog"], k=1)[0] == [("fruit", pytest.approx(0.32, abs=0.01))]
    fruit = treetop.XRLinear().fit([*texts, "grey fog"], [*LABELS, ["fruit"], ["fruit"]])
    assert fruit.predict(["grey fog"], k=1)[0] == [("fruit", pytest.approx(0.75, abs=0.1))]


def test_duplicate_labels_of_a_document_count_once():
    model = treetop.XRLinear().fit(TEXTS, [[*line, line[0]] for line in LABELS])
    plain = treetop.XRLinear().fit(TEXTS, LABELS)
    assert model.predict(TEXTS) == plain.predict(TEXTS)


def test_a_label_without_documents_is_kept_and_ranks_last():
    Y = sp.csr_matrix(np.array([[1, 0, 0], [0, 1, 0]] * 10))
    model = treetop.XRLinear().fit(["a", "b"] * 10, Y, label_names=["a", "b", "never"])
    assert [name for name, _ in model.predict(["a"], k=3)[0]][-1] == "never"


def test_score_accepts_the_same_labels_as_fit():
    texts, names = ["red sky", "blue sea", "red sea"] * 4, ["r", "b"]
    Y = sp.csr_matrix(np.array([[1, 0], [0, 1], [1, 0]] * 4, np.float32))
    model = treetop.XRLinear().fit(texts, Y, label_names=names)
    assert model.score(texts, Y) == 1.0 == model.score(texts, [["r"], ["b"], ["r"]] * 4)


def test_integer_labels_are_found_by_number_and_by_name(tmp_path):
    texts = ["red sky", "blue sea"] * 4
    model = treetop.XRLinear().fit(texts, np.array([7, 3] * 4))
    model.save(tmp_path / "m")
    for one in (model, treetop.load(str(tmp_path / "m"))):
        assert one.score(texts, [[7], [3]] * 4) == 1.0 == one.score(texts, [["7"], ["3"]] * 4)
        for allow in ([3], ["3"], [np.int64(3)]):
            assert one.predict(["red sky"], k=1, allow=allow)[0][0][0] == 3


def test_labels_as_an_array_or_as_iterators():
    texts = ["red sky", "blue sea"] * 4
    one = treetop.XRLinear().fit(texts, np.array(["r", "b"] * 4, dtype=object))
    assert one.predict(["red sky"])[0][0][0] == "r"
    once = treetop.XRLinear().fit(texts, [map(str, [name]) for name in ["r", "b"] * 4])
    assert once.score(texts, [["r"], ["b"]] * 4) == 1.0
    with pytest.raises(TreetopError, match="line break"):
        treetop.XRLinear().fit(texts, np.array(["r\nx", "b"] * 4))


def test_features_at_prediction_must_match_training(rng):
    model = treetop.XRLinear().fit(rng.random((10, 3)), np.arange(10) % 2)
    with pytest.raises(TreetopError, match="X has 4 features, but XRLinear is expecting 3"):
        model.predict(rng.random((1, 4)))
    with pytest.raises(TreetopError, match="trained on a feature matrix"):
        model.predict(["text"])
    with pytest.raises(TreetopError, match="k is 0"):
        model.predict(rng.random((1, 3)), k=0)
