"""Whether strings such as ``"red, fruit"`` are one label or several, decided by evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

# Separators of labels within a string. Label names seldom contain the first three, commas often.
SEPARATORS = ("\t", ";", "|", ",")
STRONG = SEPARATORS[:3]
# At most so many cells, evenly spaced, are looked at.
SAMPLE = 100_000
# Pieces recur if at least this share of them occurs in another cell too.
RECURRING = 0.5
# Share of the cells from which a separator counts although its pieces do not recur: a strong one
# divides labels; a comma may divide labels or be part of names.
STRONG_SHARE, COMMA_SHARE = 0.2, 0.5
# A separator that is this much less frequent than another one is part of names.
MINOR = 0.1
# Names with commas, such as "Arts, Crafts": at least so many, and each in this many cells on average.
NAMES, CELLS_PER_NAME = 10, 2


@dataclass(frozen=True)
class Evidence:
    """What speaks for a separator."""

    separator: str
    cells: int  # that contain it
    share: float  # of the cells that are not empty
    distinct: int  # different cells among those that contain it
    recurring: float  # share of the pieces that also occur in a different cell
    paired: bool  # always two pieces, and none occurs on both sides or alone: "Smith, John"


@dataclass(frozen=True)
class LabelReading:
    """How strings of labels are to be read.

    If it is `ambiguous`, several readings are plausible and the user has to choose. Otherwise
    `separator` divides each string into labels, or each string is one label if it is None.
    """

    separator: str | None
    plausible: tuple[str, ...]  # separators that may divide labels, most likely first
    ambiguous: bool
    evidence: tuple[Evidence, ...]  # of all separators that occur


def label_reading(cells: Iterable[str]) -> LabelReading:
    """Decide how cells of labels are to be read.

    Parameters
    ----------
    cells : iterable of str
        One string per document; empty strings are documents without labels.

    Returns
    -------
    LabelReading
        The separator, or that each cell is one label, or that this is ambiguous.

    Examples
    --------
    >>> label_reading(["red|fruit", "green|fruit", "blue"]).separator
    '|'
    >>> label_reading(["red", "green", "blue", "black", "white", "AT&T; Inc."] * 2).separator is None
    True
    >>> label_reading(["Paris, France", "Lyon, France", "Bonn, Germany"]).ambiguous
    True
    """
    filled = sampled([cell for cell in cells if cell.strip()])
    found = (evidence_for(separator, filled) for separator in SEPARATORS)
    evidence = tuple(one for one in found if one.cells)
    likely = sorted(
        (one for one in evidence if divides(one) or may_divide(one)),
        key=lambda one: one.share * one.recurring + one.share * STRONG_SHARE,
        reverse=True,
    )
    most = max((one.cells for one in likely), default=0)
    likely = [one for one in likely if one.cells > MINOR * most]
    plausible = tuple(one.separator for one in likely)
    winners = [
        one
        for one in likely
        if divides(one)
        and all(
            clearly_better(one.separator, other.separator, filled)
            for other in likely
            if other is not one
        )
    ]
    if winners:
        return LabelReading(winners[0].separator, plausible, False, evidence)
    return LabelReading(None, plausible, bool(likely), evidence)


def pieces_of(cell: str, separator: str) -> list[str]:
    """Divide a cell at the separator: the pieces without surrounding space, without empty ones."""
    return [piece for part in cell.split(separator) if (piece := part.strip())]


def sampled(cells: list[str]) -> list[str]:
    """Select at most `SAMPLE` cells, evenly spaced."""
    step = -(-len(cells) // SAMPLE)
    return list(islice(cells, 0, None, step)) if step > 1 else cells


def evidence_for(separator: str, filled: list[str]) -> Evidence:
    """Collect what speaks for a separator in cells that are not empty."""
    containing = [cell for cell in filled if separator in cell]
    distinct = dict.fromkeys(containing)
    if not distinct:
        return Evidence(separator, 0, 0.0, 0, 0.0, False)
    divided = [pieces_of(cell, separator) for cell in distinct]
    alone = {cell.strip() for cell in filled if separator not in cell}
    cells_with = Counter(piece for pieces in divided for piece in set(pieces))
    cells_with.update(alone)
    pieces = [piece for pieces in divided for piece in pieces]
    recurring = sum(cells_with[piece] > 1 for piece in pieces)
    sides = [set(side) for side in zip(*divided, strict=False)]
    paired = all(len(pieces) == 2 for pieces in divided) and not (
        sides[0] & sides[1] or alone & (sides[0] | sides[1])
    )
    return Evidence(
        separator,
        len(containing),
        len(containing) / len(filled),
        len(distinct),
        recurring / max(1, len(pieces)),
        paired,
    )


def divides(one: Evidence) -> bool:
    """Whether a separator divides labels beyond reasonable doubt, others left aside."""
    if one.separator in STRONG:
        return one.recurring >= RECURRING or one.share >= STRONG_SHARE
    return one.recurring >= RECURRING and not one.paired


def may_divide(one: Evidence) -> bool:
    """Whether a separator that is often part of names may divide labels."""
    if one.separator in STRONG:
        return False
    names = one.distinct >= NAMES and one.cells >= CELLS_PER_NAME * one.distinct
    return one.recurring >= RECURRING or (one.share >= COMMA_SHARE and not names)


def crossing(outer: str, inner: str, cells: list[str]) -> float:
    """Share of the pieces that contain another separator which also occur in a different cell.

    Labels recur whole: dividing ``"Art, Modern; Law"`` at ``;`` gives pieces with a comma that other
    documents have too, and dividing it at the comma gives ``"Modern; Law"``, which they do not.
    """
    pieces = [set(pieces_of(cell, outer)) for cell in dict.fromkeys(cells)]
    cells_with = Counter(piece for own in pieces for piece in own)
    crossed = [piece for own in pieces for piece in own if inner in piece]
    return sum(cells_with[piece] > 1 for piece in crossed) / max(1, len(crossed))


def clearly_better(first: str, second: str, cells: list[str]) -> bool:
    """Whether the first of two separators divides labels and the second is part of their names."""
    recurring = crossing(first, second, cells)
    return recurring >= RECURRING and recurring >= 2 * crossing(second, first, cells)
