"""Tables fitted by Newton's method against a general optimizer, and the kernel against its twin."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from treetop.kernels.regression import logistic_loss, solve_positive
from treetop.training.tables import prior_of, rising_tables, table_parts

SHAPES = [(5, 3), (5, 2)]


def random_rows(rng, count):
    """Rows between entries of both tables, with logits that rise along the first."""
    dense = np.zeros((count, 25), np.float32)
    place = rng.random(count) * 3.999
    for start, columns in ((0, 3), (15, 2)):
        column = rng.integers(0, columns, count)
        row, share = place.astype(int), place % 1
        dense[np.arange(count), start + row * columns + column] = 1 - share
        dense[np.arange(count), start + (row + 1) * columns + column] = share
    hit = (rng.random(count) < 1 / (1 + np.exp(2 - place))).astype(float)
    return sp.csr_matrix(dense), hit


def slow_loss(dense, hit, values):
    """The loss, its gradient and its second derivatives, by their definitions."""
    logits = dense.astype(float) @ values
    chances = 1 / (1 + np.exp(-logits))
    loss = -(hit * np.log(chances) + (1 - hit) * np.log(1 - chances)).sum()
    return loss, dense.T @ (chances - hit), dense.T @ np.diag(chances * (1 - chances)) @ dense


@given(st.integers(0, 1000))
def test_loss_and_derivatives_are_those_of_their_twin(seed):
    rng = np.random.default_rng(seed)
    design, hit = random_rows(rng, 40)
    values = rng.standard_normal(25)
    gradient, curvature = np.zeros(25), np.zeros((25, 25))
    rows = (design.indptr.astype(np.int64), design.indices, design.data, hit, values)
    loss = logistic_loss(*rows, gradient, curvature)
    expected = slow_loss(design.toarray(), hit, values)
    assert loss == pytest.approx(expected[0])
    np.testing.assert_allclose(gradient, expected[1], atol=1e-9)
    np.testing.assert_allclose(curvature, np.tril(expected[2]), atol=1e-9)
    again = np.zeros(25)
    assert logistic_loss(*rows, again, np.zeros((0, 25))) == loss
    np.testing.assert_array_equal(again, gradient)


@given(st.integers(1, 30), st.integers(0, 1000))
def test_equations_have_the_solution_of_numpy(size, seed):
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((size, size))
    matrix, right = factor @ factor.T + np.eye(size), rng.standard_normal(size)
    expected = np.linalg.solve(matrix, right)
    lower = np.tril(matrix)  # the upper half is not read
    assert solve_positive(lower, right) == size
    np.testing.assert_allclose(right, expected, atol=1e-8)
    np.testing.assert_allclose(lower, np.linalg.cholesky(matrix), atol=1e-8)


def test_equations_that_are_not_positive_are_not_solved():
    matrix = np.diag([2.0, 1.0, 0.0, 1.0])
    assert solve_positive(matrix, np.ones(4)) == 2


@pytest.mark.parametrize("seed", range(5))
def test_tables_reach_the_optimum_and_do_not_fall(seed):
    rng = np.random.default_rng(seed)
    design, hit = random_rows(rng, 400)
    prior, dense = prior_of(SHAPES), design.toarray()
    # Entries of a table from its increments.
    rises = [np.kron(np.tril(np.ones((rows, rows))), np.eye(columns)) for rows, columns in SHAPES]
    sums = np.zeros((25, 25))
    sums[:15, :15], sums[15:, 15:] = rises

    def objective(values):
        loss, gradient, _ = slow_loss(dense, hit, values)
        return loss + 0.5 * values @ prior @ values, gradient + prior @ values

    def by_increments(increments):
        loss, gradient = objective(sums @ increments)
        return loss, sums.T @ gradient

    bounds = [
        (None if entry < columns else 0, None)
        for rows, columns in SHAPES
        for entry in range(rows * columns)
    ]
    exact = {"maxiter": 5000, "ftol": 1e-14, "gtol": 1e-8}
    best = minimize(by_increments, np.zeros(25), jac=True, bounds=bounds, options=exact)
    tables = rising_tables(design, hit, SHAPES)
    for table in tables:
        assert (np.diff(table, axis=0) >= 0).all()
    found = np.concatenate([table.ravel() for table in tables])
    assert objective(found)[0] < best.fun + 0.02


def test_the_prior_counts_steps_across_bends_along_and_values_of_all_but_the_first_table(rng):
    values = rng.standard_normal(25)
    first, second = table_parts(values, SHAPES)
    expected = 0.5 * (second**2).sum()
    for table in (first, second):
        expected += 2 * (np.diff(table, axis=1) ** 2).sum()
        expected += 2 * (np.diff(table, 2, axis=0) ** 2).sum()
    assert 0.5 * values @ prior_of(SHAPES) @ values == pytest.approx(expected)
