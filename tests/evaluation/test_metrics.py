"""Metrics on hand-computed examples and against slow reference implementations."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, ndcg_score
from sklearn.preprocessing import MultiLabelBinarizer

import treetop
from treetop import metrics
from treetop.cli import screen
from treetop.cli.evaluate import evaluate_model
from treetop.cli.model_options import EvaluateOptions
from treetop.errors import TreetopError
from treetop.evaluation import metrics as registry

TRUE = sp.csr_matrix(np.array([[1, 1, 0, 0, 0], [0, 0, 1, 0, 1], [0, 0, 0, 0, 0]]))
SCORES = sp.csr_matrix(np.array([[0.9, 0.1, 0.5, 0, 0], [0.2, 0.8, 0.4, 0, 0], [0.3, 0, 0, 0, 0]]))


def test_metrics_on_a_hand_computed_example():
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


def test_labels_without_a_column_count_as_missed():
    known = metrics.evaluate(TRUE[:, :4], SCORES[:, :4], k=(3,))
    names = {"classes": "abcd", "columns": "abcde"}
    with_unseen = metrics.evaluate(TRUE, SCORES[:, :4], k=(3,), **names)
    assert with_unseen["R@3"] < known["R@3"]
    assert with_unseen["by_frequency"]["1"]["occurrences"] == 4
    counts = np.array([5, 5, 5, 5])
    buckets = metrics.evaluate(TRUE, SCORES[:, :4], (1,), train_counts=counts, **names)
    assert buckets["by_frequency"]["0"] == {
        "labels": 1,
        "occurrences": 1,
        "recall": 0.0,
        "precision": 0.0,
        "f1": 0.0,
    }


def test_propensity_follows_the_formula_of_the_paper():
    inverse = metrics.inverse_propensity(np.array([10.0]), 1000, 0.55, 1.5)
    C = (np.log(1000) - 1) * 2.5**0.55
    assert inverse[0] == pytest.approx(1 + C * 11.5**-0.55)
    assert metrics.PROPENSITIES["wikipedia"] == (0.5, 0.4)
    assert metrics.PROPENSITIES["amazon"] == (0.6, 2.6)


@pytest.mark.parametrize(
    ("name", "constants"),
    [
        ("amazon-670k", (0.6, 2.6)),
        ("Amazon-3M", (0.6, 2.6)),
        ("amazon-3m-pecos", (0.6, 2.6)),
        ("wiki-500k", (0.5, 0.4)),
        ("LF-Wikipedia-500K", (0.5, 0.4)),
        ("wiki10-31k", (0.55, 1.5)),
        ("amazoncat-13k", (0.55, 1.5)),
        ((0.1, 2), (0.1, 2.0)),
    ],
)
def test_constants_are_those_of_the_data_set(name, constants):
    assert metrics.propensity_constants(name) == constants
    result = metrics.evaluate(TRUE, SCORES, 1, propensity=name)
    assert result["propensity"] == dict(zip("AB", constants, strict=True))
    assert f"k = 1; propensities with A = {constants[0]:g}, B = {constants[1]:g}\n" in str(result)


@pytest.mark.parametrize("constants", [(0.5,), (1, 2, 3), (0.5, -1), (np.nan, 1), 3, None])
def test_constants_that_are_no_two_numbers_are_errors(constants):
    with pytest.raises(TreetopError, match=r"propensity is .*: give a name, or the numbers"):
        metrics.evaluate(TRUE, SCORES, 1, propensity=constants)


def test_raw_psp_is_the_formula_of_the_paper():
    """PSP@k = 1/k Σ y/p, the mean over documents: two documents, one hit each, at different ranks."""
    Y = sp.csr_matrix([[1.0, 0, 1], [0, 1, 0]])
    scores = [[0.9, 0.5, 0.1], [0.8, 0.7, 0.2]]
    counts = np.array([1, 100, 7])
    inverse = metrics.inverse_propensity(counts, 1000, 0.55, 1.5)
    known = {"train_counts": counts, "train_documents": 1000}
    result = metrics.evaluate(Y, scores, (1, 2), also=["PSP_raw"], **known)
    assert result["PSP_raw@1"] == pytest.approx(inverse[0] / 2)
    assert result["PSP_raw@2"] == pytest.approx((inverse[0] + inverse[1]) / 2 / 2)
    best = inverse[0] + inverse[1]  # the best ranking at 1: of the labels 0 and 2, the rarer one
    assert result["PSP@1"] == pytest.approx(inverse[0] / best)
    assert "PSP_raw" in str(result)
    assert "PSP_raw@1" not in metrics.evaluate(Y, scores, (1, 2), **known)
    with pytest.raises(TreetopError, match="unknown metric 'PSPP': also takes PSP_raw"):
        metrics.evaluate(Y, scores, 1, also=["PSPP"])


def test_perfect_predictions_score_one():
    Y = sp.random(30, 12, 0.3, "csr", random_state=0)
    Y.data[:] = 1
    result = metrics.evaluate(Y, Y, k=(1, 3, 12))
    filled = (np.diff(Y.indptr) > 0).mean()
    for name in ("nDCG@3", "PSP@12", "RP@3", "R@12", "coverage@12"):
        assert result[name] == pytest.approx(1.0), name
    assert result["P@1"] == pytest.approx(filled)


@given(st.integers(0, 10_000), st.integers(1, 6))
def test_against_reference_implementations(seed, k):
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


# Columns by name: the model knows c, a, b; z occurs in the test set only.
CLASSES = ["c", "a", "b"]
LISTS = [["a"], ["c", "b"], ["z"], []]
NAMED_SCORES = sp.csr_matrix(np.array([[0, 0.9, 0.1], [0.8, 0, 0.2], [0.3, 0.2, 0.1], [0.5, 0, 0]]))


def test_columns_of_a_matrix_are_matched_by_name():
    Y = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]])  # the columns of a MultiLabelBinarizer: a, b, c
    scores = Y[:, [2, 0, 1]]  # a perfect model, in the order of its own classes
    assert metrics.evaluate(Y, scores, (1,))["P@1"] == 0.0  # taken as being in the scores' order
    named = metrics.evaluate(Y, scores, (1,), classes=CLASSES, columns=["a", "b", "c"])
    assert named["P@1"] == 1.0
    assert named["labels"] == 3


def test_lists_of_names_need_only_classes():
    result = metrics.evaluate(LISTS, NAMED_SCORES, (1, 2), classes=CLASSES)
    assert result["P@1"] == 2 / 4
    assert result["R@2"] == (1 + 1 + 0) / 3  # z is missed
    assert result["labels"] == 4
    assert result["documents_without_labels"] == 1
    assert result["by_frequency"]["1"]["occurrences"] == 4


@given(st.integers(0, 10_000))
def test_matching_by_name_against_a_reference_implementation(seed):
    rng = np.random.default_rng(seed)
    everything = [f"label {n}" for n in range(7)]
    classes = rng.permutation(everything)[:5]
    lists = [rng.choice(everything, rng.integers(0, 4), replace=False).tolist() for _ in range(9)]
    scores = rng.permutation(9 * 5).reshape(9, 5) + 1.0
    hits = 0
    for line, row in zip(lists, scores, strict=True):
        ranked = sorted(zip(row, classes, strict=True), reverse=True)
        hits += sum(name in line for _, name in ranked[:2])
    by_lists = metrics.evaluate(lists, scores, (2,), classes=classes)
    assert by_lists["P@2"] == pytest.approx(hits / 9 / 2)
    binarizer = MultiLabelBinarizer(classes=rng.permutation(everything), sparse_output=bool(seed % 2))
    Y = binarizer.fit_transform(lists)
    by_matrix = metrics.evaluate(Y, scores, (2,), classes=classes, columns=binarizer.classes_)
    assert by_matrix == by_lists


def test_label_names_may_be_numbers():
    scores = np.array([[0.9, 0.1], [0.2, 0.8]])
    for y_true in ([[7], [3]], [["7"], np.array([3])], np.array([7, 3]), np.array(["7", "3"])):
        assert metrics.evaluate(y_true, scores, (1,), classes=np.array([7, 3]))["P@1"] == 1.0


def test_arguments_are_not_changed():
    Y = sp.csr_matrix(([2.0, 3.0, 0.0], ([0, 0, 1], [0, 1, 1])))
    before = Y.copy()
    metrics.evaluate(Y, Y, (1,), classes=["a", "b"], columns=["b", "a"])
    np.testing.assert_array_equal(Y.data, before.data)
    np.testing.assert_array_equal(Y.indices, before.indices)


@pytest.mark.parametrize(
    ("true", "scores", "names", "message"),
    [
        (np.eye(2), np.eye(3)[:, :2], {}, "2 documents have labels, 3 have scores"),
        (np.ones((2, 2)), np.ones((2, 3)), {}, "y_true: 2 columns, expected 3: give lists of label"),
        (np.ones((2, 4)), np.ones((2, 3)), {}, r"y_true: 4 columns, expected 3: .* \(columns= and cl"),
        (np.ones((2, 4)), np.ones((2, 3)), {"classes": "abc"}, "y_true: 4 columns, expected 3"),
        ([["a"]], np.ones((1, 2)), {}, "names of the scores' columns as classes=model.classes_"),
        (np.array(["a"]), np.ones((1, 2)), {}, "give the names .* as classes="),
        ([["a"]], np.ones((1, 2)), {"classes": "abc"}, "classes= has 3 names, but the scores have 2"),
        ([["a"]], np.ones((1, 2)), {"classes": "aa"}, "differ from each other: 'a' occurs twice"),
        ([["a"]], np.ones((1, 1)), {"classes": "a", "columns": "a"}, "columns= applies to a matrix"),
        (np.eye(2), np.eye(2), {"columns": "ab"}, "give classes=model.classes_"),
        (np.eye(2), np.eye(2), {"columns": "a", "classes": "ab"}, "columns= has 1 names"),
        (np.eye(2), np.eye(2), {"columns": "aa", "classes": "ab"}, "'a' occurs twice"),
        ([["a"], "ab"], np.ones((2, 2)), {"classes": "ab"}, "of document 1 are the string 'ab'"),
        ([["a"], 3], np.ones((2, 2)), {"classes": "ab"}, "labels of document 1 are 3: give a list"),
        ([[None]], np.ones((1, 2)), {"classes": "ab"}, "label None is of type NoneType"),
        (np.eye(2), np.eye(2), {"train_counts": np.ones(3)}, "train_counts has 3 labels"),
        (np.eye(2), np.eye(2), {"propensity": "x"}, "unknown propensity preset 'x'"),
        (np.ones((1, 1)), np.array([[np.nan]]), {}, "NaN"),
        ([["a"]], [[("a", 0.5)]], {"classes": "a"}, r"not a matrix .* give model.predict_scores\(X\)"),
        ([["a"]], [["a"]], {"classes": "a"}, "scores are not a matrix with a row per document"),
        ([["a"]], [["a", "b"], []], {"classes": "a"}, "scores are not a matrix"),
        (np.ones((1, 1)), None, {}, "scores are not a matrix"),
    ],
)
def test_errors(true, scores, names, message):
    with pytest.raises(TreetopError, match=message) as raised:
        metrics.evaluate(true, scores, **names)
    assert "\n" not in str(raised.value)


@pytest.fixture
def new_metric():
    """A custom metric: the mean number of true labels among the first k."""

    @metrics.register("hits", heading="true labels", percent=False, compared_at=(1,))
    def hits(context):
        return context.hits.sum(axis=1).mean()

    yield "hits"
    del metrics.METRICS["hits"]


@pytest.fixture
def model():
    texts = ["red apple", "green pear", "blue sky"] * 4
    return treetop.XRLinear().fit(texts, [["red", "fruit"], ["green", "fruit"], ["blue"]] * 4)


def test_a_registered_metric_appears_everywhere(new_metric, model, tmp_path, capsys):
    texts, labels = ["red apple", "blue sky"], [["red", "fruit"], ["blue"]]
    scores = model.predict_scores(texts, 3)
    result = metrics.evaluate(labels, scores, (1, 3), classes=model.classes_)
    assert (result["hits@1"], result["hits@3"]) == (1.0, 1.5)
    assert treetop.scorer("hits@3")(model, texts, labels) == 1.5

    (tmp_path / "test.txt").write_text("red apple\nblue sky\n")
    (tmp_path / "test.labels").write_text("red\tfruit\nblue\n")
    model.save(tmp_path / "model")
    evaluate_model(EvaluateOptions(tmp_path / "model", tmp_path, keep=True, allow_training_data=True))
    table = capsys.readouterr().out
    assert re.search(r"^true labels +1\.00 +1\.50 +1\.50 +1\.50$", table, re.MULTILINE)
    assert "| hits@3 | 1.50 |" in (tmp_path / "model" / "README.md").read_text("utf-8")
    assert ["hits@1", "1.00"] in screen.comparison_rows([result])


def test_scorers_negate_metrics_to_be_minimized(model, monkeypatch):
    monkeypatch.setattr(registry, "METRICS", registry.METRICS.copy())

    @metrics.register("misses", greater_is_better=False, every_k=False)
    def misses(context):
        return (~context.hits).sum()

    assert treetop.scorer("misses@2")(model, ["blue sky"], [["blue"]]) == -1.0
    scores = model.predict_scores(["blue sky"])
    result = metrics.evaluate([["blue"]], scores, (1, 2), classes=model.classes_)
    assert result["misses@2"] == 1.0
    assert "misses@1" not in result


@pytest.mark.parametrize("name", ["P", "", "a@b"])
def test_invalid_metric_names_are_errors(name):
    with pytest.raises(TreetopError, match=f"metric name '{name}'"):
        metrics.register(name)


def test_the_model_card_shows_only_metrics():
    result = {**metrics.evaluate(TRUE, SCORES, (1,), threshold=0.5), "seconds": 3.5}
    figures = metrics.figures(result)
    assert figures["P@1"] == "33.33"
    assert figures["micro_f1>=0.5"] == f"{100 * result['micro_f1>=0.5']:.2f}"
    assert not {"seconds", "documents", "by_frequency"} & set(figures)
