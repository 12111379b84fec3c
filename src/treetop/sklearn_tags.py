"""What scikit-learn asks an estimator about itself. Imported only when scikit-learn asks."""

from __future__ import annotations

from typing import Any


def text_tags() -> Any:
    """Tags of an estimator that takes texts (or a matrix) and several labels a document."""
    from sklearn.utils import InputTags, Tags, TargetTags

    return Tags(
        estimator_type=None,
        target_tags=TargetTags(required=True, multi_output=True, single_output=True),
        input_tags=InputTags(two_d_array=True, sparse=True, string=True),
    )
