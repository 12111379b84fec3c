"""What the commands compute, without a process of their own."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from treetop import XRLinear
from treetop.cli.evaluate import evaluate_split
from treetop.cli.main import run_command
from treetop.data import Split


@pytest.fixture
def model():
    """A model of the labels c, a and b that gives every document the same scores."""
    return SimpleNamespace(
        classes_=np.array(["c", "a", "b"], dtype=object),
        train_documents_=0,
        predict_scores=lambda X, k, runtime=None: sp.csr_matrix([[0.9, 0.8, 0.7]] * len(X)),
    )


def test_labels_are_matched_by_name_whatever_their_order(model):
    names, Y = ["a", "b", "c", "z"], sp.csr_matrix([[0, 0, 1, 0], [1, 0, 0, 1]])
    result = evaluate_split(model, Split(["x", "y"], None, None, Y), names, (1, 2))
    assert result["P@1"] == 1 / 2
    assert result["R@2"] == (1 + 1 / 2) / 2
    assert result["labels"] == 4


def test_excluded_pairs_count_neither_as_predicted_nor_as_true(model):
    names, Y = ["a", "b", "c", "z"], sp.csr_matrix([[1, 0, 1, 0], [1, 0, 0, 1]])
    excluded = sp.csr_matrix([[0, 0, 1, 0], [0, 0, 1, 1]])
    result = evaluate_split(model, Split(["x", "y"], None, None, Y, excluded), names, (1,))
    assert result["P@1"] == 1.0
    assert result["R@1"] == 1.0


def test_a_threshold_counts_all_labels_that_reach_it():
    """Not only the ten best, which are enough for the other metrics."""
    names = [f"label {number}" for number in range(40)]
    texts = ["red apple", "green pear"] * 10
    labels = [names] * 20
    model = XRLinear(threads=1).fit(texts, labels)
    lowest = min(score for _, score in model.predict(texts[:1], 40)[0])
    result = evaluate_split(model, Split(texts, labels), None, threshold=lowest / 2)
    assert result[f"micro_f1>={lowest / 2:g}"] == 1.0


def test_training_is_estimated_before_it_starts(tmp_path, capsys):
    """On more than a thousand documents; --quiet says nothing, and --json has the figures."""
    colours = ["red", "green", "blue", "yellow"]
    texts = [f"{colours[n % 4]} word{n % 97} word{n % 89}" for n in range(1200)]
    (tmp_path / "train.txt").write_text("\n".join(texts))
    (tmp_path / "train.labels").write_text("\n".join(colours[n % 4] for n in range(1200)))
    command = ["train", str(tmp_path), "--set", "trees=1", "-o"]
    assert run_command([*command, str(tmp_path / "model")]) == 0
    lines = capsys.readouterr().err.splitlines()
    (estimate,) = [line for line in lines if "estimate on" in line]
    assert re.search(
        r": [\d.]+ s.* \(competition [\d.]+ s, text features [\d.]+ s, rankers [\d.]+ s", estimate
    )
    assert lines.index(estimate) < next(n for n, line in enumerate(lines) if "text features: " in line)
    assert run_command([*command, str(tmp_path / "other"), "-q", "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert json.loads(printed.out)["estimate"]["memory"] > 10**7
