"""One dial for what to spend on training: the settings that each quality stands for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from treetop.errors import TreetopError
from treetop.settings.making import PARAMETERS

# Five trees trained on different features, which make different errors. On cooking they are no better
# than the defaults (docs/howto/quality.md); on other data sets they have not been measured yet.
MANY_VIEWS = "word:1-2|word:1-2+char:3-5|char:3-5|word:1+char:4|word:1-2+word:1-2@300"
# From the least to the most work; settings that a kind of model does not have are left out.
QUALITIES: dict[str, dict[str, Any]] = {
    "quick": {"trees": 1, "competition": False, "calibration": False, "fine_tune": False},
    "balanced": {},
    "best": {"trees": 5, "ngrams": MANY_VIEWS},
}

# How many layers of an encoder are tuned where all of them would take too long, as on a CPU.
UPPER_LAYERS = 2
# What a plan falls back to for a model with an encoder, from the most to the least work.
BELOW_BALANCED: dict[str, dict[str, Any]] = {
    f"balanced, {UPPER_LAYERS} layers of the encoder tuned": {"tuned_layers": UPPER_LAYERS},
    "balanced, encoder frozen": {"fine_tune": False},
}


def plans(kind: str, highest: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The settings to plan with, each with a name, from the most to the least work."""
    levels = list(QUALITIES)
    for quality in levels[levels.index(highest) :: -1]:
        yield quality, quality_settings(quality, kind)
        if quality == "balanced" and "fine_tune" in PARAMETERS[kind].defaults:
            yield from BELOW_BALANCED.items()


def quality_settings(quality: str, kind: str) -> dict[str, Any]:
    """Return the settings that a quality stands for, for one kind of model."""
    if quality not in QUALITIES:
        raise TreetopError(f"quality is {quality!r}: choose one of {', '.join(QUALITIES)}")
    known = PARAMETERS[kind].defaults
    return {name: value for name, value in QUALITIES[quality].items() if name in known}
