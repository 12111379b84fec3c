"""Alignment of label names with columns."""

import numpy as np
import pytest
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.labels.alignment import align, columns_of, vocabulary

CLASSES = np.array(["c", "a", "b"], dtype=object)


def test_lists_are_aligned_with_the_classes_and_unseen_labels_come_last():
    lists = [["a", "a"], ["z", "b", "y"], []]
    kept = align(lists, CLASSES)
    assert kept.toarray().tolist() == [[0, 1, 0, 0, 0], [0, 0, 1, 1, 1], [0, 0, 0, 0, 0]]
    dropped = align(lists, CLASSES, unseen=False)
    assert dropped.toarray().tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]


def test_a_matrix_with_column_names_keeps_its_values():
    Y = sp.csr_matrix([[0.5, 0, 2, 0], [0, 3, 0, 0]])
    kept = align(Y, CLASSES, ["a", "z", "c", "never occurs"])
    assert kept.toarray().tolist() == [[2, 0.5, 0, 0], [0, 0, 0, 3]]
    assert kept.dtype == np.float32
    dropped = align(Y, CLASSES, ["a", "z", "c", "never occurs"], unseen=False)
    assert dropped.toarray().tolist() == [[2, 0.5, 0], [0, 0, 0]]


def test_a_matrix_without_column_names_is_unchanged():
    Y = np.array([[1, 0, 2]])
    assert align(Y, CLASSES).toarray().tolist() == Y.tolist()
    with pytest.raises(TreetopError, match="validation labels: 2 columns, expected 3: give lists"):
        align(Y[:, :2], CLASSES, input_name="validation labels")


@pytest.mark.parametrize(
    "y",
    [
        [[3], [1, 2]],
        [["3"], (np.int64(1), "2")],
        [iter([3]), {1, 2}],
        np.array([[3], [1, 2]], dtype=object),
    ],
)
def test_names_are_compared_as_strings(y):
    assert align(y, np.array([1, 2, 3])).toarray().tolist() == [[0, 0, 1], [1, 1, 0]]


def test_an_array_has_one_label_per_document():
    for y in (np.array([2, 1]), np.array(["2", "1"]), np.array(["2", "1"], dtype=object)):
        assert align(y, [1, 2]).toarray().tolist() == [[0, 1], [1, 0]]
    assert align(np.array([True, False]), np.array([False, True])).toarray().tolist() == [
        [0, 1],
        [1, 0],
    ]


def test_data_frames_and_series():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 0], "c": [0, 1]})
    assert align(frame, CLASSES, frame.columns).toarray().tolist() == [[0, 1, 0], [1, 0, 0]]
    series = pandas.Series([["a"], ["c"]])
    assert align(series, CLASSES).toarray().tolist() == [[0, 1, 0], [1, 0, 0]]


def test_column_numbers_of_names():
    assert columns_of(["b", "c"], vocabulary(CLASSES)).tolist() == [2, 0]
    assert columns_of([3, "1"], vocabulary(np.array([1, 3]))).tolist() == [1, 0]
    with pytest.raises(TreetopError, match="label 'pink' is not known to the model"):
        columns_of(["pink"], vocabulary(CLASSES))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed"),
        ([b"ab"], "labels of document 0 are b'ab': give a list of names"),
        ([["a"], [["b"]]], r"label \['b'\] is of type list, not a string or a number"),
        (sp.csr_matrix([[-1.0, 0, 0]]), "relevance must be finite and not negative"),
    ],
)
def test_errors(y, message):
    with pytest.raises(TreetopError, match=message):
        align(y, CLASSES)
