"""treetop in scikit-learn: pipelines, searches, cross-validation, scorers."""

import numpy as np
import pytest
import scipy.sparse as sp
from joblib.externals.loky import get_reusable_executor
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MultiLabelBinarizer

import treetop
from treetop.errors import TreetopError

WORDS = ["red", "green", "blue", "apple", "grass", "sky"]


@pytest.fixture
def two_jobs():
    """A value for n_jobs; joblib's processes end with the test."""
    yield 2
    get_reusable_executor().shutdown(wait=True)


@pytest.fixture(scope="module")
def corpus():
    rng = np.random.default_rng(0)
    rows = [sorted(rng.choice(len(WORDS), 2, replace=False)) for _ in range(120)]
    texts = [" ".join(WORDS[n] for n in row) + " and more" for row in rows]
    return texts, [[WORDS[n] for n in row] for row in rows]


def test_grid_search_with_sparse_labels(corpus, two_jobs):
    texts, labels = corpus
    binarizer = MultiLabelBinarizer(sparse_output=True)
    Y = binarizer.fit_transform(labels)
    search = GridSearchCV(
        treetop.XRLinear(),
        {"lambda_": [0.01, 10.0]},
        scoring=treetop.scorer("P@2"),
        cv=3,
        n_jobs=two_jobs,
    )
    search.fit(texts, Y)
    assert search.best_score_ == 1.0
    assert search.predict(texts[:2]) == search.best_estimator_.predict(texts[:2])
    scores = search.best_estimator_.predict_scores(texts, 2)
    assert (scores.astype(bool) != Y.astype(bool)).nnz == 0


def test_cross_validation_with_lists_of_names(corpus):
    texts, labels = corpus
    # lists of names of different lengths are an array of objects for scikit-learn
    y = np.empty(len(labels), object)
    y[:] = labels
    scores = cross_val_score(
        treetop.XRLinear(), texts, y, scoring=treetop.scorer("nDCG@2"), cv=KFold(3)
    )
    np.testing.assert_allclose(scores, [1.0, 1.0, 1.0])


@pytest.mark.parametrize("measure", [f"{name}@2" for name in treetop.metrics.METRICS])
def test_scorers_compute_the_metrics(corpus, measure):
    texts, labels = corpus
    model = treetop.XRLinear().fit(texts[:80], labels[:80])
    scores = model.predict_scores(texts[80:], int(measure[-1]))
    Y = sp.csr_matrix([[float(name in line) for name in model.classes_] for line in labels[80:]])
    counts = {"train_counts": model.train_counts_, "train_documents": model.train_documents_}
    also = ["PSP_raw"] if measure.startswith("PSP_raw") else []
    expected = treetop.metrics.evaluate(Y, scores, int(measure[-1]), also=also, **counts)[measure]
    assert treetop.scorer(measure)(model, texts[80:], labels[80:]) == pytest.approx(expected)


def test_scorers_match_labels_by_name(corpus):
    texts, labels = corpus
    model = treetop.XRLinear().fit(texts[:80], labels[:80])
    unseen = [[*line, "unseen"] for line in labels[80:]]
    assert treetop.scorer("R@2")(model, texts[80:], unseen) == pytest.approx(2 / 3)
    Y = MultiLabelBinarizer().fit_transform(unseen)
    with pytest.raises(TreetopError, match="y_true: 7 columns, expected 6: give lists of label names"):
        treetop.scorer("R@2")(model, texts[80:], Y)
    with pytest.raises(TreetopError, match="y_true: 7 columns, expected 6: give lists of label names"):
        model.score(texts[80:], Y)


def test_pipelines(corpus):
    texts, labels = corpus
    lower = FunctionTransformer(lambda texts: [text.upper() for text in texts])
    model = Pipeline([("upper", lower), ("tag", treetop.XRLinear())]).set_output(transform="default")
    model.fit(texts, labels)
    assert {name for name, _ in model.predict(texts[:1])[0][:2]} == set(labels[0])
    assert treetop.scorer("P@2")(model, texts, labels) == 1.0
    own = make_pipeline(TfidfVectorizer(), treetop.XRLinear())
    own.fit(texts, labels)
    assert treetop.scorer("P@2")(own, texts, labels) == 1.0
    changed = clone(model).set_params(tag__beam=3)
    assert changed.get_params()["tag__beam"] == 3


def test_unknown_metrics_and_propensities_are_errors():
    with pytest.raises(TreetopError, match=r"unknown metric 'F@1': choose one of P@k"):
        treetop.scorer("F@1")
    with pytest.raises(TreetopError, match="unknown propensity preset 'x'"):
        treetop.scorer("PSP@1", "x")
    assert repr(treetop.scorer("P@1")) == "scorer('P@1')"
