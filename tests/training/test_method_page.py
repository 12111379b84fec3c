"""docs/method.md covers the paper: each numbered equation has a row with its function."""

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "method.md").read_text("utf-8")
# The equations of the paper's sections 3 and 4, in its numbering; 12 to 14 define metrics.
EQUATIONS = range(1, 12)


def test_every_equation_of_the_paper_has_a_row():
    numbers = [int(number) for number in re.findall(r"^\| (\d+) \| .+ \| `.+` \|$", PAGE, re.M)]
    assert sorted(set(numbers)) == list(EQUATIONS)
    assert numbers == sorted(numbers)
