"""Evidence for separators of labels."""

from __future__ import annotations

import random

import pytest

from treetop.labels.separators import SEPARATORS, evidence_for, label_reading, pieces_of

TAGS = ["python", "pandas", "numpy", "scipy", "rust", "go"]


def tag_lists(documents: int = 60, seed: int = 0) -> list[list[str]]:
    chance = random.Random(seed)
    return [chance.sample(TAGS, chance.randint(1, 3)) for _ in range(documents)]


@pytest.mark.parametrize("separator", SEPARATORS)
def test_the_separator_of_tags_is_found(separator: str) -> None:
    for glue in (separator, separator + " ", f" {separator} "):
        reading = label_reading(glue.join(tags) for tags in tag_lists())
        assert (reading.separator, reading.ambiguous) == (separator, False)


@pytest.mark.parametrize("separator", SEPARATORS)
def test_one_separator_in_one_cell_does_not_change_the_others(separator: str) -> None:
    for other in SEPARATORS:
        cells = [f"{other} ".join(tags) for tags in tag_lists()]
        if other != separator:
            reading = label_reading([*cells, f"Black{separator}White"])
            assert reading.separator == other
    single = [tags[0] for tags in tag_lists()]
    reading = label_reading([*single, f"Black{separator}White"])
    assert (reading.separator, reading.ambiguous) == (None, False)


@pytest.mark.parametrize(
    ("cells", "separator"),
    [
        (["red|fruit", "green|fruit", "blue"], "|"),
        (["a|b", "c"], "|"),
        (["a, b", "b, c", "c"], ","),
        (["a, b, c", "a", "b", "c"] * 5, ","),
        (["red", "green", "blue"], None),
        ([], None),
        (["", "  "], None),
        # Names with commas, in lists with another separator.
        (["Art, Modern; History, French", "Art, Modern; Law", "Law; History, French"] * 3, ";"),
        # A class per document, with commas in the names.
        ([f"Goods {number}, Tools {number}" for number in range(12)] * 5, None),
        # Few documents have several labels, each of which occurs alone too.
        (["red", "green", "blue"] * 30 + ["red;green"], ";"),
    ],
)
def test_what_is_read(cells: list[str], separator: str | None) -> None:
    reading = label_reading(cells)
    assert (reading.separator, reading.ambiguous) == (separator, False)


@pytest.mark.parametrize(
    ("cells", "plausible"),
    [
        (["Paris, France", "Lyon, France", "Bonn, Germany"], (",",)),
        (["Smith, John", "Smith, Jane", "Doe, John"], (",",)),
        (["one, two", "three, four"], (",",)),
        (["a|b;c|d", "e|f;g|h", "i|j;k|l", "m|n;o|p"], ("|", ";")),
    ],
)
def test_what_is_ambiguous(cells: list[str], plausible: tuple[str, ...]) -> None:
    reading = label_reading(cells)
    assert reading.separator is None
    assert reading.ambiguous
    assert set(reading.plausible) == set(plausible)


def test_evidence_counts_cells_and_pieces_that_recur() -> None:
    evidence = evidence_for(";", ["a; b", "b; c", "b; c", "c", "x;y"])
    assert (evidence.cells, evidence.share, evidence.distinct) == (4, 0.8, 3)
    assert evidence.recurring == 3 / 6  # b, b and c of the three different cells; c also occurs alone
    assert not evidence.paired


def test_pieces_have_no_surrounding_space_and_are_not_empty() -> None:
    assert pieces_of(" red ;;green; ", ";") == ["red", "green"]
