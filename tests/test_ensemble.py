"""Ensembles: how scores are combined, and how members are saved and checked."""

import numpy as np
import pytest
import scipy.sparse as sp

import treetop
from treetop.errors import TreetopError
from treetop.ranking.combining import best_of, combined, ranked_labels, worth

TEXTS = ["red apple", "green pear", "red cherry", "green grass", "blue sky"] * 4
LABELS = [["red", "fruit"], ["green", "fruit"], ["red", "fruit"], ["green"], ["blue"]] * 4


@pytest.fixture(scope="module")
def members():
    return [treetop.XRLinear(ngrams=n).fit(TEXTS, LABELS) for n in ("word:1", "word:1-2", "char:3")]


def test_score_functions_on_a_hand_computed_example():
    scores = sp.csr_matrix(np.array([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0]]))
    np.testing.assert_allclose(worth(scores, "rank").toarray(), [[0, 1, 0.5], [1, 0, 0]])
    soft = np.exp([2.0, 1.0]) / np.exp([2.0, 1.0]).sum()
    np.testing.assert_allclose(worth(scores, "softmax").toarray(), [[0, *soft], [1, 0, 0]])
    sigmoid = 1 / (1 + np.exp(-np.array([2.0, 1.0, 3.0])))
    np.testing.assert_allclose(worth(scores, "sigmoid").data, sigmoid)
    assert worth(scores, "average") is scores


def test_weighted_mean_on_a_hand_computed_example():
    a = sp.csr_matrix(([0.9, 0.2, 0.0], [0, 1, 2], [0, 3]), shape=(1, 4))
    b = sp.csr_matrix(([0.1, 0.6, 0.3], [0, 1, 2], [0, 3]), shape=(1, 4))
    scores = combined([a, b], [1, 3], "average", 2)
    np.testing.assert_array_equal(scores.indices, [1, 0])
    np.testing.assert_allclose(scores.data, [0.5, 0.3], rtol=1e-6)


def test_a_missing_score_is_not_zero():
    """Raw scores and logarithms are negative: a label that one member lacks would win with a 0."""
    a = sp.csr_matrix(([-2.0, -3.0], [0, 1], [0, 2]), shape=(1, 3))
    b = sp.csr_matrix(([-1.0, 0.0], [0, 2], [0, 2]), shape=(1, 3))
    scores = combined([a, b], [1, 1], "average", 3)
    np.testing.assert_array_equal(scores.indices, [2, 0, 1])
    np.testing.assert_allclose(scores.data, [0.0, -1.5, -3.0])


def test_best_of_equals_a_full_sort(rng):
    scores = sp.random(40, 30, 0.3, "csr", np.float32, rng)
    best = best_of(scores, 4)
    for row, dense in enumerate(scores.toarray()):
        ranked = best.indices[best.indptr[row] : best.indptr[row + 1]]
        expected = [label for label in np.argsort(-dense, kind="stable") if dense[label] > 0][:4]
        assert ranked.tolist() == expected
    twice = combined([scores, scores], [1, 1], "average", 4)
    np.testing.assert_array_equal(twice.indices, best.indices)
    np.testing.assert_allclose(twice.data, best.data)


def test_ties_go_to_the_lower_label_and_short_rows_are_padded():
    scores = sp.csr_matrix(np.array([[0.5, 0.5, 0.9], [0, 0, 0.1]]))
    assert ranked_labels(scores, 3).tolist() == [[2, 0, 1], [2, -1, -1]]
    assert ranked_labels(scores, 2).tolist() == [[2, 0], [2, -1]]


@pytest.mark.parametrize("combine", ["average", "rank", "sigmoid", "softmax"])
def test_a_loaded_ensemble_predicts_the_same(members, tmp_path, combine):
    ensemble = treetop.Ensemble(members, combine)
    ensemble.save(tmp_path / "model")
    loaded = treetop.load(str(tmp_path / "model"))
    assert loaded.predict(TEXTS, k=2) == ensemble.predict(TEXTS, k=2)
    assert ensemble.predict(["blue sky"], k=1)[0][0][0] == "blue"
    assert len(ensemble.predict(["red"], k=3, allow=["red", "blue"])[0]) == 2


def test_saving_an_ensemble_replaces_only_its_own_files(members, tmp_path):
    folder = tmp_path / "model"
    nested = treetop.Ensemble([treetop.Ensemble(members[:2]), members[2]])
    for _ in range(2):
        nested.save(folder)
    # members and their cards, which have no checksums, are known as treetop's
    assert (folder / "member-0" / "member-1" / "README.md").is_file()
    for added, named in [
        ("member-1/notes.txt", "member-1/notes.txt"),
        ("member-0/member-1/notes.txt", "member-0/member-1/notes.txt"),
        ("member-2/notes.txt", "member-2"),
    ]:
        (folder / added).parent.mkdir(exist_ok=True)
        (folder / added).write_text("mine")
        with pytest.raises(TreetopError) as error:
            nested.save(folder)
        assert f"model: holds {named}, which treetop did not write" in str(error.value)
        assert (folder / added).read_text() == "mine"
        (folder / added).unlink()
        if added == "member-2/notes.txt":
            (folder / "member-2").rmdir()
    nested.save(folder)
    assert len(treetop.load(folder).members) == 2


def test_errors_of_the_constructor(members):
    other = treetop.XRLinear().fit(["a b", "c d"], [["x"], ["y"]])
    cases = [
        (([],), "at least one model"),
        ((members, "vote"), "combine is 'vote': choose one of average, rank"),
        ((members, "average", [1, 2]), "one number of at least 0 per model"),
        (([members[0], other],), "model 2 has other labels than the first"),
    ]
    for arguments, message in cases:
        with pytest.raises(TreetopError, match=message):
            treetop.Ensemble(*arguments)
    with pytest.raises(TreetopError, match="X is one string"):
        treetop.Ensemble(members).predict("blue sky")
    with pytest.raises(TreetopError, match="k is 0"):
        treetop.Ensemble(members).predict(["a"], k=0)


def test_runtime_and_changes_of_an_ensemble(tmp_path):
    texts, labels = ["red apple", "blue sky", "red car"] * 4, [["a"], ["b"], ["a", "c"]] * 4
    one, two = (treetop.XRLinear(threads=1, seed=seed).fit(texts, labels) for seed in (0, 1))
    both = treetop.Ensemble([one, two])
    assert both._own_runtime().threads == 1
    both.save(tmp_path / "m")
    runtime = treetop.Runtime(threads=1, precision="fp32")
    assert treetop.load(tmp_path / "m", runtime=runtime)._own_runtime().threads == 1
    both.combine, both.weights = "softmax", [3.0, 1.0]
    assert (both.model_.combine, both.model_.weights) == ("softmax", (3.0, 1.0))


def test_members_must_be_fitted():
    with pytest.raises(Exception, match="This XRLinear instance is not fitted yet") as error:
        treetop.Ensemble([treetop.XRLinear()])
    assert isinstance(error.value, AttributeError)  # so that hasattr says no
