"""Data-dependent defaults of settings."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import treetop
from treetop.errors import TreetopError
from treetop.settings import auto
from treetop.settings.auto import (
    LONG_TEXTS,
    SAMPLED_TEXTS,
    SHORT_TEXTS,
    TITLES,
    first_sizes,
    learning_rates,
    sizes_by_branching,
    steps_by_level,
    with_costs,
    with_ngrams,
)
from treetop.settings.parts import RankerSettings
from treetop.settings.schema import LinearSettings, TransformerSettings


def labels(counts):
    """Return Y of documents with these numbers of labels."""
    return sp.csr_matrix(np.arange(max(counts))[None, :] < np.array(counts)[:, None], dtype=np.float32)


def resolved(counts, weights=None, **changes):
    settings = with_costs(LinearSettings(**changes), labels(counts), weights)
    return settings.cost_sensitive, settings.lambda_, settings.alpha


def test_lambda_is_inversely_proportional_to_labels_per_document():
    assert resolved([1, 1, 1]) == (True, 0.35, 0.3)
    assert resolved([3, 2, 4]) == (True, pytest.approx(0.35 / 3), 0.3)
    assert resolved([3, 2, 4, 0, 0]) == resolved([3, 2, 4])
    assert resolved([3, 2, 4], cost_sensitive=False) == (False, 0.35, 1.0)


def test_cost_sensitive_is_disabled_where_few_documents_have_most_labels():
    assert resolved([1] * 90 + [40] * 2) == (False, 0.35, 1.0)
    assert resolved([1] * 90 + [40] * 2, cost_sensitive=True)[0]
    assert resolved([1, 2, 8, 3])[0]


def test_explicit_values_are_kept():
    assert resolved([3, 2, 4], lambda_=2.0, alpha=0.5) == (True, 2.0, 0.5)


def test_document_weights_count_as_repetitions():
    assert resolved([1, 5], np.array([2.0, 1.0])) == resolved([1, 1, 5])
    assert resolved([1, 5], np.array([1.0, 0.0])) == resolved([1])
    assert resolved([2, 2], np.array([0.0, 0.0]))[0]


def test_documents_with_zero_weight_are_ignored_by_xrlinear(rng):
    X = sp.csr_matrix(rng.random((6, 8)).astype(np.float32))
    Y = labels([1, 2, 1, 1, 5, 5])
    names = list("abcde")
    weighted = treetop.XRLinear().fit(X, Y, label_names=names, sample_weight=[1, 1, 1, 1, 0, 0])
    absent = treetop.XRLinear().fit(X[:4], Y[:4], label_names=names)
    assert weighted.settings_.lambda_ == absent.settings_.lambda_ == pytest.approx(0.35 / 1.25)
    assert weighted.get_params()["lambda_"] is None
    assert (weighted.predict_scores(X, 5) != absent.predict_scores(X, 5)).nnz == 0


TITLE, SHORT, LONG = "a few words", "some words " * 20, "many words " * 80


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([TITLE] * 5, TITLES),
        ([SHORT] * 5, SHORT_TEXTS),
        ([LONG] * 5, LONG_TEXTS),
        ([SHORT, LONG, LONG], LONG_TEXTS),
        ([], TITLES),
        ([SHORT] * SAMPLED_TEXTS + [LONG] * 9999, SHORT_TEXTS),
    ],
)
def test_auto_ngrams_depend_on_the_length_of_the_texts(texts, expected):
    settings, returned = with_ngrams(LinearSettings(), texts)
    assert settings.ngrams == expected
    assert returned is texts


def test_an_iterator_of_texts_is_returned_in_full():
    texts = [f"text {number}" for number in range(SAMPLED_TEXTS + 7)]
    _, stream = with_ngrams(LinearSettings(), (text for text in texts))
    assert list(stream) == texts


def test_explicit_ngrams_are_kept():
    assert with_ngrams(LinearSettings(ngrams="char:3"), [LONG])[0].ngrams == "char:3"


def test_a_model_saves_the_resolved_ngrams(tmp_path):
    texts = [f"{word} " * 200 + word for word in ("red", "green", "blue", "pear")] * 5
    model = treetop.XRLinear().fit(texts, [[text[:3]] for text in texts])
    assert model.settings_.ngrams == LONG_TEXTS
    assert model.get_params()["ngrams"] == "auto"
    model.save(tmp_path / "m")
    again = treetop.load(str(tmp_path / "m"))
    assert again.predict(texts[:4], 1) == model.predict(texts[:4], 1)
    assert again.settings_.ngrams == LONG_TEXTS


@pytest.mark.parametrize(
    ("settings", "labels", "sizes"),
    [
        ({}, 3000, []),
        ({}, 3001, [31]),
        ({"flat_labels": 0, "leaf": 10, "branching": 4}, 100, [3, 10]),
        ({"tree": "flat"}, 10**6, []),
        ({"tree": "4-L"}, 9, [4]),
        ({"tree": "4-100-L"}, 50, [4]),
        ({"tree": "4-L"}, 1, []),
        ({"flat_labels": 0, "balanced": False}, 5000, None),
    ],
)
def test_level_sizes_of_the_refined_trees(settings, labels, sizes):
    assert auto.refined_sizes(LinearSettings(**settings), labels) == sizes


def test_leaf_and_branching_limit_clusters_and_nodes():
    for labels in (101, 1600, 1601, 30_000):
        sizes = sizes_by_branching(labels, 16, 100)
        assert -(-labels // sizes[-1]) <= 100
        assert all(-(-below // above) <= 16 for above, below in zip(sizes, sizes[1:]))
        assert sizes[0] <= 2 * 16


def test_two_nodes_are_no_level_of_their_own():
    assert sizes_by_branching(670_091, 16, 100) == [27, 419, 6701]
    assert sizes_by_branching(670_091, 16, 400) == [7, 105, 1676]
    assert sizes_by_branching(30_908, 16, 100) == [20, 310]
    assert sizes_by_branching(1601, 16, 100) == [17]
    assert sizes_by_branching(200, 16, 100) == [2]


def test_the_number_of_labels_decides_on_types_beam_and_bias():
    def chosen(labels, **given):
        settings = auto.for_size(LinearSettings(**given), labels)
        return settings.weight_type, settings.beam, settings.bias

    assert chosen(100_000) == ("float32", 10, None)
    assert chosen(100_001) == ("bfloat16", 10, None)
    assert chosen(250_001) == ("bfloat16", 20, 1.0)
    given = {"weight_type": "float32", "beam": 5, "bias": 0.0}
    assert chosen(10**6, **given) == ("float32", 5, 0.0)


@pytest.mark.parametrize(
    ("spec", "labels", "largest", "expected"),
    [
        ("16-256-L", 4000, 32_768, ([16, 256], 3)),
        ("16-256-4000", 4000, 32_768, ([16, 256], 3)),
        ("16-256", 4000, 32_768, ([16, 256], 2)),
        ("16-256-L", 4000, 300, ([16, 256], 2)),
        ("flat", 4000, 32_768, ([], 1)),
        ("auto", 32, 32_768, ([], 1)),
        ("auto", 1000, 32_768, ([32], 2)),
        ("auto", 30_000, 32_768, ([31, 965], 3)),
    ],
)
def test_levels_of_the_preliminary_tree(spec, labels, largest, expected):
    assert first_sizes(spec, labels, largest) == expected


def test_a_preliminary_tree_requires_a_level_that_can_be_fine_tuned():
    with pytest.raises(TreetopError, match="has at most largest_level=10 nodes: add a coarser level"):
        first_sizes("16-256-L", 4000, 10)


@pytest.mark.parametrize(
    ("budget", "levels", "expected"),
    [
        ("300/400/600 steps", 3, [300, 400, 600]),
        ("640 samples", 1, [20]),
        ("2 epochs", 1, [20]),
        ("100 steps", 2, [41, 59]),
        ("1 steps", 3, [1, 1, 1]),
    ],
)
def test_steps_by_level(budget, levels, expected):
    assert steps_by_level(budget, levels, documents=320, batch=32) == expected


def test_a_budget_by_level_requires_one_figure_per_level():
    with pytest.raises(
        TreetopError, match="has 2 parts, but 3 levels are fine-tuned: give one figure per"
    ):
        steps_by_level("1/2 steps", 3, 100, 10)


def test_the_default_learning_rate_falls_with_the_square_of_the_width():
    assert learning_rates(None, None, 384) == (2e-4, 2e-4)
    assert learning_rates(None, 1e-3, 768) == (5e-5, 1e-3)
    assert learning_rates(None, None, 128)[0] == 2e-4
    assert learning_rates(1e-5, None, 768) == (1e-5, 1e-5)


def test_bias_and_score_transform_depend_on_the_depth_of_the_tree():
    flat, deep = (auto.for_depth(RankerSettings(), depth) for depth in (1, 2))
    assert (flat.bias, flat.score_transform) == (1.0, "sigmoid")
    assert (deep.bias, deep.score_transform) == (0.0, "l3-ordered")
    given = auto.for_depth(RankerSettings(bias=0.5, score_transform="l1-hinge"), 1)
    assert (given.bias, given.score_transform) == (0.5, "l1-hinge")


def test_all_settings_of_a_fitted_model_are_resolved():
    texts = [f"{a} {b} {a}{b}" for a in ("red", "green", "blue") for b in ("apple", "pear", "sky")] * 2
    model = treetop.XRLinear(flat_labels=0, leaf=3).fit(texts, [text.split() for text in texts])
    nullable = {"max_weights", "tree_features"}  # null means no limit
    settings = vars(model.settings_)
    assert {name for name, value in settings.items() if value is None} <= nullable
    assert "auto" not in settings.values()
    assert model.settings_.tree == f"{model.rankers_[0].tree.sizes[0]}-L"
    assert model.get_params()["tree"] == "auto"


def test_values_resolved_for_fine_tuning_are_recorded():
    settings = auto.as_tuned(TransformerSettings(), 768, [31, 965, 30_000])
    assert (settings.learning_rate, settings.head_learning_rate) == (5e-5, 2e-3)
    assert settings.first_tree == "31-965-L"


def test_values_by_level_are_checked_before_any_work_starts():
    settings = LinearSettings(tree="3-9-L", beam="5/6", lambda_="1/.../2")
    auto.check_levels(settings, 40)
    with pytest.raises(TreetopError, match="beam '5/6' has 2 values, but the tree has 1 such levels"):
        auto.check_levels(settings, 9)
    listed = settings.ranker().by_level(3)
    assert [at.lambda_ for at in listed] == [1.0, 1.0, 2.0]
    assert [at.beam for at in listed] == [5, 6, 6]
    with pytest.raises(TreetopError, match="beam '5/6' has 2 values"):
        treetop.XRLinear(tree="flat", beam="5/6/7").set_params(tree="3-L", beam="5/6").fit(
            ["a b", "c d"] * 4, [["x"], ["y"], ["z"], ["u"]] * 2
        )


def test_training_calibrates_up_to_a_hundred_thousand_labels():
    settings = LinearSettings()
    assert auto.with_calibration(settings, auto.MANY_LABELS).calibration
    assert not auto.with_calibration(settings, auto.MANY_LABELS + 1).calibration
    assert not auto.with_calibration(replace(settings, calibration=False), 10).calibration
