"""Losses of the rankers: the optimum of one dual variable with all others fixed."""

import numpy as np

from treetop.kernels import helper
from treetop.kernels.lanes import lanes_at, largest_lane, splat, store

SQUARED_HINGE, HINGE, LOGISTIC = 0, 1, 2
NEWTON_STEPS, NEWTON_ACCURACY = 40, np.float32(1e-6)


@helper
def logistic_dual(gradient, alpha, cost, norm):
    """The z in (0, cost) with  norm (z - alpha) + gradient + log(z / (cost - z)) = 0.

    With z = cost·sigmoid(t) the left side grows in t with a slope of at least 1: Newton's method
    inside a shrinking bracket, from the present `alpha`, which in later passes is near the optimum.
    """
    low = -gradient - norm * (cost - alpha)
    high = -gradient + norm * alpha
    t = np.log(alpha / (cost - alpha)) if 0 < alpha < cost else np.float32(0.0)
    t = min(max(t, low), high)
    for _ in range(NEWTON_STEPS):
        share = np.float32(1.0) / (np.float32(1.0) + np.exp(-t))
        value = norm * (cost * share - alpha) + gradient + t
        if value > 0:
            high = t
        else:
            low = t
        slope = norm * cost * share * (np.float32(1.0) - share) + np.float32(1.0)
        following = t - value / slope
        if following <= low or following >= high:
            following = np.float32(0.5) * (low + high)
        moved, t = abs(following - t), following
        if moved <= NEWTON_ACCURACY * max(np.float32(1.0), abs(t)):
            break
    return cost / (np.float32(1.0) + np.exp(-t))


@helper
def logistic_step(scores, beta, row, signs, costs, slot, weight, norm, delta):
    """Find the step of each label's dual variable of a document to its optimum.

    `weight` multiplies the document's costs. Returns the largest gradient over the labels.
    """
    largest = np.float32(0.0)
    for lane in range(beta.shape[1]):
        sign, before = signs[slot, lane], beta[row, lane]
        gradient = sign * scores[0, lane]
        alpha = logistic_dual(gradient, before * sign, weight * costs[slot, lane], norm)
        delta[0, lane] = alpha * sign - before
        largest = max(largest, abs(delta[0, lane]) * norm)
    return largest


@helper
def hinge_step(like, squared, scores, beta, row, signs, costs, slot, weight, norm, delta):
    """Like `logistic_step` for the hinge, squared or not, with a vector of the labels.

    The squared hinge adds 1/(2c) to the diagonal; the hinge bounds the variable by c instead.
    Returns the largest projected gradient.
    """
    zero, one = splat(np.float32(0.0), like), splat(np.float32(1.0), like)
    is_squared = np.float32(1.0 if squared else 0.0)
    sign, before = lanes_at(signs, slot, like), lanes_at(beta, row, like)
    cost = lanes_at(costs, slot, like) * splat(weight, like)
    diagonal = splat(is_squared * np.float32(0.5), like) / cost
    curvature = max(splat(norm, like) + diagonal, splat(np.float32(1e-12), like))
    gradient = sign * lanes_at(scores, 0, like) - one + sign * before * diagonal
    alpha = max(sign * before - gradient / curvature, zero)
    alpha = min(alpha, cost + splat(is_squared * np.float32(1e30), like))
    step = alpha * sign - before
    store(delta, 0, step)
    return largest_lane(max(step, zero - step) * curvature)
