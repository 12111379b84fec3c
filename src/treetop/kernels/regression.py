"""Logistic regression on sparse rows: what Newton's method asks for, in one pass, and its equations.

The equations are too few to share among threads: BLAS does so nevertheless, whatever `threads` says,
and on a busy machine its threads wait for each other far longer than they compute.
"""

import numpy as np

from treetop.kernels import array, const, csr, f8, helper, i8, kernel


@kernel(f8(*csr, const(f8), const(f8), array(f8), array(f8, 2)))
def logistic_loss(indptr, indices, data, hit, values, gradient, curvature):
    """The sum of the logistic losses of rows whose logits are sums of `values`.

    A row's features ascend; `hit` is 1 for true rows, else 0. Adds the derivatives by `values` to
    `gradient`, and the second ones to the lower half of `curvature`, unless that has no rows.
    """
    loss = 0.0
    for row in range(indptr.size - 1):
        start, end = indptr[row], indptr[row + 1]
        logit = 0.0
        for at in range(start, end):
            logit += data[at] * values[indices[at]]
        tail = np.exp(-abs(logit))
        loss += np.log1p(tail) + max(logit, 0.0) - hit[row] * logit
        chance = (1.0 if logit >= 0.0 else tail) / (1.0 + tail)
        slope, bend = chance - hit[row], chance * (1.0 - chance)
        for at in range(start, end):
            gradient[indices[at]] += slope * data[at]
        if len(curvature) == 0:
            continue
        for at in range(start, end):
            own = bend * data[at]
            for other in range(start, at + 1):
                curvature[indices[at], indices[other]] += own * data[other]
    return loss


@helper
def product(left, right, size):
    """The scalar product of the beginnings of two arrays, in sums that do not wait for each other."""
    first = second = third = fourth = 0.0
    whole = size - size % 4
    for at in range(0, whole, 4):
        first += left[at] * right[at]
        second += left[at + 1] * right[at + 1]
        third += left[at + 2] * right[at + 2]
        fourth += left[at + 3] * right[at + 3]
    for at in range(whole, size):
        first += left[at] * right[at]
    return (first + second) + (third + fourth)


@kernel(i8(array(f8, 2), array(f8)))
def solve_positive(matrix, right):
    """Solve equations whose matrix is symmetric and positive definite; of it, the lower half is read.

    `right` becomes the solution, the lower half of `matrix` its Cholesky factor. Returns how many
    rows were factored: all of them, or those before the first that shows that it is not positive.
    """
    size = right.size
    for row in range(size):
        own = matrix[row]
        for column in range(row):
            own[column] = (own[column] - product(own, matrix[column], column)) / matrix[column, column]
        square = own[row] - product(own, own, row)
        if not square > 0.0:
            return row
        own[row] = np.sqrt(square)
        right[row] = (right[row] - product(own, right, row)) / own[row]
    for row in range(size - 1, -1, -1):
        right[row] /= matrix[row, row]
        for column in range(row):
            right[column] -= matrix[row, column] * right[row]
    return size
