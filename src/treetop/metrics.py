"""The metrics under their public name: `treetop.metrics.evaluate` and what goes with it."""

from treetop.evaluation.metrics import *  # noqa: F403
