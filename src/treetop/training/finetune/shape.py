"""The shape of the preliminary tree, and which of its levels are fine-tuned."""

from __future__ import annotations

import math

from treetop.errors import TreetopError

# Nodes a node of an automatic preliminary tree has at most.
BRANCHING = 32


def first_shape(spec: str, labels: int, largest: int) -> tuple[list[int], int]:
    """Sizes K[1] … K[D-1] of the preliminary tree, and how many levels are fine-tuned.

    ``16-256-L`` has three levels, all fine-tuned; without the L the labels are left to the ranker, as
    is every level of more than `largest` nodes. ``auto`` grows evenly, at most 32-fold a level.
    """
    if spec == "flat":
        sizes, with_labels = [], True
    elif spec == "auto":
        depth = max(1, math.ceil(math.log(labels) / math.log(BRANCHING) - 1e-9))
        sizes = [round(labels ** (level / depth)) for level in range(1, depth)]
        with_labels = True
    else:
        parts = spec.split("-")
        with_labels = parts[-1] in ("L", str(labels))
        numbers = parts[:-1] if with_labels else parts
        if not all(part.isdigit() and int(part) > 0 for part in numbers):
            raise TreetopError(
                f"first_tree {spec!r} is not understood: write level sizes such as 16-256-L, "
                "or auto, or flat"
            )
        sizes = [int(part) for part in numbers]
        if sizes != sorted(sizes):
            raise TreetopError(f"first_tree {spec!r}: level sizes must grow towards the labels")
    sizes = [size for size in sizes if 1 < size < labels]
    levels = [*sizes, labels] if with_labels or not sizes else sizes
    tuned = sum(size <= largest for size in levels)
    if tuned == 0:
        raise TreetopError(
            f"no level of first_tree {spec!r} has at most largest_level={largest:,} nodes: "
            "add a coarser level"
        )
    return sizes, tuned
