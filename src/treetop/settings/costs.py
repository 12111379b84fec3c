"""What positives and negatives weigh in the rankers, where the settings leave it open."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np
import scipy.sparse as sp

from treetop.settings.schema import LinearSettings

Settings = TypeVar("Settings", bound=LinearSettings)
# λ that suits positives that weigh 1 on average.
LAMBDA = 0.35
# E[k²] / E[k]² of k labels a document from which on R̂ would hardly learn the long lists of labels.
UNEVEN = 4.0


def with_costs(settings: Settings, Y: sp.csr_matrix, weights: np.ndarray | None) -> Settings:
    """Settings in which cost_sensitive, lambda_ and alpha are decided by the labels documents have.

    R̂ gives all positives of a document a weight of 1 together. So what one of them weighs, and with it
    the λ that suits, falls with their number; and where few documents hold most of the labels, these
    would count for next to nothing.
    """
    labels = np.diff(Y.indptr).astype(np.float64)
    weights = (labels > 0) * (1.0 if weights is None else weights)
    mean = square = 1.0
    if weights.any():
        mean, square = (np.average(labels**power, weights=weights) for power in (1, 2))
    sensitive, lambda_, alpha = settings.cost_sensitive, settings.lambda_, settings.alpha
    if sensitive is None:
        sensitive = bool(square / mean**2 < UNEVEN)
    if lambda_ is None:
        lambda_ = float(LAMBDA / mean) if sensitive else LAMBDA
    if alpha is None:
        alpha = 0.3 if sensitive else 1.0
    return replace(settings, cost_sensitive=sensitive, lambda_=lambda_, alpha=alpha)
