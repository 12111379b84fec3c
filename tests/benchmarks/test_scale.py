"""The generated problems, and the page of figures about millions of labels."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def generated():
    sys.path.insert(0, str(BENCHMARKS))
    import generated

    return generated


@pytest.fixture(scope="module")
def render_scale(generated):
    import render_scale

    return render_scale


@pytest.fixture
def small(generated, monkeypatch):
    """Sizes that make three blocks."""
    monkeypatch.setattr(generated, "WORDS_PER_BLOCK", 2500)
    monkeypatch.setattr(generated, "TEST_DOCUMENTS", 10)
    return generated


def test_a_problem_has_the_counts_it_was_asked_for(small, tmp_path):
    counts = small.generate("amazon-670k", tmp_path, labels=40, threads=2)
    assert (counts.labels, counts.documents) == (40, 29)
    texts = (tmp_path / "train.txt").read_text().splitlines()
    assert [len(text.split()) for text in texts] == [counts.words] * 29
    names = [line.split("\t") for line in (tmp_path / "train.labels").read_text().splitlines()]
    Y = sp.load_npz(tmp_path / "Y.trn.npz")
    assert Y.shape == (29, 40)
    assert [[int(name) for name in line] for line in names] == [
        Y.indices[start:end].tolist() for start, end in zip(Y.indptr[:-1], Y.indptr[1:], strict=True)
    ]
    assert sp.load_npz(tmp_path / "Y.tst.npz").shape == (10, 40)


def test_a_problem_does_not_depend_on_the_number_of_threads(small, tmp_path):
    for threads in (1, 3):
        small.generate("amazon-3m", tmp_path / str(threads), labels=300, threads=threads)
    for name in ("train.txt", "train.labels", "test.txt"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "3" / name).read_bytes()


def test_words_differ_and_frequent_ones_are_short(generated):
    words = [word.decode() for word in generated.spelled(20_000).tolist()]
    assert len(set(words)) == 20_000
    assert all(word.endswith(" ") for word in words)
    assert len(words[5]) < len(words[500]) < len(words[15_000])


def test_words_follow_zipfs_law(generated):
    numbers = generated.zipf(np.random.default_rng(0), 1000, (200_000,))
    first, tenth = (np.mean(numbers == number) for number in (0, 9))
    assert first == pytest.approx(np.log(2) / np.log(1000), rel=0.05)
    assert tenth == pytest.approx(np.log(11 / 10) / np.log(1000), rel=0.1)


def test_the_page_is_the_generated_one(render_scale):
    results = json.loads(render_scale.RESULTS.read_text())
    assert render_scale.PAGE.read_text("utf-8") == render_scale.page(results)
    assert render_scale.PICTURE.is_file()


def test_the_median_of_runs_leaves_out_failed_ones(render_scale):
    def run(seconds):
        part = {"train": seconds}
        matrix = {"seconds": part, "cpu_seconds": part, "peak_mb": 1000}
        predict = {"seconds": {"predict": 2.0}, "documents": 1000, "single_ms": 0.5}
        return {"matrix": matrix, "predict": predict, "folder_bytes": 10**9}

    own = render_scale.median_of("treetop", [run(1.0), run(4.0), run(3.0), {"failed": "killed"}])
    assert own == render_scale.Figures(3.0, 3.0, 1.048576, 1.0, 2.0, 0.5)
    assert render_scale.median_of("treetop", [{"failed": "killed"}]) is None


def test_results_of_several_machines_are_merged(generated):
    import scale

    own = {"a": {"labels": 1, "runs": {"treetop": [{"commit": "x"}]}}}
    other = {
        "a": {"labels": 1, "runs": {"treetop": [{"commit": "x"}, {"commit": "y"}]}},
        "b": {"labels": 2, "runs": {"libpecos": [{"commit": "x"}]}},
    }
    scale.merge(own, other)
    assert own["a"]["runs"]["treetop"] == [{"commit": "x"}, {"commit": "y"}]
    assert own["b"] == other["b"]
