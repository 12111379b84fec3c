"""Tables for terminals: the columns are aligned."""

from treetop.runtime.tables import text_table

ROWS = [["", "train", "test"], ["documents", "1,000", "20"], ["labels", "7", ""]]


def test_numbers_are_aligned_to_the_right():
    assert text_table(ROWS).splitlines() == [
        "           train  test",
        "---------  -----  ----",
        "documents  1,000    20",
        "labels         7",
    ]


def test_text_is_aligned_to_the_left():
    assert text_table(ROWS, numbers=False).splitlines() == [
        "           train  test",
        "---------  -----  ----",
        "documents  1,000  20",
        "labels     7",
    ]
