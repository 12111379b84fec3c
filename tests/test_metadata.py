"""What package indexes and citation tools read: pyproject.toml and CITATION.cff."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_python_that_runs_the_tests_is_among_the_classifiers():
    assert f"Programming Language :: Python :: 3.{sys.version_info.minor}" in PROJECT["classifiers"]
    assert PROJECT["requires-python"] == ">=3.11"


def test_the_project_has_the_links_that_package_indexes_show():
    assert set(PROJECT["urls"]) == {"Homepage", "Documentation", "Issues", "Changelog"}


def test_addresses_of_the_project_are_only_in_pyproject():
    owner = re.search(r"github\.com/(\w+)/", PROJECT["urls"]["Homepage"])[1]
    names = ["CITATION.cff", "Dockerfile", "compose.yaml", "README.md", "mkdocs.yml", "CONTRIBUTING.md"]
    for path in [*(ROOT / name for name in names), *(ROOT / "docs").rglob("*.md")]:
        assert f"{owner}/treetop" not in path.read_text("utf-8"), path


def test_the_citation_is_the_paper():
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    paper = citation["preferred-citation"]
    assert citation["license"] == PROJECT["license"]
    assert [author["family-names"] for author in paper["authors"]] == [
        "Zhang",
        "Chang",
        "Yu",
        "Dhillon",
    ]
    assert (paper["year"], paper["url"]) == (2021, "https://arxiv.org/abs/2110.00685")
