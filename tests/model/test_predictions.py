"""Predictions are lists of plain Python values that print readably."""

import json
import pickle

import numpy as np
import pytest

import treetop
from treetop.model.predictions import Prediction, Predictions

TEXTS = ["red apple", "green pear", "blue sky"] * 4
LABELS = [["red", "fruit"], ["green", "fruit"], ["blue"]] * 4


@pytest.fixture(scope="module")
def predictions():
    return treetop.XRLinear().fit(TEXTS, LABELS).predict(["blue sky", "red apple"], k=2)


def test_a_model_prints_its_sizes_instead_of_its_arrays():
    model = treetop.XRLinear(trees=1).fit(TEXTS, LABELS).model_
    assert repr(model).startswith("<Model xr-linear: 4 labels, 12 training documents, trees 4")
    assert repr(model.rankers[0]) == "<Ranker: tree 4>"


def test_predictions_are_lists(predictions):
    plain = [[(name, score) for name, score in row] for row in predictions]
    assert predictions == plain
    assert isinstance(predictions, list)
    assert json.loads(json.dumps(predictions)) == [[list(pair) for pair in row] for row in plain]
    for copied in (pickle.loads(pickle.dumps(predictions)), predictions[:]):
        assert copied == predictions
        assert type(copied) is Predictions
        assert type(copied[0]) is Prediction


def test_predictions_print_one_document_per_line():
    predictions = Predictions(
        [Prediction([("web", 0.912345), ("l'eau", 0.5)]), Prediction([(7, 1.0)]), Prediction()]
    )
    assert repr(predictions) == ("[[('web', 0.9123), (\"l'eau\", 0.5000)],\n [(7, 1.0000)],\n []]")
    assert str(predictions[0]) == "[('web', 0.9123), (\"l'eau\", 0.5000)]"
    assert repr(Predictions()) == "[]"
    assert repr(Predictions([Prediction()] * 1020)).endswith("[],\n ... 1,000 more documents]")


def test_notebooks_show_predictions_as_tables():
    predictions = Predictions([Prediction([("<b>", 0.912345)]), Prediction()])
    html = predictions._repr_html_()
    assert "&lt;b&gt; (0.91)" in html
    assert "<b>" not in html
    assert html.count("<tr>") == 3
    assert "0.9123" in predictions[0]._repr_html_()
    assert "… and 5 more documents" in Predictions([Prediction()] * 25)._repr_html_()


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (np.array([7, 3] * 6), 7),
        (np.array([0.5, 2.0] * 6), 0.5),
        (np.array([True, False] * 6), True),
        (np.array(["web", "map"] * 6), "web"),
        (np.array(["web", "map"] * 6, dtype=object), "web"),
        ([["web"], ["map"]] * 6, "web"),
    ],
)
def test_label_names_keep_their_type(labels, expected, tmp_path):
    model = treetop.XRLinear().fit(["red apple", "blue sky"] * 6, labels)
    model.save(tmp_path / "m")
    for estimator in (model, treetop.load(tmp_path / "m")):
        name, score = estimator.predict(["red apple"], k=1)[0][0]
        assert name == expected
        assert type(name) is type(expected)
        assert type(score) is float
        assert estimator.score(["red apple", "blue sky"] * 6, labels) == 1.0
        label = estimator.explain("red apple", name).label
        assert (label, type(label)) == (expected, type(expected))
        assert estimator.predict(["blue sky"], allow=[name])[0][0][0] == expected


def test_labels_of_another_type_are_an_error_of_one_line(tmp_path):
    folder = tmp_path / "m"
    treetop.XRLinear().fit(["red apple", "blue sky"] * 6, np.array([7, 3] * 6)).save(folder)
    labels = folder / "labels.txt"
    labels.write_text(labels.read_text().replace("7", "x"))
    with pytest.raises(treetop.TreetopError, match="checksum differs"):
        treetop.load(folder)
    with pytest.raises(
        treetop.TreetopError, match=r"labels.txt: holds a label that is not of type int"
    ):
        treetop.load(folder, verify=False)
