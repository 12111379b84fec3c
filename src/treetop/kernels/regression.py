"""Logistic regression on sparse rows: what Newton's method asks for, in one pass."""

import numpy as np

from treetop.kernels import array, const, csr, f8, kernel


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
