"""XRLinear, XRTransformer and Ensemble, and the functions that load them."""

from treetop.estimators.ensemble import KINDS, Ensemble, estimator_of
from treetop.estimators.linear import XRLinear
from treetop.estimators.loading import from_preset, from_pretrained, load, presets
from treetop.estimators.transformer import XRTransformer

__all__ = [
    "KINDS",
    "Ensemble",
    "XRLinear",
    "XRTransformer",
    "estimator_of",
    "from_preset",
    "from_pretrained",
    "load",
    "presets",
]
