"""Packed rankers equal the original up to rounding."""

import numpy as np
import pytest

import treetop
from tests.tiny import word_corpus
from treetop.ranking.packing import cells_of, pack, unpack, weights_from


@pytest.fixture(scope="module")
def corpus():
    return word_corpus()


@pytest.fixture(scope="module")
def model(corpus):
    return treetop.XRLinear(tree="4-20-L", trees=2, threads=2).fit(*corpus)


def widths_of(model):
    return model.model_.feature_map.widths


def test_weights_survive_conversion_to_cells_and_back(model):
    for ranker in model.rankers_:
        weights = ranker.weights
        cells = cells_of(weights)
        assert (np.diff(cells.cluster) >= 0).all()
        again = weights_from(cells, weights, ranker.tree, weights.features, 2)
        for name, values in weights.arrays.items():
            np.testing.assert_array_equal(getattr(again, name), values, err_msg=name)


@pytest.mark.parametrize(("storage", "error"), [("float16", 1e-3), ("int8", 1 / 200)])
def test_packing_changes_weights_only_by_rounding(model, storage, error):
    ranker = model.rankers_[0]
    packed = pack(ranker.weights, storage)
    again = cells_of(unpack(packed, ranker.tree, widths_of(model), storage, 2))
    cells = cells_of(ranker.weights)
    if storage == "float16":
        np.testing.assert_array_equal(again.feature, cells.feature)
        np.testing.assert_allclose(again.value, cells.value, rtol=error)
    largest = np.abs(cells.value).max()
    dense = np.zeros((2, int(cells.cluster.max()) + 1, int(cells.feature.max()) + 1, 64))
    for at, one in enumerate((cells, again)):
        dense[at, one.cluster, one.feature, one.child] = one.value
    assert np.abs(dense[0] - dense[1]).max() <= error * largest
