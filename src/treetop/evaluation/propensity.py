"""Label propensities of Jain et al. 2016, which weight rare labels in PSP and PSnDCG."""

from __future__ import annotations

import numpy as np

from treetop.errors import TreetopError

# (A, B) of Jain et al. 2016 as used in the literature
PROPENSITIES = {"wikipedia": (0.5, 0.4), "amazon": (0.6, 2.6), "default": (0.55, 1.5)}
DEFAULT = "default"
# The data sets of the literature by the names of their folders, and the kinds they belong to;
# presets are called as their data sets are.
DATA_SETS = {
    **dict.fromkeys(("eurlex-4k", "eurlex57k", "wiki10-31k", "amazoncat-13k"), DEFAULT),
    **dict.fromkeys(("wiki-500k", "wikipedia-500k", "lf-wikipedia-500k"), "wikipedia"),
    **dict.fromkeys(("amazon-670k", "amazon-3m", "lf-amazon-131k", "amazontitles-670k"), "amazon"),
    **dict.fromkeys(("amazontitles-3m", "lf-amazontitles-131k", "lf-amazontitles-1.3m"), "amazon"),
}
OF_PECOS = "-pecos"  # ends the names of presets that PECOS published for a data set


def propensity_constants(propensity: str | tuple[float, float]) -> tuple[float, float]:
    """Look up the constants A and B of a propensity model.

    Parameters
    ----------
    propensity : str or (float, float)
        Name of one of the `PROPENSITIES`, of a data set of the literature, or the constants
        themselves.

    Returns
    -------
    tuple of float
        A and B.

    Examples
    --------
    >>> propensity_constants("wikipedia")
    (0.5, 0.4)
    >>> propensity_constants("amazon-670k")
    (0.6, 2.6)
    """
    if not isinstance(propensity, str):
        return checked_constants(propensity)
    kind = propensity if propensity in PROPENSITIES else kind_of_data(propensity)
    if kind is None:
        known = ", ".join(PROPENSITIES)
        raise TreetopError(
            f"unknown propensity preset {propensity!r}: choose one of {known}, or the name of a data "
            "set, such as amazon-670k"
        )
    return PROPENSITIES[kind]


def checked_constants(constants: tuple[float, float]) -> tuple[float, float]:
    """Return A and B; raise unless they are two numbers, B above -1."""
    try:
        A, B = map(float, constants)
    except (TypeError, ValueError):
        A, B = np.nan, np.nan
    if not (np.isfinite(A) and np.isfinite(B) and B > -1):
        raise TreetopError(f"propensity is {constants!r}: give a name, or the numbers (A, B), B > -1")
    return A, B


def kind_of_data(name: str) -> str | None:
    """Which of the `PROPENSITIES` the literature uses for a data set, or a preset for it; else None."""
    plain = name.lower().replace("_", "-").removesuffix(OF_PECOS)
    return DATA_SETS.get(plain)


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
