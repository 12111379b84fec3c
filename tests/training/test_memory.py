"""Memory is planned before the work: fewer threads if that helps, else an error that says what does."""

import numpy as np
import pytest
import scipy.sparse as sp

import treetop
from tests.conftest import random_problem
from treetop.errors import TreetopError
from treetop.features.hybrid import features
from treetop.runtime.progress import Reporter
from treetop.settings.schema import LinearSettings
from treetop.training import memory
from treetop.training.forest import label_features
from treetop.training.memory import TreeShape, needs_of, values_in_tree, within_memory

SETTINGS = LinearSettings()
SHAPE = TreeShape(leaf=100, tree_features=256, builds_tree=True)


class Notes(Reporter):
    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)


@pytest.fixture
def problem(rng):
    X, _, Y = random_problem(rng, 150, 40, 30)
    return features(X), Y


def test_values_in_the_tree_bound_those_of_the_label_features(problem, monkeypatch):
    X, Y = problem
    for largest in (None, 5):
        Z = label_features(X, Y, None, LinearSettings(tree_features=largest), 1)
        assert Z.sparse.nnz <= values_in_tree(X, Y, largest, 1) <= 40 * 30
    everything = values_in_tree(X, Y, None, 1)
    monkeypatch.setattr(memory, "MOST_VALUES", 0)
    monkeypatch.setattr(memory, "UPPER_FEATURES", 2)
    monkeypatch.setattr(memory, "LABELS_PER_WAVE", 3)
    assert values_in_tree(X, Y, None, 1) == 2 * 30 + 2 * everything // 10


def test_needs_grow_with_threads_and_a_given_tree_needs_none(problem):
    one, four = (needs_of(*problem, SHAPE, threads) for threads in (1, 4))
    assert all(more > less for less, more in zip(one, four, strict=True))
    assert needs_of(*problem, SHAPE._replace(builds_tree=False), 1).tree == 0


def within(problem, monkeypatch, room, threads=4):
    """The runtime for so many bytes beyond what is in use."""
    monkeypatch.setattr(memory, "memory_in_use", lambda: 10**9)
    runtime = treetop.Runtime(threads=threads, memory=f"{10**9 + room}B", reporter=Notes())
    return within_memory(*problem, SETTINGS, runtime, True)


def test_threads_are_left_out_until_the_work_fits(problem, monkeypatch):
    needs = [max(needs_of(*problem, SHAPE, threads)) for threads in range(1, 5)]
    assert within(problem, monkeypatch, needs[3]).threads == 4
    fitting = within(problem, monkeypatch, needs[1])
    assert fitting.threads == 2
    assert fitting.reporter.notes == ["2 of 4 threads are used to save memory"]
    with pytest.raises(
        TreetopError, match=r"takes about .* 1,000.0 MB of it for the documents, but mem"
    ):
        within(problem, monkeypatch, needs[0] - 1)


def test_the_error_names_the_setting_that_fits(monkeypatch):
    X = features(sp.csr_matrix(np.ones((1, 300), np.float32)))
    Y = sp.csr_matrix(np.ones((1, 30_000), np.float32))
    monkeypatch.setattr(memory, "BLOCK_FEATURES", 0)
    monkeypatch.setattr(memory, "PART", 0)
    monkeypatch.setattr(memory, "VALUES_PER_TASK", 0)
    room = max(needs_of(X, Y, SHAPE._replace(tree_features=64), 1))
    with pytest.raises(TreetopError, match="set tree_features=64, or raise memory"):
        within((X, Y), monkeypatch, room, 1)
    with pytest.raises(TreetopError, match="raise memory, or train on fewer documents or features"):
        within((X, Y), monkeypatch, 10, 1)


def test_training_keeps_to_its_memory_and_reports_the_peak():
    notes = Notes()
    texts, labels = ["red apple", "green grass"] * 5, [["red"], ["green"]] * 5
    model = treetop.XRLinear(memory="40GB").fit(texts, labels, report=notes)
    assert notes.notes[-1].startswith("memory: ")
    assert notes.notes[-1].endswith("of 40,000.0 MB")
    assert model.get_params()["memory"] == "40GB"
    with pytest.raises(TreetopError, match=r"memory is 9.0 MB|more than memory=9.0 MB"):
        treetop.XRLinear(memory="9MB").fit(texts, labels)
    with pytest.raises(TreetopError, match="size 'much' is not understood"):
        treetop.Runtime(memory="much")
