"""Results by label, document and length, on hand-computed examples."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import f1_score, precision_recall_fscore_support

import treetop
from treetop import metrics
from treetop.evaluation.curves import precision_recall, reliability
from treetop.runtime.extras import EXTRAS

CLASSES = ["apple", "pear", "sky"]
# Three documents about apples, one of which is taken for a pear; one about the sky.
TRUE = [["apple"], ["apple"], ["apple", "sky"], ["sky"], ["new"]]
SCORES = [[0.9, 0.1, 0], [0.2, 0.8, 0], [0.7, 0.6, 0.5], [0, 0, 0.9], [0, 0.3, 0]]


@pytest.fixture
def result():
    return metrics.evaluate(TRUE, SCORES, k=(1, 2), classes=CLASSES)


def test_labels_have_counts_and_what_is_predicted_instead(result):
    labels = result.by_label(k=1)
    assert [(one.label, one.support, one.predicted, one.correct) for one in labels] == [
        ("apple", 3, 2, 2),
        ("sky", 2, 1, 1),
        ("new", 1, 0, 0),
        ("pear", 0, 2, 0),
    ]
    apple, sky, new, pear = labels
    assert apple.confusions == (("pear", 1),)
    assert sky.confusions == ()  # the document is right with its first label
    assert new.confusions == (("pear", 1),)
    assert (apple.precision, apple.recall) == (1.0, pytest.approx(2 / 3))
    assert apple.f1 == pytest.approx(0.8)
    assert (pear.recall, pear.f1) == (0.0, 0.0)
    # With two ranks, the document about apple and sky has a wrong label in second place.
    assert result.by_label(k=2)[1].confusions == (("pear", 1),)


def test_labels_agree_with_scikit_learn():
    rng = np.random.default_rng(0)
    Y = (rng.random((50, 6)) < 0.4).astype(int)
    S = rng.random((50, 6)) + 0.1
    chosen = np.zeros_like(Y)
    np.put_along_axis(chosen, np.argsort(-S, axis=1)[:, :2], 1, axis=1)
    expected = precision_recall_fscore_support(Y, chosen, zero_division=0)
    result = metrics.evaluate(Y, S, k=2)
    for one in result.by_label(2):
        label = int(one.label)
        own = (one.precision, one.recall, one.f1, one.support)
        assert own == pytest.approx([part[label] for part in expected])
    samples = f1_score(Y, chosen, average="samples", zero_division=0)
    assert result["doc_f1@2"] == pytest.approx(samples)


def test_the_table_of_labels_prints_and_finds_the_worst(result):
    labels = result.by_label(k=1)
    header, _, apple, *_ = str(labels).splitlines()
    assert " ".join(header.split()) == "label training support predicted P R F1 predicted instead"
    assert apple.split() == ["apple", "3", "3", "2", "100.0", "66.7", "80.0", "pear", "(1)"]
    assert [one.label for one in labels.worst(2, least=1)] == ["new", "sky"]
    assert "pear (1)" in labels._repr_html_()
    many = metrics.evaluate(sp.eye(30, format="csr"), sp.eye(30, format="csr"), 1).by_label()
    assert str(many).endswith("\n... 10 more labels")


@pytest.fixture(scope="module")
def model():
    texts = ["red apple", "green pear", "blue sky tonight"] * 4
    labels = [["red", "fruit"], ["green", "fruit"], ["blue"]] * 4
    return treetop.XRLinear(ngrams="word:1").fit(texts, labels)


def test_the_worst_documents_come_first_with_the_reason(model):
    texts = ["a red apple", "blue sky", "red apple", ""]
    result = model.evaluate(texts, [["red", "fruit"], ["green"], ["blue"], ["red"]], k=2)
    worst = result.worst_documents(3, k=1)
    assert [one.ndcg for one in worst] == [0, 0, 0]
    assert {one.document for one in worst} == {1, 2, 3}
    assert worst[-1].predicted == []  # without a prediction: nothing was wrongly believed
    sky = next(one for one in worst if one.document == 1)
    assert sky.wrong == "blue"
    assert {word.name for word in sky.explanation.words} == {"blue", "sky"}
    assert "blue because of: " in str(worst)
    assert result.worst_documents(1, explain=False)[0].explanation is None


def test_results_by_length_are_the_metrics_of_the_groups(model):
    texts = ["red apple", "red"] + ["a blue sky with many more words"] * 3
    labels = [["red"], ["fruit"], *[["blue"]] * 3]
    by_length = model.evaluate(texts, labels, k=2).by_length()
    assert list(by_length) == ["1 words", "2 words", "7 words"]
    assert by_length["7 words"]["documents"] == 3
    for group, rows in (("2 words", [0]), ("7 words", [2, 3, 4])):
        part = model.evaluate([texts[r] for r in rows], [labels[r] for r in rows], k=(1, 2))
        for key in ("P@1", "nDCG@2", "doc_f1@2"):
            assert by_length[group][key] == pytest.approx(part[key])
    assert "7 words" in str(by_length)
    japanese = ["赤いりんごはとてもおいしいですよね、そうおもいませんか"] * 2
    assert list(model.evaluate(japanese, [["red"]] * 2).by_length()) == ["27 characters"]


def test_matrices_streams_and_columns_are_documents_too(model, rng):
    X = sp.random(20, 30, 0.3, "csr", random_state=0)
    own = treetop.XRLinear().fit(X, [["a"], ["b"]] * 10)
    result = own.evaluate(X, [["a"], ["b"]] * 10)
    assert all(group.endswith(" features") for group in result.by_length())
    assert result.worst_documents(1)[0].text == ""
    assert result.worst_documents(1)[0].explanation is not None
    dense = own.evaluate(X.toarray(), [["a"], ["b"]] * 10)
    assert dense.by_length() == result.by_length()
    stream = model.evaluate((text for text in ["red", "blue"]), [["red"], ["blue"]])
    with pytest.raises(treetop.TreetopError, match="the result does not know the documents"):
        stream.by_length()
    array = model.evaluate(np.array(["red", "blue"]), [["red"], ["blue"]])
    assert list(array.by_length()) == ["1 words"]


def test_precision_and_recall_over_thresholds(result):
    curve = precision_recall(result.details.context)
    # 0.9 (two documents, both right), 0.8 wrong, 0.7 right, …
    assert curve.thresholds[:3].tolist() == [0.9, 0.8, 0.7]
    assert curve.precision[:3] == pytest.approx([1, 2 / 3, 3 / 4])
    assert curve.recall[:3] == pytest.approx([2 / 6, 2 / 6, 3 / 6])
    assert curve.f1[0] == pytest.approx(0.5)


def test_long_curves_are_thinned():
    rng = np.random.default_rng(0)
    curve = precision_recall(
        metrics.evaluate(rng.random((100, 20)) < 0.3, rng.random((100, 20)), 5).details.context
    )
    assert 100 < curve.recall.size <= 200
    assert (np.diff(curve.recall) > 0).all()
    assert curve.recall[-1] == 1.0


def test_reliability_bins_have_equal_sizes():
    bins = reliability(np.array([0.1, 0.9, 0.2, 0.8]), np.array([False, True, False, False]), 2)
    assert bins.predicted == pytest.approx([0.15, 0.85])
    assert bins.observed == pytest.approx([0, 0.5])
    assert bins.sizes.tolist() == [2, 2]
    assert bins.error == pytest.approx((0.15 + 0.35) / 2)
    assert reliability(np.zeros(0), np.zeros(0, bool)).error == 0


def test_plots_need_only_the_result(model):
    pytest.importorskip("matplotlib")
    texts, labels = ["red apple", "blue sky"] * 3, [["red"], ["blue"]] * 3
    figure = model.evaluate(texts, labels).plot()
    assert len(figure.axes) == 4
    assert (
        len(metrics.evaluate(labels, model.predict_scores(texts), classes=model.classes_).plot().axes)
        == 3
    )
    assert "matplotlib" in EXTRAS["report"]
