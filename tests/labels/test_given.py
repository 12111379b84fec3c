"""What users pass as labels."""

import numpy as np
import pytest
import scipy.sparse as sp

from treetop.errors import TreetopError
from treetop.labels.given import given_labels

NAN = float("nan")


def lists_of(y):
    given = given_labels(y)
    return [[name] for name in given.one_each.tolist()] if given.lists is None else given.lists


@pytest.mark.parametrize(
    ("y", "lists"),
    [
        ([["a", "b"], ["b"], []], [["a", "b"], ["b"], []]),
        ([("a",), iter(["b"]), np.array(["c"])], [["a"], ["b"], ["c"]]),
        (["a", "b"], [["a"], ["b"]]),
        (("a", "b"), [["a"], ["b"]]),
        ((name for name in "ab"), [["a"], ["b"]]),
        (np.array(["a", "b"]), [["a"], ["b"]]),
        (np.array(["a\0", "b"], dtype=object), [["a\0"], ["b"]]),
        (np.array([["a", "b"], ["b", "c"]]), [["a", "b"], ["b", "c"]]),
        ([3, 1], [[3], [1]]),
        (np.array([3, 1], np.uint8), [[3], [1]]),
        ([[3], [1, 2]], [[3], [1, 2]]),
        ([[3, 1], [1, 2]], [[3, 1], [1, 2]]),  # no 0/1 matrix
        ([[0], [1]], [[0], [1]]),
    ],
)
def test_lists_and_one_label_each(y, lists):
    assert lists_of(y) == lists


@pytest.mark.parametrize(
    "y", [np.eye(2), np.eye(2, dtype=bool), sp.csr_matrix(np.eye(2)), np.eye(2).astype(object)]
)
def test_matrices(y):
    given = given_labels(y)
    assert given.matrix is y
    assert given.columns is None


def test_tables_in_memory():
    pandas = pytest.importorskip("pandas")
    given = given_labels(pandas.DataFrame({"a": [1, 0], "b": [0, 1]}))
    assert (given.matrix.tolist(), given.columns) == ([[1, 0], [0, 1]], ["a", "b"])
    assert given_labels(pandas.DataFrame(np.eye(2))).columns is None
    given = given_labels(pandas.DataFrame({"a": [1, 0], "b": [0, 1]}, dtype="Int64"))
    assert (given.matrix.tolist(), given.columns) == ([[1, 0], [0, 1]], ["a", "b"])
    with pytest.raises(TreetopError, match="y is a table with the columns a"):
        given_labels(pandas.DataFrame({"a": [1, None], "b": [0, 1]}, dtype="Int64"))
    assert lists_of(pandas.Series(["a", "b"], dtype="category")) == [["a"], ["b"]]
    assert lists_of(pandas.Series([["a"], ["b", "c"]])) == [["a"], ["b", "c"]]
    with pytest.raises(TreetopError, match=r"columns tags, n: give one column of labels, such as y\['"):
        given_labels(pandas.DataFrame({"tags": ["a", "b"], "n": [1, 2]}))


def test_other_tables():
    polars = pytest.importorskip("polars")
    given = given_labels(polars.DataFrame({"a": [1, 0], "b": [0, 1]}))
    assert (given.matrix.tolist(), given.columns) == ([[1, 0], [0, 1]], ["a", "b"])
    pyarrow = pytest.importorskip("pyarrow")
    given = given_labels(pyarrow.table({"a": [1, 0], "b": [0, 1]}))
    assert (given.matrix.tolist(), given.columns) == ([[1, 0], [0, 1]], ["a", "b"])
    assert lists_of(pyarrow.array(["a", "b"])) == [["a"], ["b"]]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed"),
        ("abc", "y is one string: give a list of labels per document"),
        (5, "y is 5: give a list of labels per document"),
        ({"a", "b"}, "y is a set, which has no order"),
        ({"a": [1]}, r"y is a table with the columns a: .* such as y\['a'\]"),
        (np.zeros((1, 1, 1)), r"y has shape \(1, 1, 1\)"),
        (np.array([1j]), "Complex data not supported"),
        (["a", None], r"labels of document 1 are None: give a list of names, \[\] for"),
        (["a", NAN], "labels of document 1 are nan"),
        ([["a"], "b"], "labels of document 1 are the string 'b': give a list of names"),
        ([["a"], {"b": 1}], "labels of document 1 are {'b': 1}"),
        ([[0, 1], [1, 0]], r"look like rows of a matrix: give a matrix as an array, np.array\(y\)"),
        ([[0.5, 2], [1, 0]], "look like rows of a matrix"),
        (["a, b", "b, c", "c"], r"'a, b' may be several labels: .* y.str.split\(', '\)"),
        (["a|b", "b", "c"], r"y.str.split\('\|'\) .* or \[\[row\] for row in y\] if each"),
        (["a,b", "b, c", "c"], r"y.str.split\(','\)"),
        (
            ["['a', 'b']", "['c']"],
            "lists written as text, such as .*: parse each with ast.literal_eval",
        ),
    ],
)
def test_what_is_neither_is_refused_in_one_line(y, message):
    with pytest.raises(TreetopError, match=message) as error:
        given_labels(y)
    assert "\n" not in str(error.value)


def test_known_labels_are_not_divided():
    y = ["red, fruit", "green, fruit", "fruit, red"]
    with pytest.raises(TreetopError, match="labels has one string per document"):
        given_labels(y, "labels")
    assert given_labels(y, "labels", set(y).__contains__).lists == [[name] for name in y]
