"""Methods that all estimators share: prediction, explanations, evaluation."""

from treetop.base.fitted import FittedMixin

__all__ = ["FittedMixin"]
