"""Every setting of the method, defined once: default, help, bounds and choices.

Where the work is done (threads, device, precision) is not a setting of the method but a `Runtime`.
"""

from treetop.settings.schema.linear import SCORE_TRANSFORMS, LinearSettings
from treetop.settings.schema.transformer import TransformerSettings

__all__ = ["SCORE_TRANSFORMS", "LinearSettings", "TransformerSettings"]
