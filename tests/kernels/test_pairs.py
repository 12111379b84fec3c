"""Sparse text: the kernel against a twin of a few lines of Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treetop.data.pairs import parse_block, read_rows
from treetop.errors import TreetopError


def twin(text, with_labels):
    labels, features, values = [], [], []
    for line in text.split("\n")[:-1]:
        words = line.split()
        first = words[0] if with_labels and words and ":" not in words[0] else ""
        labels.append([int(name) for name in first.split(",") if name])
        pairs = [word.split(":") for word in words if ":" in word]
        features.append([int(feature) for feature, _ in pairs])
        values.append([np.float32(value) for _, value in pairs])
    return labels, features, values


numbers = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**25), 10**25).map(str),
    st.sampled_from(
        ["0", "-0", "+1", ".5", "5.", "007", "1e5", "1E-3", "+2.50e+2", "1e-60", "123456789.123456789"]
    ),
)
pairs = st.lists(st.tuples(st.integers(0, 2**31 - 1), numbers), max_size=5)
lines = st.lists(st.tuples(st.lists(st.integers(0, 99), max_size=3), pairs), min_size=1, max_size=8)


@given(
    lines=lines,
    with_labels=st.booleans(),
    blank=st.sampled_from([" ", "  ", "\t"]),
    end=st.sampled_from(["", "\r", " "]),
)
def test_lines_are_read_as_python_reads_them(lines, with_labels, blank, end):
    text = ""
    for labels, found in lines:
        words = [f"{feature}:{value}" for feature, value in found]
        if with_labels:
            words.insert(0, ",".join(map(str, labels)))
        text += blank.join(words) + end + "\n"
    labels, features, values = twin(text, with_labels)
    rows = parse_block("file", 1, text.encode(), with_labels, "")
    np.testing.assert_array_equal(rows.label_ends, np.cumsum([len(line) for line in labels]))
    np.testing.assert_array_equal(rows.labels, [label for line in labels for label in line])
    np.testing.assert_array_equal(rows.feature_ends, np.cumsum([len(line) for line in features]))
    np.testing.assert_array_equal(rows.features, [one for line in features for one in line])
    expected = np.array([one for line in values for one in line], np.float32)
    np.testing.assert_allclose(rows.values, expected, rtol=2e-7, atol=1e-44)


@pytest.mark.parametrize(
    "text",
    [
        "1 2",
        "1 2:",
        "1 2:x",
        "1 a:1",
        "1 2:1e",
        "1 2:1:1",
        "x 1:1",
        "1 2:inf",
        "1 2:-",
        "1;2 3:1",
        "1 99999999999:1",
        "99999999999 1:1",
        "1 2:1e999",
    ],
)
def test_what_is_no_sparse_text_is_refused(text):
    with pytest.raises(TreetopError, match="file:8: "):
        parse_block("file", 7, f"0 0:1\n{text}\n".encode(), True, "l1,l2 f:v")


def test_blocks_are_put_together_whatever_their_size(tmp_path, monkeypatch):
    monkeypatch.setattr("treetop.data.files.BLOCK", 7)
    path = tmp_path / "a.txt"
    path.write_text("".join(f"{n},{n + 1} {n}:{n}.5 {n + 1}:1\n" for n in range(50)))
    for threads in (1, 3):
        rows = read_rows(path, True, False, threads)
        np.testing.assert_array_equal(rows.labels.reshape(-1, 2)[:, 0], np.arange(50))
        np.testing.assert_array_equal(rows.values.reshape(-1, 2)[:, 0], np.arange(50) + 0.5)
        np.testing.assert_array_equal(rows.feature_ends, 2 * np.arange(1, 51))
    path.write_text("1 0:1\n2 x\n")
    with pytest.raises(TreetopError, match=r"a.txt:2: expected l1,l2"):
        read_rows(path, True, False, 2)
