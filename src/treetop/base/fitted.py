"""All methods that fitted estimators share."""

from __future__ import annotations

from treetop.base.evaluating import EvaluatingMixin
from treetop.model.summary import html_card


class FittedMixin(EvaluatingMixin):
    """What fitted estimators do with `model_`, and how a notebook shows them."""

    def _repr_html_(self) -> str:
        model = self.model_ if self.__sklearn_is_fitted__() else None
        return html_card(type(self).__name__, model, repr(self))
