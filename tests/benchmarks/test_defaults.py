"""docs/defaults.md, and the comparisons behind what competes."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

ROOT = Path(__file__).parents[2]


@pytest.fixture
def benchmark(monkeypatch):
    """Imports a script of benchmarks/ by its name."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module


def test_the_page_is_rendered_from_the_results(benchmark):
    render = benchmark("render_defaults")
    results = json.loads(render.RESULTS.read_text("utf-8"))
    study = json.loads(render.STUDY.read_text("utf-8")) if render.STUDY.exists() else {}
    assert render.page(results, study) == (ROOT / "docs" / "defaults.md").read_text("utf-8")


def test_comparisons_are_listed_from_the_smallest_sample_on(benchmark):
    differs = {"difference": 0.5, "low": -0.25, "high": 1.0}
    keys = ("flat 1/1", "flat 1/4", "within words 3-5")
    study = {"sets": {"pl": dict.fromkeys(keys, differs), "ru": {"flat 1/4": differs}}}
    lines = benchmark("render_defaults").study_table(study).splitlines()
    shown = "+0.50 (-0.25 to +1.00)"
    assert lines == [
        "| first − second | pl | ru |",
        "| --- | ---: | ---: |",
        f"| flat − tree, `word:1`, 1/4 of the labels | {shown} | {shown} |",
        f"| flat − tree, `word:1`, all labels | {shown} | – |",
        f"| characters 3–5, within words − across them | {shown} | – |",
    ]


def test_the_parts_of_a_study_are_disjoint_and_have_the_labels(benchmark, tmp_path):
    names = ["a", "b", "a\tb", "c", "d"] * 20
    (tmp_path / "train.txt").write_text("".join(f"text {n}\n" for n in range(100)))
    (tmp_path / "train.labels").write_text("\n".join(names) + "\n")
    documents = benchmark("competition_study").Documents(tmp_path)
    rows, held, labels = documents.sampled(2)
    assert labels.size == 2
    assert not np.intersect1d(rows, held).size
    of_sample = sp.csr_matrix(documents.Y[:, labels]).getnnz(axis=1) > 0
    assert np.array_equal(np.union1d(rows, held), np.flatnonzero(of_sample))


def test_an_interval_contains_the_mean(benchmark):
    low, high = benchmark("defaults").interval(np.array([0.0, 1.0] * 200))
    assert low < 0.5 < high
    assert high - low == pytest.approx(2 * 1.96 * 0.5 / 20, rel=0.15)
