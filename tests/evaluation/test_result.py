"""Results of an evaluation: a dict that prints as tables."""

import json
import pickle

import numpy as np
import pytest

import treetop
from treetop.evaluation.evaluating import known_labels

SCORES = [[0.9, 0.1, 0.3], [0.2, 0.8, 0.6]]
PRINTED = """\
2 documents, 3 labels, metrics in percent at k = 1, 2; propensities with A = 0.55, B = 1.5

              @1      @2
--------  ------  ------
P         100.00   50.00
R         100.00  100.00
RP        100.00  100.00
nDCG      100.00  100.00
PSP       100.00  100.00
PSnDCG    100.00  100.00
micro_f1  100.00   66.67
macro_f1  100.00   66.67
doc_f1    100.00   66.67
coverage          100.00

by number of training documents per label:

training documents  labels  occurrences  recall  precision      F1
------------------  ------  -----------  ------  ---------  ------
1                        2            2  100.00     100.00  100.00"""
INTERVALS = """

95% intervals, by the bootstrap over documents:

metric   value     low    high
------  ------  ------  ------
P@1     100.00  100.00  100.00"""


@pytest.fixture
def result():
    return treetop.metrics.evaluate([["a"], ["b"]], SCORES, k=(1, 2), classes=["a", "b", "c"])


def test_it_prints_as_aligned_tables(result):
    assert str(result) == repr(result) == PRINTED + INTERVALS


def test_it_is_a_dict(result):
    assert result["P@2"] == 0.5
    assert json.loads(json.dumps(result)) == dict(result)
    copied = pickle.loads(pickle.dumps(result))
    assert copied == result
    assert str(copied) == PRINTED
    assert repr(treetop.metrics.Evaluation(a=1)) == "{'a': 1}"


def test_metrics_above_a_threshold_have_rows_of_their_own():
    result = treetop.metrics.evaluate(
        [["a"], ["b"]], SCORES, k=(1, 2), classes=["a", "b", "c"], threshold=0.7
    )
    assert "\nmicro_f1>=0.7          100.00\n" in str(result)


def test_notebooks_show_tables(result):
    html = result._repr_html_()
    assert html.count("<table>") == 3
    assert '<td dir="auto" style="text-align:left">nDCG</td>' in html


def test_one_k_may_be_given_as_a_number():
    for k in (2, np.int64(2)):
        result = treetop.metrics.evaluate([["a"], ["b"]], SCORES, k, classes=["a", "b", "c"])
        assert [key for key in result if key.startswith("P@")] == ["P@2"]


@pytest.mark.parametrize("k", [0, (), (1, 0), -1])
def test_k_must_be_at_least_1(k):
    with pytest.raises(
        treetop.TreetopError, match=r"k is .*: give one or several numbers of at least 1"
    ):
        treetop.metrics.evaluate([["a"]], [[1.0]], k, classes=["a"])


def test_there_must_be_documents():
    model = treetop.XRLinear().fit(["red", "blue"] * 4, [["a"], ["b"]] * 4)
    message = "there are no documents to evaluate: give at least one with its labels"
    for call in (
        lambda: model.evaluate([], []),
        lambda: model.score([], []),
        lambda: treetop.scorer("P@1")(model, [], []),
        lambda: treetop.metrics.evaluate([], model.predict_scores([]), classes=model.classes_),
    ):
        with pytest.raises(treetop.TreetopError) as error:
            call()
        assert str(error.value) == message


def test_frequencies_of_an_imported_model_are_counted_in_the_test_set():
    model = treetop.XRLinear().fit(["red", "blue"] * 4, [["a"], ["b"]] * 4)
    assert known_labels(model)["train_documents"] == 8
    assert known_labels(model)["train_counts"].tolist() == [4, 4]

    class Imported:
        classes_, train_counts_, train_documents_ = model.classes_, model.train_counts_ * 0, 0

        @staticmethod
        def predict_scores(X, k):
            return model.predict_scores(X, k)

    assert list(known_labels(Imported())) == ["classes"]
    texts, labels = ["red", "blue", "blue"], [["a"], ["b"], ["a"]]
    expected = treetop.metrics.evaluate(
        labels, model.predict_scores(texts, 1), 1, classes=model.classes_
    )["PSP@1"]
    assert treetop.scorer("PSP@1")(Imported(), texts, labels) == expected
