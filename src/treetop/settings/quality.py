"""One dial for what to spend on training: the settings that each quality stands for."""

from __future__ import annotations

from typing import Any

from treetop.errors import TreetopError
from treetop.settings.making import PARAMETERS

# Five trees trained on different features, which make different errors. Not yet measured against the
# defaults on several data sets.
MANY_VIEWS = "word:1-2|word:1-2+char:3-5|char:3-5|word:1+char:4|word:1-2+word:1-2@300"
# From the least to the most work; settings that a kind of model does not have are left out.
QUALITIES: dict[str, dict[str, Any]] = {
    "quick": {"trees": 1, "competition": False, "calibration": False, "fine_tune": False},
    "balanced": {},
    "best": {"trees": 5, "ngrams": MANY_VIEWS},
}


def quality_settings(quality: str, kind: str) -> dict[str, Any]:
    """Return the settings that a quality stands for, for one kind of model."""
    if quality not in QUALITIES:
        raise TreetopError(f"quality is {quality!r}: choose one of {', '.join(QUALITIES)}")
    known = PARAMETERS[kind].defaults
    return {name: value for name, value in QUALITIES[quality].items() if name in known}
