"""Ensembles: how scores are combined, and how members are saved and checked."""

import numpy as np
import pytest
import scipy.sparse as sp

import treetop
from treetop.errors import TreetopError
from treetop.ranking.combining import COMBINE, best_of, combined, ranked_labels, restricted, worth

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


def test_linear_ranks_on_a_hand_computed_example():
    """100 labels or more: 100, 99, … as PECOS does with lists of 100; 0 for what is not listed."""
    a = sp.csr_matrix(([9.0, 8.0, 1.0], [7, 3, 5], [0, 3]), shape=(1, 200))
    b = sp.csr_matrix(([0.5, 0.4], [3, 9], [0, 2]), shape=(1, 200))
    assert worth(a, "linear-rank").toarray()[0, [7, 3, 5]].tolist() == [100, 99, 98]
    scores = combined([a, b], [1, 1], "linear-rank", 4)
    assert scores.indices.tolist() == [3, 7, 9, 5]
    assert scores.data.tolist() == [(99 + 100) / 2, 100 / 2, 99 / 2, 98 / 2]
    few = sp.csr_matrix(([0.5, 0.4], [1, 0], [0, 2]), shape=(1, 3))  # 3 labels: 3, 2, 1
    assert worth(few, "linear-rank").toarray().tolist() == [[2, 3, 0]]


def rank_average_of_pecos(*lists):
    """libpecos 1.2.8: `CsrEnsembler.rank_average` in a few lines."""
    longest = max(np.diff(one.indptr).max() for one in lists)
    total = np.zeros(lists[0].shape)
    for one in lists:
        for row in range(one.shape[0]):
            labels = one.indices[one.indptr[row] : one.indptr[row + 1]]
            total[row, labels] += longest - np.arange(labels.size)
    return total / len(lists)


def test_linear_ranks_are_those_of_pecos(members):
    lists = [member.predict_scores(TEXTS, 100) for member in members]
    ours = treetop.Ensemble(members, "linear-rank").predict_scores(TEXTS, 5).toarray()
    np.testing.assert_allclose(ours, rank_average_of_pecos(*lists), rtol=1e-6)


def test_raw_scores_of_the_members_are_combined(members):
    """They are the members' scores without a transform, from models that differ in nothing else."""
    raw = []
    for member in members:
        settings = {**member.get_params(), "score_transform": "identity", "flat_labels": 100}
        raw.append(treetop.XRLinear(**settings).fit(TEXTS, LABELS))
    every = [member.predict_scores(TEXTS, 5).toarray() for member in raw]
    scores = treetop.Ensemble(members, "raw-average").predict_scores(TEXTS, 5)
    np.testing.assert_allclose(scores.toarray(), np.mean(every, axis=0), atol=1e-6)
    assert (scores.data < 0).any()
    sigmoids = treetop.Ensemble(members, "raw-sigmoid").predict_scores(TEXTS, 5)
    expected = np.mean([1 / (1 + np.exp(-one)) for one in every], axis=0)
    np.testing.assert_allclose(sigmoids.toarray(), expected, atol=1e-6)
    ranks = treetop.Ensemble(members, "raw-linear-rank").predict_scores(TEXTS, 5)
    lists = [member.predict_scores(TEXTS, 100) for member in raw]
    np.testing.assert_allclose(ranks.toarray(), rank_average_of_pecos(*lists), rtol=1e-6)


def test_an_ensemble_of_ensembles_has_no_raw_scores(members):
    inner = treetop.Ensemble(members[:2])
    with pytest.raises(TreetopError, match="'raw-rank', but a member is an ensemble, which has no raw"):
        treetop.Ensemble([inner, members[2]], "raw-rank")


def test_only_listed_scores_are_kept():
    scores = sp.csr_matrix(([3.0, 0.0, 1.0, 5.0], [2, 0, 1, 0], [0, 3, 4]), shape=(2, 3))
    listed = sp.csr_matrix(([1.0, 1.0], [0, 1], [0, 2, 2]), shape=(2, 3))
    kept = restricted(scores, listed)
    assert kept.indices.tolist() == [0, 1]
    assert kept.data.tolist() == [0.0, 1.0]
    assert kept.indptr.tolist() == [0, 2, 2]


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


@pytest.mark.parametrize("combine", COMBINE)
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
