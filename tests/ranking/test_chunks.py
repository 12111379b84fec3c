"""Chunks of weights, laid out for beam search, compared with a matrix."""

import itertools
import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treetop
from tests.ranking.test_beam import model as ranker_of
from tests.slow_weights import slow_matrix, slow_weights
from tests.tiny import same, word_corpus
from treetop.errors import TreetopError
from treetop.labels.tree import Tree
from treetop.ranking import chunks as module
from treetop.ranking.checking import check_marks
from treetop.ranking.chunks import Chunks
from treetop.ranking.packing import cells_of
from treetop.ranking.weights import ClusterWeights, weight_form
from treetop.runtime import spool
from treetop.runtime.failpoints import VARIABLE

FEATURES = 23
FORMS = list(itertools.product((1, 2), (1, 2)))


def bfloat16(value):
    """The nearest number of which a float32 has only the upper half, ties to even."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    down, up = (
        struct.unpack("<f", struct.pack("<I", (bits >> 16 << 16) + step))[0] for step in (0, 1 << 16)
    )
    if not np.isfinite(up):
        return down
    below, above = abs(value - down), abs(up - value)
    return down if below < above or (below == above and bits >> 16 & 1 == 0) else up


def random_clusters(rng, sizes, density, dense_columns=0):
    """Clusters with features in any order, as the solver returns them, and their matrices."""
    clusters, matrices = [], []
    for size in sizes:
        W = rng.normal(size=(FEATURES, size)).astype(np.float32)
        W[rng.random(W.shape) > density * rng.random((FEATURES, 1))] = 0
        used = rng.permutation(np.flatnonzero(W.any(1)))
        children = [np.flatnonzero(W[feature]) for feature in used]
        nothing = [np.zeros(0, np.int64)]
        clusters.append(
            ClusterWeights(
                features=used.astype(np.int32),
                ends=np.cumsum([own.size for own in children]).astype(np.int64),
                children=np.concatenate([*children, *nothing]).astype(np.int32),
                values=np.concatenate(
                    [W[f, own] for f, own in zip(used, children, strict=True)] + nothing
                ).astype(np.float32),
                dense=rng.normal(size=(dense_columns, size)).astype(np.float32),
                biases=rng.normal(size=size).astype(np.float32),
            )
        )
        matrices.append(np.vstack([W, clusters[-1].dense]))
    return clusters, np.hstack(matrices)


def tree_of(sizes):
    """A tree with these clusters, the first of which is the root's."""
    return Tree(
        (np.array([0, sizes[0]]), np.append(0, np.cumsum(sizes[1:]))), np.arange(sum(sizes[1:]))
    )


def laid_out(clusters, sizes, form, threads=2, order=None):
    chunks = Chunks(FEATURES, np.array(form))
    for number in range(len(sizes)) if order is None else order:
        chunks.add(int(number), clusters[number])
    return chunks.assembled(tree_of(sizes), threads)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(1, 40), min_size=1, max_size=4),
    st.sampled_from([0.02, 0.3, 1.0]),
    st.sampled_from(FORMS),
    st.sampled_from([0, 3]),
)
def test_chunks_are_laid_out_as_their_matrix(seed, below, density, form, dense_columns):
    rng, sizes = np.random.default_rng(seed), [len(below), *below]
    clusters, matrix = random_clusters(rng, sizes, density, dense_columns)
    weights = laid_out(clusters, sizes, form)
    check_marks(weights.arrays, 1)
    if form[1] == 1:
        matrix[:FEATURES] = np.vectorize(bfloat16, otypes=[np.float32])(matrix[:FEATURES])
    np.testing.assert_array_equal(slow_matrix(weights, dense_columns), matrix)
    np.testing.assert_array_equal(weights.biases, np.concatenate([c.biases for c in clusters]))
    cells = cells_of(weights, 3)
    found = sorted((c, f, k, v) for f, c, k, v in slow_weights(weights) if v != 0)
    assert list(zip(*(part.tolist() for part in cells), strict=True)) == found


@pytest.mark.parametrize("form", FORMS)
def test_neither_order_nor_threads_nor_files_change_the_layout(rng, form, monkeypatch):
    sizes = [30, *rng.integers(1, 50, 30).tolist()]
    clusters, _ = random_clusters(rng, sizes, 0.3, 2)
    once = laid_out(clusters, sizes, form, threads=1).arrays
    monkeypatch.setattr(module, "PART", 500)
    monkeypatch.setattr(spool, "IN_MEMORY", 100)
    monkeypatch.setattr(module, "IN_MEMORY", 100)
    again = laid_out(clusters, sizes, form, threads=3, order=rng.permutation(len(sizes))).arrays
    for name, values in once.items():
        np.testing.assert_array_equal(again[name], values, err_msg=name)
        assert not again[name].flags.writeable or name in ("starts", "form", "biases") or "ptr" in name


def test_a_single_weight_of_a_far_child_is_a_list(rng):
    """The number of the child would not fit beside its value."""
    size = 40_000
    for child in (0, 32_767, 32_768, size - 1):
        one = np.array([child], np.int32)
        values, nothing = np.array([0.5], np.float32), np.zeros((0, size), np.float32)
        feature = np.array([3], np.int32)
        cluster = ClusterWeights(
            feature, np.array([1]), one, values, nothing, np.zeros(size, np.float32)
        )
        chunks = Chunks(FEATURES, weight_form("bfloat16", size))
        chunks.add(0, cluster)
        weights = chunks.assembled(Tree((np.array([0, size]),), np.arange(size)), 1)
        check_marks(weights.arrays, 1)
        assert list(slow_weights(weights)) == [(3, 0, child, 0.5)]
        assert (weights.rows[0, 1] < 0) == (child < 32_768)


def test_numbers_of_children_have_two_words_where_one_cluster_needs_them():
    assert weight_form("float32", 65_536).tolist() == [1, 2]
    assert weight_form("bfloat16", 65_537).tolist() == [2, 1]


@pytest.mark.parametrize("dense", [0, 3])
def test_the_search_reads_every_form(rng, dense):
    X, _, ranker = ranker_of(rng, dense)
    cells, arrays = slow_weights(ranker.weights), ranker.weights.arrays
    by_cluster = [[] for _ in range(ranker.weights.child_ptr.size - 1)]
    for feature, cluster, child, value in cells:
        if value:
            by_cluster[cluster].append((feature, child, bfloat16(value)))
    found = []
    for form in FORMS:
        chunks = Chunks(ranker.weights.features, np.array(form))
        for number, own in enumerate(by_cluster):
            features, counts = np.unique([cell[0] for cell in own], return_counts=True)
            first, last = ranker.weights.child_ptr[number : number + 2]
            block = arrays["dense"][dense * first : dense * last].reshape(dense, last - first)
            chunks.add(
                number,
                ClusterWeights(
                    features.astype(np.int32),
                    np.cumsum(counts),
                    np.array([cell[1] for cell in own], np.int32),
                    np.array([cell[2] for cell in own], np.float32),
                    block,
                    arrays["biases"][first:last],
                ),
            )
        same = type(ranker)(ranker.tree, chunks.assembled(ranker.tree, 2), ranker.settings)
        found.append(same.predict(X, 9, 2).toarray())
    for scores in found[1:]:
        np.testing.assert_array_equal(scores, found[0])
    assert np.count_nonzero(found[0]) == 9 * X.rows


def test_a_bfloat16_model_has_rounded_weights_and_survives_saving(tmp_path):
    texts, labels = word_corpus()
    options = {"tree": "4-12-L", "trees": 1, "prune_below": 0.02}
    full = treetop.XRLinear(**options).fit(texts, labels)
    half = treetop.XRLinear(**options, weight_type="bfloat16").fit(texts, labels)
    assert full.settings_.weight_type == "float32"
    expected = np.vectorize(bfloat16, otypes=[np.float32])(slow_matrix(full.rankers_[0].weights))
    np.testing.assert_array_equal(slow_matrix(half.rankers_[0].weights), expected)
    assert (half.rankers_[0].weights.rows[:, 1] < 0).any()
    half.save(tmp_path / "half")
    full.save(tmp_path / "full")
    sizes = [(tmp_path / name / "ranker.safetensors").stat().st_size for name in ("half", "full")]
    assert sizes[0] < 0.7 * sizes[1]
    again = treetop.load(tmp_path / "half")
    assert again.predict(texts[:20], k=5) == half.predict(texts[:20], k=5)
    assert again.settings_.weight_type == "bfloat16"


@pytest.mark.parametrize("fault", ["truncate", "corrupt"])
def test_damaged_chunks_are_an_error_and_the_next_training_is_as_without(fault, tmp_path, monkeypatch):
    texts, labels = word_corpus()
    undisturbed = treetop.XRLinear(tree="4-16-L", trees=1, threads=1).fit(texts, labels)
    point = {"at": "chunks", "fault": fault, "once": str(tmp_path / "once")}
    monkeypatch.setenv(VARIABLE, json.dumps(point))
    model = treetop.XRLinear(tree="4-16-L", trees=1, threads=1)
    with pytest.raises(TreetopError, match="was cut off or damaged: train again"):
        model.fit(texts, labels)
    model.fit(texts, labels)
    assert same(model.predict_scores(texts), undisturbed.predict_scores(texts))
