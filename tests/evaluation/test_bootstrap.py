"""Intervals by the bootstrap: against the metrics of documents that are really drawn again."""

import numpy as np
import pytest
import scipy.sparse as sp

import treetop
from treetop import metrics
from treetop.evaluation import bootstrap
from treetop.evaluation.bootstrap import p_value, resampled_metrics, samples_of
from treetop.evaluation.context import ranking_context

KEYS = [f"{name}@{k}" for name in metrics.METRICS for k in (1, 3)]


def problem(documents=40, labels=9, seed=0):
    """True labels, some documents without any, and scores of which some are missing."""
    rng = np.random.default_rng(seed)
    Y = (rng.random((documents, labels)) < 0.25).astype(float)
    scores = rng.random((documents, labels)) + 0.5 * Y
    scores[rng.random(scores.shape) < 0.4] = 0
    return sp.csr_matrix(Y), sp.csr_matrix(scores)


def slow_twin(Y, scores, key, drawn):
    """The metric of each sample, of a matrix with the drawn documents."""
    name, depth = key.split("@")
    context = ranking_context(Y, scores, int(depth))
    values = []
    for rows in drawn:
        again = ranking_context(Y[rows], scores[rows], int(depth))
        # frequencies of labels are those of all documents
        same = type(again)(**{**vars(again), "counts": context.counts, "inverse": context.inverse})
        values.append(metrics.METRICS[name].function(same))
    return values


@pytest.mark.parametrize("key", KEYS)
def test_samples_are_what_the_metric_of_drawn_documents_is(key, monkeypatch):
    Y, scores = problem()
    monkeypatch.setattr(bootstrap, "CELLS", 200)  # several blocks of samples
    drawn = np.concatenate(list(samples_of(40, 12, 7, 9)))
    assert drawn.shape == (12, 40)
    fast = resampled_metrics(ranking_context(Y, scores, 3), [key], 12, 7)[key]
    np.testing.assert_allclose(fast, slow_twin(Y, scores, key, drawn), rtol=1e-12)


def test_samples_do_not_depend_on_how_many_are_drawn_at_once(monkeypatch):
    at_once = np.concatenate(list(samples_of(10, 30, 3, 5)))
    monkeypatch.setattr(bootstrap, "CELLS", 40)
    assert np.array_equal(np.concatenate(list(samples_of(10, 30, 3, 5))), at_once)


def test_a_registered_metric_has_intervals_too(monkeypatch):
    monkeypatch.setitem(
        metrics.METRICS,
        "hit",
        metrics.Metric("hit", lambda c: c.hits.any(axis=1).mean(), "hit", True, True, True, ()),
    )
    Y, scores = problem()
    result = metrics.evaluate(Y, scores, 1)
    own, known = (result.intervals([key], samples=200)[key] for key in ("hit@1", "P@1"))
    assert own == known  # at k = 1, both are the share of documents with a hit


def test_intervals_cover_the_true_value_as_often_as_they_say():
    """Of documents that are right with probability 0.7, 100 per set."""
    rng, covered = np.random.default_rng(0), 0
    for _ in range(100):
        right = rng.random(100) < 0.7
        Y = sp.csr_matrix(np.stack([right, ~right], axis=1).astype(float))
        scores = np.tile([0.9, 0.1], (100, 1))
        low, high = metrics.evaluate(Y, scores, 1).intervals(["P@1"], samples=200)["P@1"]
        covered += low <= 0.7 <= high
    assert 88 <= covered <= 99


def test_intervals_print_as_a_table():
    result = metrics.evaluate(*problem(), k=(1, 3))
    intervals = result.intervals(["P@1", "macro_f1@3"], samples=100, confidence=0.9, seed=1)
    assert list(intervals) == ["P@1", "macro_f1@3"]
    low, high = intervals["P@1"]
    assert low < result["P@1"] < high
    text = str(intervals)
    assert text.startswith("90% intervals, by the bootstrap over documents:\n\nmetric")
    assert f"{100 * low:.2f}" in text
    assert "<table>" in intervals._repr_html_()
    assert result.intervals(["P@1"], seed=1) == result.intervals(["P@1"], seed=1)
    assert str(result).endswith(str(result.intervals()))


def test_intervals_lie_around_the_metric():
    """In samples, macro-F1 is lower: of labels with one document, a third is missing."""
    Y = sp.csr_matrix(np.eye(40))
    scores = sp.csr_matrix(np.eye(40) + np.tile(np.arange(40) % 2, (40, 1)).T * np.eye(40)[::-1])
    result = metrics.evaluate(Y, scores, 1)
    drawn = resampled_metrics(result.details.context, ["macro_f1@1"], 200, 0)["macro_f1@1"]
    low, high = result.intervals(["macro_f1@1"], samples=200)["macro_f1@1"]
    assert low < result["macro_f1@1"] < high
    width = np.subtract(*np.quantile(drawn, [0.975, 0.025]))
    assert high - low == pytest.approx(width)


def test_intervals_of_fractions_are_fractions():
    right = np.r_[np.zeros(1), np.ones(60)]
    Y = sp.csr_matrix(np.stack([right, 1 - right], axis=1))
    low, high = metrics.evaluate(Y, np.tile([0.9, 0.1], (61, 1)), 1).intervals(["P@1"])["P@1"]
    assert (low < 60 / 61, high) == (True, 1.0)


def test_p_is_the_share_of_samples_beyond_zero():
    assert p_value(np.ones(999)) == pytest.approx(0.002)
    assert p_value(np.zeros(999)) == 1.0
    assert p_value(np.repeat([-1.0, 1.0], [99, 900])) == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.intervals(confidence=95), "confidence is 95: it must lie between 0 and 1"),
        (lambda r: r.intervals(samples=10), "samples is 10: it must be at least 100, better 1000"),
        (lambda r: r.intervals(["P@7"]), "there is no metric 'P@7' in this result: it has P@1, R@1"),
        (lambda r: metrics.Evaluation(r).intervals(), "this result has its values only"),
        (lambda r: r.by_length(), "the result does not know the documents"),
        (lambda r: r.by_label(0), "k is 0: it must be at least 1"),
    ],
)
def test_mistakes_are_one_line(call, message):
    with pytest.raises(treetop.TreetopError, match=message):
        call(metrics.evaluate(*problem(), k=1))
