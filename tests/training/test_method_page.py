"""docs/method.md covers the paper: each numbered equation has a row with its function and its test."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "method.md").read_text("utf-8")
# The equations of the paper's sections 3 and 4, in its numbering; 12 to 14 define metrics.
EQUATIONS = range(1, 12)
# A file and what is defined in it, the test included: `labels/pifa.py`: `pifa`, `other`
REFERENCES = re.findall(r"`([\w/]+\.py)`: ((?:`[\w.]+`(?:, )?)+)", PAGE)


def test_every_equation_of_the_paper_has_a_row():
    rows = re.findall(r"^\| (\d+) \| .+ \| (`.+`) \| (`.+`|the same) \|$", PAGE, re.M)
    numbers = [int(number) for number, _, _ in rows]
    assert sorted(set(numbers)) == list(EQUATIONS)
    assert numbers == sorted(numbers)


def test_every_step_of_algorithm_2_has_a_function_and_a_test():
    table = PAGE.split("| step of Algorithm 2 | code | test |\n")[1].split("\n\n")[0]
    for row in table.splitlines()[1:]:
        _, code, test = row.strip("| ").split(" | ")
        assert ".py`: `" in code
        assert "test_" in test


@pytest.mark.parametrize(("file", "names"), REFERENCES)
def test_what_the_page_names_exists(file, names):
    folder = ROOT / ("tests" if "test_" in file else "src/treetop")
    source = (folder / file).read_text("utf-8")
    for name in re.findall(r"[\w.]+", names.replace(",", "")):
        for part in name.split("."):
            assert re.search(rf"^ *(?:def|class) {part}\b", source, re.M), f"{file}: {name}"
