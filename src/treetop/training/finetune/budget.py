"""How many steps each level gets."""

from __future__ import annotations

import math

from treetop.errors import TreetopError
from treetop.settings.notation import parse_budget

# Each level gets this many times the steps of the one above: 300/400/600 and the like.
GROWTH = math.sqrt(2)


def steps_by_level(budget: str, levels: int, documents: int, batch: int) -> list[int]:
    """Steps of levels 1 … `levels`. One figure is shared out, finer levels get more."""
    figures, unit = parse_budget(budget)
    batch = min(batch, documents)  # as `Batches` has it
    steps_a_unit = {"steps": 1.0, "samples": 1 / batch, "epochs": documents / batch}[unit]
    if len(figures) == 1:
        shares = [GROWTH**level for level in range(levels)]
        figures = [figures[0] * share / sum(shares) for share in shares]
    if len(figures) != levels:
        raise TreetopError(
            f"budget {budget!r} has {len(figures)} parts, but {levels} levels are fine-tuned: "
            "give one figure a level, or one in all"
        )
    return [max(1, round(figure * steps_a_unit)) for figure in figures]
