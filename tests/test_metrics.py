"""Measures on cases done by hand, and against slow twins."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, ndcg_score

from treetop import metrics
from treetop.errors import TreetopError

TRUE = sp.csr_matrix(np.array([[1, 1, 0, 0, 0], [0, 0, 1, 0, 1], [0, 0, 0, 0, 0]]))
SCORES = sp.csr_matrix(np.array([[0.9, 0.1, 0.5, 0, 0], [0.2, 0.8, 0.4, 0, 0], [0.3, 0, 0, 0, 0]]))


def test_a_case_done_by_hand():
    result = metrics.evaluate(TRUE, SCORES, k=(1, 3))
    # ranks: document 0: 0 2 1, document 1: 1 2 0, document 2: 0
    assert result["P@1"] == pytest.approx(1 / 3)
    assert result["P@3"] == pytest.approx((2 / 3 + 1 / 3 + 0) / 3)
    assert result["R@3"] == pytest.approx((1 + 1 / 2) / 2)
    assert result["RP@1"] == pytest.approx(1 / 2)
    assert result["RP@3"] == pytest.approx((2 / 2 + 1 / 2) / 2)
    full = 1 + 1 / np.log2(3)
    assert result["nDCG@3"] == pytest.approx(((1 + 0.5) / full + (1 / np.log2(3)) / full) / 2)
    assert result["documents_without_labels"] == 1
    assert result["coverage@3"] == pytest.approx(3 / 4)
    assert result["micro_f1@1"] == pytest.approx(2 * 1 / (3 + 4))


def test_labels_only_the_test_set_has_count_as_missed():
    known = metrics.evaluate(TRUE[:, :4], SCORES[:, :4], k=(3,))
    with_unseen = metrics.evaluate(TRUE, SCORES[:, :4], k=(3,))
    assert with_unseen["R@3"] < known["R@3"]
    assert with_unseen["by_frequency"]["1"]["occurrences"] == 4
    buckets = metrics.evaluate(TRUE, SCORES[:, :4], (1,), train_counts=np.array([5, 5, 5, 5]))
    assert buckets["by_frequency"]["0"] == {
        "labels": 1, "occurrences": 1, "recall": 0.0, "precision": 0.0, "f1": 0.0,
    }  # fmt: skip


def test_propensity_is_the_papers_formula():
    inverse = metrics.inverse_propensity(np.array([10.0]), 1000, 0.55, 1.5)
    C = (np.log(1000) - 1) * 2.5**0.55
    assert inverse[0] == pytest.approx(1 + C * 11.5**-0.55)
    assert metrics.PROPENSITIES["wikipedia"] == (0.5, 0.4)
    assert metrics.PROPENSITIES["amazon"] == (0.6, 2.6)


def test_perfect_predictions_score_one():
    Y = sp.random(30, 12, 0.3, "csr", random_state=0)
    Y.data[:] = 1
    result = metrics.evaluate(Y, Y, k=(1, 3, 12))
    filled = (np.diff(Y.indptr) > 0).mean()
    for name in ("nDCG@3", "PSP@12", "RP@3", "R@12", "coverage@12"):
        assert result[name] == pytest.approx(1.0), name
    assert result["P@1"] == pytest.approx(filled)


@given(st.integers(0, 10_000), st.integers(1, 6))
def test_against_slow_twins(seed, k):
    rng = np.random.default_rng(seed)
    Y = (rng.random((12, 9)) < 0.3).astype(float)
    S = rng.permutation(12 * 9).reshape(12, 9) + 1.0
    result = metrics.evaluate(Y, S, k=(k,))
    has = Y.sum(axis=1) > 0
    if has.any():
        assert result[f"nDCG@{k}"] == pytest.approx(ndcg_score(Y[has], S[has], k=k))
    chosen = np.zeros_like(Y)
    order = np.argsort(-S, axis=1)[:, :k]
    np.put_along_axis(chosen, order, 1, axis=1)
    assert result[f"P@{k}"] == pytest.approx((chosen * Y).sum() / 12 / k)
    micro = f1_score(Y, chosen, average="micro", zero_division=0)
    assert result[f"micro_f1@{k}"] == pytest.approx(micro)
    inverse = metrics.inverse_propensity(Y.sum(axis=0), 12, 0.55, 1.5)
    gained = (chosen * Y * inverse).sum()
    best = sum(np.sort(row * inverse)[::-1][:k].sum() for row in Y)
    assert result[f"PSP@{k}"] == pytest.approx(gained / best if best else 0)


def test_f1_at_a_threshold():
    result = metrics.evaluate(TRUE, SCORES, (1,), threshold=0.45)
    said = np.array([[1, 0, 1, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 0]])
    expected = f1_score(TRUE.toarray(), said, average="micro", zero_division=0)
    assert result["micro_f1>=0.45"] == pytest.approx(expected)


def test_ties_go_to_the_lower_label_and_short_rows_are_padded():
    best = metrics.top_k(sp.csr_matrix(np.array([[0.5, 0.5, 0.9], [0, 0, 0.1]])), 3)
    assert best.tolist() == [[2, 0, 1], [2, -1, -1]]


@pytest.mark.parametrize(
    ("true", "scores", "message"),
    [
        (np.eye(2), np.eye(3), "2 documents have labels, 3 have scores"),
        (np.ones((2, 2)), np.ones((2, 3)), "every label that can be predicted needs a column"),
        (np.ones((1, 1)), np.array([[np.nan]]), "NaN"),
    ],
)
def test_errors(true, scores, message):
    with pytest.raises(TreetopError, match=message):
        metrics.evaluate(true, scores)
