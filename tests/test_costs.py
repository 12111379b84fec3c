import numpy as np
import pytest
import scipy.sparse as sp

import treetop
from treetop.settings.costs import with_costs
from treetop.settings.schema import LinearSettings


def labels(counts):
    """Y of documents with so many labels."""
    return sp.csr_matrix(np.arange(max(counts))[None, :] < np.array(counts)[:, None], dtype=np.float32)


def decided(counts, weights=None, **changes):
    made = with_costs(LinearSettings(**changes), labels(counts), weights)
    return made.cost_sensitive, made.lambda_, made.alpha


def test_lambda_falls_with_the_labels_a_document_has():
    assert decided([1, 1, 1]) == (True, 0.35, 0.3)
    assert decided([3, 2, 4]) == (True, pytest.approx(0.35 / 3), 0.3)
    assert decided([3, 2, 4, 0, 0]) == decided([3, 2, 4])
    assert decided([3, 2, 4], cost_sensitive=False) == (False, 0.35, 1.0)


def test_where_few_documents_hold_most_labels_every_positive_weighs_the_same():
    assert decided([1] * 90 + [40] * 2) == (False, 0.35, 1.0)
    assert decided([1] * 90 + [40] * 2, cost_sensitive=True)[0]
    assert decided([1, 2, 8, 3])[0]


def test_what_is_given_stays():
    assert decided([3, 2, 4], lambda_=2.0, alpha=0.5) == (True, 2.0, 0.5)


def test_a_document_counts_as_often_as_it_weighs():
    assert decided([1, 5], np.array([2.0, 1.0])) == decided([1, 1, 5])
    assert decided([1, 5], np.array([1.0, 0.0])) == decided([1])
    assert decided([2, 2], np.array([0.0, 0.0]))[0]


def test_a_linear_models_documents_of_no_weight_are_as_if_absent(rng):
    X = sp.csr_matrix(rng.random((6, 8)).astype(np.float32))
    Y = labels([1, 2, 1, 1, 5, 5])
    names = list("abcde")
    weighed = treetop.XRLinear().fit(X, Y, label_names=names, sample_weight=[1, 1, 1, 1, 0, 0])
    absent = treetop.XRLinear().fit(X[:4], Y[:4], label_names=names)
    assert weighed.settings_.lambda_ == absent.settings_.lambda_ == pytest.approx(0.35 / 1.25)
    assert weighed.get_params()["lambda_"] is None
    assert (weighed.predict_scores(X, 5) != absent.predict_scores(X, 5)).nnz == 0
