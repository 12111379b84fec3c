"""Label propensities of Jain et al. 2016, which weight rare labels in PSP and PSnDCG."""

from __future__ import annotations

import numpy as np

from treetop.errors import TreetopError

# (A, B) of Jain et al. 2016 as used in the literature
PROPENSITIES = {"wikipedia": (0.5, 0.4), "amazon": (0.6, 2.6), "default": (0.55, 1.5)}


def propensity_constants(propensity: str | tuple[float, float]) -> tuple[float, float]:
    """Look up the constants A and B of a propensity model.

    Parameters
    ----------
    propensity : str or (float, float)
        Name of one of the `PROPENSITIES`, or the constants themselves.

    Returns
    -------
    tuple of float
        A and B.

    Examples
    --------
    >>> propensity_constants("wikipedia")
    (0.5, 0.4)
    """
    if not isinstance(propensity, str):
        return propensity
    if propensity not in PROPENSITIES:
        known = ", ".join(PROPENSITIES)
        raise TreetopError(f"unknown propensity preset {propensity!r}: choose one of {known}")
    return PROPENSITIES[propensity]


def inverse_propensity(counts: np.ndarray, documents: int, A: float, B: float) -> np.ndarray:
    """Compute 1/p_l = 1 + C (N_l + B)^-A with C = (ln N - 1)(B + 1)^A.

    Parameters
    ----------
    counts : array of shape (L,)
        N_l, the number of training documents of each label.
    documents : int
        N, the number of training documents.
    A, B : float
        Constants of the propensity model.

    Returns
    -------
    float64 array of shape (L,)
        Inverse propensities: the rarer the label, the larger.

    Examples
    --------
    >>> import numpy as np
    >>> inverse_propensity(np.array([1, 100]), 1000, 0.55, 1.5).round(2).tolist()
    [6.91, 1.77]
    """
    C = (np.log(documents) - 1.0) * (B + 1.0) ** A
    inverse: np.ndarray = 1.0 + C * (counts + B) ** -A
    return inverse
