"""The solver, compared with scikit-learn's LIBLINEAR and with a general optimizer."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.svm import LinearSVC

from tests.conftest import random_problem
from treetop.features.hybrid import features
from treetop.labels import tree
from treetop.labels.kmeans import KMeans
from treetop.labels.pifa import pifa
from treetop.ranking.pruning import largest_weights
from treetop.ranking.solver import block_width, costs, plan, solve_clusters, solve_level
from treetop.ranking.training import train_rankers
from treetop.ranking.weights import LabelWeights
from treetop.runtime.progress import Reporter
from treetop.settings.parts import RankerSettings

EXACT = RankerSettings(
    prune_below=0.0, tolerance=1e-4, passes=5000, bias=0.0, cost_sensitive=False, lambda_=0.5
)


def solved(X, R, M, child_ptr, settings, threads=2, document_weights=None):
    return solve_level(
        X,
        R,
        M,
        child_ptr,
        settings,
        seed=0,
        threads=threads,
        report=Reporter(),
        name="",
        document_weights=document_weights,
    )


def with_settings(**changes):
    return RankerSettings(**{**vars(EXACT), **changes})


def solve_flat(X, R, settings, threads=2):
    M = sp.csr_matrix(np.ones((X.rows, 1), np.float32))
    made = solved(X, R, M, np.array([0, R.shape[1]]), settings, threads)
    return dense_weights(made[0], X.sparse.shape[1])


def dense_weights(cluster, columns):
    """Return weights (features x children, with the dense half below) and biases of a cluster."""
    W = np.zeros((columns, cluster.biases.size), np.float32)
    sizes = np.diff(cluster.ends, prepend=0)
    W[np.repeat(cluster.features, sizes), cluster.children] = cluster.values
    return np.vstack([W, cluster.dense]), cluster.biases


def losses(kind, margins):
    if kind == "logistic":
        return np.logaddexp(0, -margins)
    gap = np.maximum(1 - margins, 0)
    return gap**2 if kind == "squared-hinge" else gap


def objective(w, x, y, c, kind):
    """½‖w‖² + Σ c loss(y w·x)."""
    return 0.5 * w @ w + (c * losses(kind, y * (x @ w))).sum()


@pytest.mark.parametrize("labels", [1, 3, 7, 20])
def test_squared_hinge_agrees_with_liblinear(rng, labels):
    X, _, Y = random_problem(rng, labels=labels)
    W, _ = solve_flat(features(X), Y, EXACT)
    for label in range(labels):
        y = np.where(Y[:, [label]].toarray().ravel() > 0, 1, -1)
        twin = LinearSVC(C=1.0, fit_intercept=False, tol=1e-8, max_iter=100_000).fit(X, y)
        np.testing.assert_allclose(W[:, label], twin.coef_.ravel(), atol=2e-3)


@pytest.mark.parametrize("kind", ["squared-hinge", "hinge", "logistic"])
@pytest.mark.parametrize("dense", [0, 5])
def test_every_loss_reaches_the_optimum(rng, kind, dense):
    X, extra, Y = random_problem(rng, 40, 12, 3, dense)
    settings = with_settings(loss=kind, bias=0.7, lambda_=0.8, alpha=0.5, cost_sensitive=True)
    W, biases = solve_flat(features(X, extra), Y, settings)
    x = np.hstack([X.toarray(), extra, np.full((40, 1), 0.7)]).astype(float)
    hat = Y.toarray() / Y.toarray().sum(axis=1, keepdims=True).clip(1)
    for label in range(3):
        positive = Y[:, [label]].toarray().ravel() > 0
        c = np.where(positive, hat[:, label], 0.5) / (2 * 0.8)
        y = np.where(positive, 1.0, -1.0)
        ours = np.append(W[:, label], biases[label] / 0.7)
        best = minimize(objective, np.zeros(x.shape[1]), (x, y, c, kind), "L-BFGS-B").fun
        slack = 2e-2 if kind == "hinge" else 1e-4  # L-BFGS is only near the optimum of the hinge
        assert objective(ours, x, y, c, kind) <= best * (1 + slack) + 1e-6


def test_the_logistic_loss_converges_where_costs_are_large(rng):
    X = (rng.random((300, 40)) * (rng.random((300, 40)) < 0.3)).astype(np.float32)
    y = np.where(X[:, 0] + X[:, 1] > rng.random(300), 1.0, -1.0)
    settings = with_settings(loss="logistic", bias=1.0, lambda_=0.05, passes=300, tolerance=1e-6)
    W, biases = solve_flat(features(X), sp.csr_matrix((y > 0).astype(np.float32)[:, None]), settings)
    x, c = np.hstack([X, np.ones((300, 1))]).astype(float), np.full(300, 10.0)
    exact = {"maxiter": 10_000, "ftol": 1e-15, "gtol": 1e-10}
    best = minimize(objective, np.zeros(41), (x, y, c, "logistic"), "L-BFGS-B", options=exact).x
    np.testing.assert_allclose(np.append(W[:, 0], biases[0]), best, atol=2e-3)


def test_costs_on_a_hand_computed_example():
    # λ = 0.25, so C = 2; the document has relevance 3 and 1, so R̂ is 3/4 and 1/4
    R = sp.csr_matrix(np.array([[3.0, 1.0, 0.0]], np.float32))
    positives, negative = costs(R, RankerSettings(lambda_=0.25, alpha=0.1, cost_sensitive=True))
    np.testing.assert_allclose(positives.toarray(), [[1.5, 0.5, 0.0]])
    assert negative == pytest.approx(0.2)
    plain, negative = costs(R, RankerSettings(lambda_=0.25, alpha=0.1, cost_sensitive=False))
    np.testing.assert_allclose(plain.toarray(), [[6.0, 2.0, 0.0]])  # the relevances themselves
    assert negative == pytest.approx(0.2)


def test_a_cluster_is_trained_on_its_own_documents_only(rng):
    X, _, Y = random_problem(rng, 50, 30, 8)
    X, child_ptr = features(X), np.array([0, 3, 8])
    M = sp.random(50, 2, 0.4, "csr", np.float32, rng)
    M.data[:] = 1
    made = solved(X, Y, M, child_ptr, EXACT)
    for cluster, (first, last) in enumerate([(0, 3), (3, 8)]):
        rows = np.flatnonzero(M[:, [cluster]].toarray().ravel())
        alone, _ = solve_flat(X[rows], sp.csr_matrix(Y[rows][:, first:last]), EXACT)
        # A positive outside the shortlist must not leak in through an old row number.
        inside = sp.csr_matrix(Y.multiply(sp.csr_matrix(M[:, [cluster]])))
        assert inside.nnz <= Y.nnz
        got, _ = dense_weights(made[cluster], 30)
        np.testing.assert_allclose(got, alone, atol=2e-3)


def test_pruning_by_value_and_by_number(rng):
    X, _, Y = random_problem(rng)
    whole, _ = solve_flat(features(X), Y, EXACT)
    cut, _ = solve_flat(features(X), Y, with_settings(prune_below=0.2))
    np.testing.assert_allclose(cut, np.where(np.abs(whole) > 0.2, whole, 0), atol=1e-6)
    few, _ = solve_flat(features(X), Y, with_settings(max_weights=5))
    for label in range(Y.shape[1]):
        kept = np.flatnonzero(few[:, label])
        assert kept.size == 5
        assert set(kept) == set(np.argsort(-np.abs(whole[:, label]))[:5])


def test_weights_do_not_depend_on_threads(rng):
    X, _, Y = random_problem(rng, 80, 40, 40)
    one = solve_flat(features(X), Y, RankerSettings(), threads=1)
    many = solve_flat(features(X), Y, RankerSettings(), threads=6)
    np.testing.assert_array_equal(one[0], many[0])
    np.testing.assert_array_equal(one[1], many[1])


@given(st.lists(st.integers(1, 70), min_size=1, max_size=6), st.integers(1, 8), st.integers(0, 3))
def test_a_plan_covers_every_child_exactly_once_in_full_blocks(sizes, threads, seed):
    child_ptr = np.append(0, np.cumsum(sizes))
    rows = np.random.default_rng(seed).integers(0, 100, len(sizes))
    tasks = plan(rows, child_ptr, 100, 10**6, threads)
    covered = sorted(child for task in tasks for child in range(task.first_child, task.last_child))
    assert covered == list(range(child_ptr[-1]))
    assert all((task.first_child - child_ptr[task.cluster]) % task.width == 0 for task in tasks)


def test_a_small_cluster_with_most_documents_is_divided_among_threads():
    assert block_width(16, 100, 100) == 8
    assert block_width(16, 10, 100) == 16
    assert block_width(3, 100, 100) == 4
    assert block_width(64, 100, 100) == 16


def test_an_empty_cluster_gets_no_weights(rng):
    X, _, Y = random_problem(rng, 20, 10, 4)
    M = sp.csr_matrix((20, 2), dtype=np.float32)
    made = solved(features(X), Y, M, np.array([0, 2, 4]), EXACT)
    assert [cluster.values.size for cluster in made] == [0, 0]


def test_a_flat_tree_has_a_single_cluster():
    assert tree.flat(3).child_ptr[0].tolist() == [0, 3]


@pytest.mark.parametrize("loss", ["squared-hinge", "hinge", "logistic"])
def test_document_weights_equal_repetitions(rng, loss):
    X, _, Y = random_problem(rng, 40, 20, 5)
    counts = rng.integers(1, 4, 40)
    often = np.repeat(np.arange(40), counts)
    child_ptr, exact = np.array([0, 5]), replace(EXACT, loss=loss)
    ones = [sp.csr_matrix(np.ones((rows, 1), np.float32)) for rows in (40, often.size)]
    weights = counts.astype(np.float32)
    weighted = solved(features(X), Y, ones[0], child_ptr, exact, document_weights=weights)
    repeated = solved(features(X[often]), Y[often], ones[1], child_ptr, exact)
    np.testing.assert_allclose(dense_of(weighted[0], 20, 5), dense_of(repeated[0], 20, 5), atol=2e-3)


def dense_of(cluster, features, children):
    """Return the sparse weights of a cluster as an array."""
    made, start = np.zeros((features, children)), 0
    for feature, end in zip(cluster.features, cluster.ends, strict=True):
        made[feature, cluster.children[start:end]] = cluster.values[start:end]
        start = end
    return made


@pytest.mark.parametrize("clusters", [[], [3]])
def test_head_share_blends_two_scores(rng, clusters):
    sparse, dense, Y = random_problem(rng, dense=5)
    X, labels = features(sparse, dense), Y.shape[1]
    made = tree.balanced_tree(pifa(X, Y, 1), clusters, KMeans(passes=5, seed=0, threads=1))
    weight = rng.standard_normal((labels, 5)).astype(np.float32)
    head = LabelWeights(weight, rng.standard_normal(labels).astype(np.float32))

    def raw_scores(share):
        settings = with_settings(score_transform="identity", head_share=share)
        (ranker,) = train_rankers(X, Y, made, settings, seed=0, threads=1, head=head)
        return ranker.predict(X, labels, 1, beam=labels).toarray()

    expected = 0.75 * raw_scores(0.0) + 0.25 * (dense @ head.weight.T + head.bias)
    np.testing.assert_allclose(raw_scores(0.25), expected, atol=1e-4)


def test_weights_beyond_the_cache_are_trained_as_those_within_it(rng):
    """More columns than fit into a cache, most of them empty, change no bit."""
    X, _, Y = random_problem(rng, 120, 50, 16)
    used = np.sort(rng.permutation(20_000)[:50])
    wide = sp.csr_matrix((X.data, used[X.indices], X.indptr), (X.shape[0], 20_000))
    narrow_W, narrow_b = solve_flat(features(X), Y, EXACT)
    wide_W, wide_b = solve_flat(features(wide), Y, EXACT)
    np.testing.assert_array_equal(wide_W[used], narrow_W)
    np.testing.assert_array_equal(wide_b, narrow_b)
    assert np.count_nonzero(wide_W) == np.count_nonzero(narrow_W)


def test_solved_weights_are_not_in_the_working_memory_of_the_next_cluster():
    weights = np.ones((1, 3, 16), np.float32)
    solved = largest_weights(weights, np.zeros(1, np.int32), 16, EXACT)
    weights[:] = 2
    assert (solved.dense == 1).all()
    assert (solved.values == 1).all()


def solved_with_held(X, Y, held, settings):
    """Weights of a single cluster: those of all documents, and those without the held-out ones."""
    M, both = sp.csr_matrix(np.ones((X.rows, 1), np.float32)), []
    solve_clusters(
        X,
        Y,
        M,
        np.array([0, Y.shape[1]]),
        settings,
        keep=lambda _, *weights: both.extend(weights),
        seed=0,
        threads=1,
        report=Reporter(),
        name="",
        held=held,
    )
    return [dense_weights(weights, X.sparse.shape[1]) for weights in both]


@pytest.mark.parametrize("loss", ["squared-hinge", "hinge", "logistic"])
def test_without_held_out_documents_the_others_count_for_them(rng, loss):
    """Compared with training anew on the others, each with the weight that is missing."""
    sparse, _, Y = random_problem(rng, 300, 40, 5)
    X, settings = features(sparse), with_settings(loss=loss, bias=1.0, lambda_=2.0, passes=500)
    held = (rng.random(300) < 0.2).astype(np.uint8)
    others = np.flatnonzero(held == 0)
    whole, without = solved_with_held(X, Y, held, settings)
    np.testing.assert_array_equal(whole[0], solve_flat(X, Y, settings)[0])
    factor = np.full(others.size, 299 / others.size, np.float32)
    ones = sp.csr_matrix(np.ones((others.size, 1), np.float32))
    anew = solved(X[others], Y[others], ones, np.array([0, 5]), settings, document_weights=factor)
    exact = dense_weights(anew[0], 40)
    unseen = sparse[held > 0]

    def scores(weights):
        return unseen @ weights[0] + weights[1]

    assert np.abs(scores(without) - scores(exact)).mean() < 0.05
    assert abs((scores(without) - scores(exact)).mean()) < 0.02


def test_weights_that_no_held_out_document_reads_are_not_kept_without_them(rng):
    X, _, Y = random_problem(rng, 60, 40, 5)
    held = np.zeros(60, np.uint8)
    held[:3] = 1
    read = np.unique(X[:3].indices)
    whole, without = solved_with_held(features(X), Y, held, EXACT)
    unread = np.setdiff1d(np.arange(40), read)
    assert np.abs(whole[0][unread]).max() > 0
    assert np.abs(without[0][read]).max() > 0
    assert not without[0][unread].any()
    most = with_settings(max_weights=5)
    _, few = solved_with_held(features(X), Y, held, most)
    assert (np.count_nonzero(few[0], axis=0) == 5).all()
