"""Several models as one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from treetop.base import Prediction, named
from treetop.errors import TreetopError
from treetop.explain.explanation import Explanation
from treetop.explain.merging import merged
from treetop.model import layout as store
from treetop.model.card import card
from treetop.model.hub import HubMixin
from treetop.ranking.combining import COMBINE, combined
from treetop.runtime.files import replacing_folder
from treetop.training.inputs import is_text

# Labels each member is asked for, for every label wanted: members disagree at the end of their lists.
LOOK_FURTHER = 4


class Ensemble(HubMixin):
    """Models over the same labels; their scores are combined label by label.

    `combine`: ``average`` of the scores; ``rank``, the mean of what places are worth; ``sigmoid`` or
    ``softmax``, the mean after that function, the latter over a document's listed labels.
    """

    kind = "ensemble"

    def __init__(
        self, members: Sequence[Any], combine: str = "average", weights: Sequence[float] | None = None
    ) -> None:
        if not members:
            raise TreetopError("an ensemble needs at least one model")
        if combine not in COMBINE:
            raise TreetopError(f"combine is {combine!r}: choose one of {', '.join(COMBINE)}")
        self.members, self.combine = list(members), combine
        self.weights = list(weights) if weights is not None else [1.0] * len(members)
        if len(self.weights) != len(members) or min(self.weights) < 0 or not any(self.weights):
            raise TreetopError("weights: give one number of at least 0 a model, not all 0")
        first = list(members[0].classes_)
        for number, member in enumerate(members[1:], start=2):
            if list(member.classes_) != first:
                raise TreetopError(
                    f"model {number} has other labels than the first: train on one data set"
                )

    @property
    def classes_(self) -> np.ndarray:
        """Label names."""
        return np.asarray(self.members[0].classes_)

    @property
    def train_counts_(self) -> np.ndarray:
        """Training documents of each label."""
        return np.asarray(self.members[0].train_counts_)

    @property
    def train_documents_(self) -> int:
        """Number of training documents."""
        return int(self.members[0].train_documents_)

    def predict(self, X: Any, k: int = 5, **options: Any) -> list[Prediction]:
        """For each document its best `k` labels as (name, score), best first."""
        return named(self.predict_scores(X, k, **options), self.classes_)

    def predict_scores(self, X: Any, k: int = 100, **options: Any) -> sp.csr_matrix:
        """Combined scores N x L of the best `k` labels, best first in each row."""
        X = list(X) if is_text(X) else X
        return self.combine_features([X] * len(self.members), k, **options)

    def combine_features(self, X: Sequence[Any], k: int, **options: Any) -> sp.csr_matrix:
        """`predict_scores` where each member has its own features of the documents."""
        if k < 1:
            raise TreetopError(f"k is {k}: it must be at least 1")
        parts = [
            member.predict_scores(own, LOOK_FURTHER * k, **options)
            for member, own in zip(self.members, X, strict=True)
        ]
        return combined(parts, self.weights, self.combine, k)

    def explain(
        self, text: Any, label: Any = None, *, k: int = 5, **options: Any
    ) -> Explanation | list[Explanation]:
        """Why `text` gets `label`, as for one model: the weighted mean of what the members say."""
        if label is None:
            label = [name for name, _ in self.predict([text] if isinstance(text, str) else text, k)[0]]
        names = [label] if isinstance(label, str) else list(label)
        parts = [member.explain(text, names, **options) for member in self.members]
        made = [merged(one, self.weights) for one in zip(*parts)]
        return made[0] if isinstance(label, str) else made

    def save(self, folder: str | Path, measured: dict[str, Any] | None = None) -> None:
        """Write all members into one folder."""
        with replacing_folder(Path(folder), store.check_target) as target:
            for number, member in enumerate(self.members):
                member.save(target / f"member-{number}")
            facts = {
                "model": self.kind,
                "members": [member.kind for member in self.members],
                "combine": self.combine,
                "weights": self.weights,
                "train_documents": self.train_documents_,
                "labels": len(self.classes_),
                "metrics": measured or {},
            }
            store.write_card(target, card(facts))
            store.write_config(target, facts)

    @classmethod
    def load(cls, folder: str | Path, verify: bool | None = None) -> Ensemble:
        """The ensemble in a folder."""
        from treetop.models import load_model

        folder = Path(folder)
        config = store.read_config(folder, verify)
        members = [
            load_model(folder / f"member-{number}", verify=False)
            for number in range(len(config["members"]))
        ]
        return cls(members, config["combine"], config["weights"])
