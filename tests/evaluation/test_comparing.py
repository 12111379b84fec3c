"""Comparison of two models: paired bootstrap, examples, and the same figures in Python and shell."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

import treetop
from treetop import metrics
from treetop.cli.comparison import compare_models
from treetop.cli.main import run_command
from treetop.cli.model_options import CompareOptions
from treetop.evaluation.bootstrap import samples_of
from treetop.evaluation.comparing import comparison_of

TRUE = [["a"], ["b"], ["a", "c"]]
A = [[0.9, 0.1, 0.0], [0.8, 0.2, 0.0], [0.5, 0.0, 0.4]]
B = [[0.1, 0.0, 0.9], [0.0, 0.1, 0.9], [0.5, 0.4, 0.0]]  # its columns are b, c, a


@pytest.fixture
def pair():
    """Results of two models that number the labels differently."""
    return (
        metrics.evaluate(TRUE, A, (1, 2), classes=["a", "b", "c"]),
        metrics.evaluate(TRUE, B, (1, 2), classes=["b", "c", "a"]),
    )


def test_figures_are_those_of_both_evaluations(pair):
    comparison = comparison_of(pair, ("one", "two"), samples=200)
    row = comparison["metrics"]["P@1"]
    assert (row["a"], row["b"]) == (pair[0]["P@1"], pair[1]["P@1"])
    assert row["difference"] == pytest.approx(row["b"] - row["a"])
    assert row["low"] <= row["difference"] <= row["high"]
    assert comparison["documents"] == 3
    assert json.loads(json.dumps(comparison)) == dict(comparison)


def test_differences_are_of_the_same_documents():
    """The slow twin: both models on each sample of documents."""
    rng = np.random.default_rng(0)
    Y = sp.csr_matrix((rng.random((30, 6)) < 0.3).astype(float))
    scores = [rng.random((30, 6)), rng.random((30, 6))]
    results = [metrics.evaluate(Y, one, (1, 3)) for one in scores]
    comparison = comparison_of(tuple(results), ("one", "two"), samples=100, seed=5)
    drawn = np.concatenate(list(samples_of(30, 100, 5, 6)))
    for key, k in (("P@1", 1), ("P@3", 3)):
        values = [[metrics.evaluate(Y[rows], one[rows], k)[key] for rows in drawn] for one in scores]
        differences = np.subtract(values[1], values[0])
        row = comparison["metrics"][key]
        moved = differences - differences.mean() + row["difference"]
        assert (row["low"], row["high"]) == pytest.approx(np.quantile(moved, [0.025, 0.975]))


def test_it_shows_what_only_one_of_them_finds(pair):
    comparison = comparison_of(pair, ("one", "two"), samples=100, examples=2)
    # At k = 2, only A finds "b" of the second document and "a" of the third.
    assert (comparison["only_a"]["labels"], comparison["only_a"]["documents"]) == (2, 2)
    (first, second) = comparison["only_a"]["examples"]
    assert (first["document"], first["found"], first["instead"]) == (1, ["b"], ["a"])
    assert (second["labels"], second["found"], second["instead"]) == (["a", "c"], ["a"], ["b"])
    assert comparison["only_b"] == {"documents": 0, "labels": 0, "examples": []}
    assert comparison["by_label"] == [{"label": "a", "a": 2, "b": 1}, {"label": "b", "a": 1, "b": 0}]
    text = str(comparison)
    assert "A: one\nB: two\n\nmetric" in text
    assert "only A finds 2 true labels in 2 documents among its first 2:" in text
    assert "    only A: b\n    B instead: a" in text
    assert "<table>" in comparison._repr_html_()


def test_equal_models_do_not_differ(pair):
    comparison = comparison_of((pair[0], pair[0]), ("one", "one"), samples=100)
    assert {row["p"] for row in comparison["metrics"].values()} == {1.0}
    assert {row["difference"] for row in comparison["metrics"].values()} == {0.0}


def test_results_must_be_of_the_same_documents(pair):
    other = metrics.evaluate(TRUE[:2], B[:2], (1, 2), classes=["b", "c", "a"])
    with pytest.raises(treetop.TreetopError, match="the results are of different documents"):
        comparison_of((pair[0], other), ("one", "two"))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two models and a test set."""
    folder = tmp_path_factory.mktemp("compare")
    texts = ["red apple", "green pear", "blue sky", "red sky"] * 5
    labels = [["red", "fruit"], ["green", "fruit"], ["blue"], ["red", "blue"]] * 5
    treetop.XRLinear(ngrams="word:1").fit(texts, labels).save(folder / "a")
    treetop.XRLinear(ngrams="char:2").fit(texts[:8], labels[:8]).save(folder / "b")
    (folder / "data").mkdir()
    tests = {
        "a red pear": "red\tfruit",
        "the green sky": "green\tblue",
        "appel": "fruit",
        "bluish": "blue",
    }
    (folder / "data" / "test.txt").write_text("\n".join(tests) + "\n")
    (folder / "data" / "test.labels").write_text("\n".join(tests.values()) + "\n")
    return folder, list(tests), [line.split("\t") for line in tests.values()]


def test_python_and_the_command_give_the_same_figures(folders, capsys):
    folder, texts, labels = folders
    paths = (folder / "a", folder / "b")
    compare_models(CompareOptions(*paths, folder / "data", json=True))
    printed = json.loads(capsys.readouterr().out)
    models = [treetop.load(path) for path in paths]
    own = treetop.compare(*models, texts, labels, names=tuple(map(str, paths)))
    assert printed == json.loads(json.dumps(own))
    assert run_command(["compare", *map(str, paths), str(folder / "data"), "-q"]) == 0
    assert capsys.readouterr().out == f"{own}\n"
    assert run_command(["evaluate", str(paths[0]), str(folder / "data"), "--json", "-q"]) == 0
    evaluated = json.loads(capsys.readouterr().out)
    result = models[0].evaluate(texts, labels, k=(1, 3, 5, 10))
    intervals = {key: list(pair) for key, pair in result.intervals().items()}
    assert evaluated == json.loads(json.dumps({**result, "intervals": intervals}))


def test_the_command_names_what_is_wrong(folders, capsys):
    folder = folders[0]
    assert run_command(["compare", str(folder / "a"), str(folder / "data"), str(folder / "data")]) == 2
    assert "holds data, not a model" in capsys.readouterr().err
    options = ["compare", str(folder / "a"), str(folder / "b"), str(folder / "data")]
    assert run_command([*options, "--split", "dev"]) == 2
    assert "the data has no split dev: choose one of test" in capsys.readouterr().err
