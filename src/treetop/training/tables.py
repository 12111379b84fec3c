"""Logistic regression whose coefficients are tables that are smooth and do not fall along their rows.

What is optimized is each table's first row and the increments of the others, which are at least 0: by
Newton's method, where increments that are 0 and would fall stay as they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from treetop.kernels import regression

# Strength of the prior that tables are smooth and, all but the first, zero.
SMOOTH, SMALL = 4.0, 1.0
# Steps, at most; none follows if the penalized loss, a sum over all rows, cannot fall by more than
# `ENOUGH`. A step is halved, at most so often, until the loss falls by a part of what it should.
STEPS, ENOUGH, HALVINGS, PART = 50, 0.01, 20, 1e-3
# Keeps the equations of a step solvable.
RIDGE = 1e-6
# Logits of the rows and the range of the first table at the start.
START, RANGE = -4.0, 6.0

Shapes = list[tuple[int, int]]


class Regression(NamedTuple):
    """The rows to explain, and the prior of the tables."""

    design: sp.csr_matrix  # float32, rows x entries of all tables, features ascending
    hit: np.ndarray  # float64, 1 for true rows, else 0
    shapes: Shapes
    prior: np.ndarray  # float64, entries x entries, of the penalty ½ vᵀ prior v
    few: sp.csr_matrix  # the same, of which most is zero

    def loss(self, increments: np.ndarray, gradient: np.ndarray, curvature: np.ndarray) -> float:
        """The penalized loss; fills in its derivatives by the tables' entries, as the kernel does."""
        values = accumulated(increments, self.shapes)
        pull = self.few @ values
        gradient[:] = pull
        design = self.design
        indptr = design.indptr.astype(np.int64)
        rows = (indptr, design.indices, design.data, self.hit)
        loss = float(regression.logistic_loss(*rows, values, gradient, curvature))
        return loss + 0.5 * float(values @ pull)


def rising_tables(design: sp.csr_matrix, hit: np.ndarray, shapes: Shapes) -> list[np.ndarray]:
    """The most probable tables.

    Parameters
    ----------
    design : float32 CSR of shape (rows, entries)
        The shares of the entries of all tables, one table after the other, in the logit of each row.
    hit : float64 array of shape (rows,)
        1 for true rows, else 0.
    shapes : list of pairs
        Rows and columns of the tables. The prior lets the first differ from zero freely.
    """
    prior = prior_of(shapes)
    problem = Regression(design, hit, shapes, prior, sp.csr_matrix(prior))
    increments, floor = start_of(shapes), floor_of(shapes)
    size = increments.size
    gradient, unused = np.empty(size), np.empty((0, size))
    for _ in range(STEPS):
        curvature = np.zeros((size, size))
        before = problem.loss(increments, gradient, curvature)
        slope = summed_back(gradient, shapes)
        free = (increments > floor) | (slope < 0)
        step = np.zeros(size)
        step[free] = newton_step(problem, curvature, slope, free)
        if -step @ slope < ENOUGH:
            break
        for _ in range(HALVINGS):
            tried = np.maximum(increments + step, floor)
            if problem.loss(tried, gradient, unused) <= before + PART * slope @ (tried - increments):
                break
            step /= 2
        else:
            break
        increments = tried
    return table_parts(accumulated(increments, shapes), shapes)


def newton_step(
    problem: Regression, curvature: np.ndarray, slope: np.ndarray, free: np.ndarray
) -> np.ndarray:
    """The step of the increments that are free; `curvature` is the lower half, by entries."""
    curvature += np.tril(curvature, -1).T
    curvature += problem.prior
    shapes = problem.shapes
    by_rows = summed_back(curvature, shapes)
    own = summed_back(np.ascontiguousarray(by_rows.T), shapes)[np.ix_(free, free)]
    own[np.diag_indices_from(own)] += RIDGE
    step = np.asarray(-slope[free])
    solved = regression.solve_positive(np.ascontiguousarray(own), step)
    assert solved == step.size  # the prior and the ridge see to it
    return step


def table_parts(flat: np.ndarray, shapes: Shapes) -> list[np.ndarray]:
    """The tables whose entries follow one after the other along the first axis."""
    ends = np.cumsum([rows * columns for rows, columns in shapes])[:-1]
    parts = zip(np.split(flat, ends), shapes, strict=True)
    return [part.reshape(*shape, *flat.shape[1:]) for part, shape in parts]


def accumulated(increments: np.ndarray, shapes: Shapes) -> np.ndarray:
    """The entries of the tables, from the first row and the increments of the others."""
    return np.concatenate([np.cumsum(part, axis=0).ravel() for part in table_parts(increments, shapes)])


def summed_back(values: np.ndarray, shapes: Shapes) -> np.ndarray:
    """Derivatives by increments, from those by the tables' entries: an entry and all rows below it."""
    sums = [np.cumsum(part[::-1], axis=0)[::-1] for part in table_parts(values, shapes)]
    return np.concatenate([part.reshape(-1, *values.shape[1:]) for part in sums])


def start_of(shapes: Shapes) -> np.ndarray:
    """Increments to start from: the first table rises, the others are zero."""
    tables = [np.zeros(shape) for shape in shapes]
    tables[0][:] = RANGE / len(tables[0])
    tables[0][0] = START
    return np.concatenate([table.ravel() for table in tables])


def floor_of(shapes: Shapes) -> np.ndarray:
    """What increments are at least: those of the first rows, which are values, are free."""
    tables = [np.zeros(shape) for shape in shapes]
    for table in tables:
        table[0] = -np.inf
    return np.concatenate([table.ravel() for table in tables])


def prior_of(shapes: Shapes) -> np.ndarray:
    """Penalties of steps across a table and of bends along it, and of all values but the first's."""
    sizes = [rows * columns for rows, columns in shapes]
    prior = np.zeros((sum(sizes), sum(sizes)))
    for number, ((rows, columns), end) in enumerate(zip(shapes, np.cumsum(sizes), strict=True)):
        across, bends = np.diff(np.eye(columns), axis=0), np.diff(np.eye(rows), 2, axis=0)
        own = np.kron(np.eye(rows), SMOOTH * across.T @ across)
        own += np.kron(SMOOTH * bends.T @ bends, np.eye(columns))
        own += (0.0 if number == 0 else SMALL) * np.eye(rows * columns)
        start = end - rows * columns
        prior[start:end, start:end] = own
    return prior
