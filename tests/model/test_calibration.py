"""Calibration: its kernel against an obvious twin, and what no table may do."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from treetop.errors import TreetopError
from treetop.model.calibration import Calibration

LABELS = 6


def rising(rng, rows, columns):
    """A table that does not fall along its rows."""
    return np.cumsum(rng.random((rows, columns)) * rng.integers(0, 2, (rows, columns)), 0) - 2


def random_calibration(rng):
    """A calibration with tables of random sizes."""
    scores, lengths, counts, margins, ranks, steps = rng.integers(1, 6, 6)
    return Calibration(
        score_knots=np.cumsum(rng.random(scores) + 0.01) - 0.5,
        length_knots=np.cumsum(rng.random(lengths) + 0.01),
        count_knots=np.cumsum(rng.random(counts) + 0.01),
        margin_knots=np.cumsum(rng.random(margins) + 0.01) - 0.1,
        by_length=rising(rng, scores, lengths),
        by_count=rising(rng, scores, counts),
        by_rank=rising(rng, scores, ranks),
        by_margin=rising(rng, scores, margins),
        logits=np.cumsum(rng.random(steps) + 0.01) - 3,
        probabilities=np.sort(rng.random(steps)),
    )


def random_scores(rng, documents=5):
    """Scores of some labels of each document, best first."""
    rows, sizes = [], rng.integers(0, LABELS + 1, documents)
    for size in sizes:
        rows.append((rng.permutation(LABELS)[:size], np.sort(rng.random(size) * 3 - 1)[::-1]))
    indptr = np.append(0, np.cumsum(sizes))
    labels, values = (np.concatenate(parts) for parts in zip(*rows))
    return sp.csr_matrix((values.astype(np.float32), labels, indptr), shape=(documents, LABELS))


def place(knots, value):
    return float(np.interp(value, knots, np.arange(knots.size)))


def read(table, row, column):
    """Bilinear interpolation, one axis after the other."""
    columns = np.arange(table.shape[1])
    across = [np.interp(column, columns, values) for values in table]
    return float(np.interp(row, np.arange(len(across)), across))


def slow_probabilities(own, scores, lengths, counts):
    """What `Calibration.of` computes, number by number."""
    rows = []
    for document in range(scores.shape[0]):
        start, end = scores.indptr[document : document + 2]
        found = []
        places = [place(own.score_knots, float(score)) for score in scores.data[start:end]]
        for rank, (label, at) in enumerate(zip(scores.indices[start:end], places, strict=True)):
            logit = read(own.by_length, at, place(own.length_knots, math.log1p(lengths[document])))
            logit += read(own.by_count, at, place(own.count_knots, math.log1p(counts[label])))
            logit += read(own.by_rank, at, min(rank, own.by_rank.shape[1] - 1))
            logit += read(own.by_margin, at, place(own.margin_knots, places[0] - at))
            found.append(np.interp(logit, own.logits, own.probabilities))
        rows.append(np.minimum.accumulate(found) if found else [])
    return np.concatenate(rows)


@given(st.integers(0, 2**32 - 1))
def test_the_kernel_does_what_its_twin_does(seed):
    rng = np.random.default_rng(seed)
    own, scores = random_calibration(rng), random_scores(rng)
    lengths, counts = rng.integers(0, 9, 5), rng.integers(0, 9, LABELS)
    found = own.of(scores, lengths, counts)
    np.testing.assert_array_equal(found.indices, scores.indices)
    np.testing.assert_array_equal(found.indptr, scores.indptr)
    np.testing.assert_allclose(found.data, slow_probabilities(own, scores, lengths, counts), atol=1e-6)


@given(st.integers(0, 2**32 - 1))
def test_probabilities_do_not_rise_along_a_row_and_rise_with_the_score(seed):
    rng = np.random.default_rng(seed)
    own, scores = random_calibration(rng), random_scores(rng)
    lengths, counts = rng.integers(0, 9, 5), rng.integers(0, 9, LABELS)
    found = own.of(scores, lengths, counts)
    assert ((found.data >= 0) & (found.data <= 1)).all()
    for start, end in zip(found.indptr, found.indptr[1:]):
        assert (np.diff(found.data[start:end]) <= 0).all()
    best = sp.csr_matrix(([0.1], [2], [0, 1]), shape=(1, LABELS))
    better = sp.csr_matrix(([0.4], [2], [0, 1]), shape=(1, LABELS))
    less, more = (own.of(row, lengths[:1], counts).data[0] for row in (best, better))
    assert less <= more + 1e-6


def test_arrays_make_the_same_calibration(rng):
    own, scores = random_calibration(rng), random_scores(rng)
    again = Calibration.from_arrays(own.arrays, (3, 0), LABELS)
    lengths, counts = np.arange(5), np.arange(LABELS)
    np.testing.assert_array_equal(
        again.of(scores, lengths, counts).data, own.of(scores, lengths, counts).data
    )


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("score_knots", [0.5, 0.5], "score_knots does not ascend"),
        ("by_length", [[1.0], [0.0]], "by_length falls along the score"),
        ("by_rank", [[0.0]], "by_rank has 1 entries instead of 2"),
        ("logits", [0.0, np.nan], "logits holds NaN or infinity"),
        ("probabilities", [0.2, 0.1], "probabilities falls along the score"),
        ("probabilities", [0.2, 1.5], "probabilities are not between 0 and 1"),
        ("by_margin", np.zeros((2, 0)), "by_margin has 0 entries instead of 1"),
    ],
)
def test_damaged_tables_are_refused(name, values, message):
    arrays = {
        "score_knots": [0.0, 1.0],
        "length_knots": [0.0],
        "count_knots": [0.0],
        "margin_knots": [0.0],
        "by_length": [[0.0], [1.0]],
        "by_count": [[0.0], [1.0]],
        "by_rank": [[0.0], [1.0]],
        "by_margin": [[0.0], [1.0]],
        "logits": [-1.0, 1.0],
        "probabilities": [0.1, 0.9],
    }
    fine = {key: np.array(value) for key, value in arrays.items()}
    assert Calibration.from_arrays(fine, (1, 0), 1).probabilities[1] == 0.9
    with pytest.raises(TreetopError, match=message):
        Calibration.from_arrays({**fine, name: np.array(values)}, (1, 0), 1)
