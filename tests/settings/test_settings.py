"""Settings: names, bounds, presets, notation and errors."""

import inspect
import json

import numpy as np
import pytest

import treetop
from treetop.errors import TreetopError
from treetop.fields import documented_fields, facts_of
from treetop.ranking.combining import COMBINE
from treetop.runtime import Runtime
from treetop.runtime.progress import Reporter
from treetop.settings import names, notation, presets
from treetop.settings.declared import UndeclaredSettingError, declared
from treetop.settings.making import (
    PARAMETERS,
    TRANSFORMER,
    check_parameters,
    from_json,
    make_settings,
    to_json,
)
from treetop.settings.schema import LinearSettings, TransformerSettings


def test_settings_survive_a_round_trip_through_json():
    settings = make_settings({"alpha": 0.25, "stop_words": ["a", "b"]})
    assert from_json(json.loads(json.dumps(to_json(settings))), LinearSettings) == settings


@pytest.mark.parametrize("name", presets.names())
def test_every_preset_is_valid(name):
    kind = presets.kind_of(name)
    check_parameters(kind, presets.settings_of(name))
    if "ensemble" in presets.read_preset(name):
        members, combine = presets.ensemble_of(name)
        assert len(members) == 3
        assert combine in COMBINE
        for member in members:
            check_parameters(kind, {**presets.settings_of(name), **member})


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("word:1-2", [("word", (1, 2), None)]),
        ("word:1-2 + char:3", [("word", (1, 2), None), ("char", (3, 3), None)]),
        ("word:1-2@300", [("word", (1, 2), 300)]),
    ],
)
def test_ngrams(spec, expected):
    assert notation.parse_views(spec) == [expected]


def test_each_tree_uses_its_own_ngrams():
    settings = LinearSettings(ngrams="word:1 + char:3 | word:1 | char:3@9", trees=3)
    assert [(one.unit, one.first) for one in settings.analysers()] == [
        ("word", None),
        ("char", None),
        ("char", 9),
    ]
    assert settings.views() == [[0, 1], [0], [2]]
    fewer = LinearSettings(ngrams="word:1|char:3", trees=1)
    assert [one.unit for one in fewer.analysers()] == ["word"]
    assert fewer.views() == [[0]]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"alhpa": 1}, "unknown setting 'alhpa': did you mean 'alpha'?"),
        ({"alpha": "big"}, "alpha is 'big': it must be of type float"),
        ({"alpha": 0}, "alpha is 0: it must be above 0"),
        ({"beam": True}, "beam is True: it must be of type int"),
        ({"loss": "l2"}, "loss is 'l2': choose one of squared-hinge, hinge, logistic"),
        ({"ngrams": "words 1"}, "ngrams 'words 1' is not understood"),
        ({"ngrams": "word:3-1"}, "is not understood"),
        ({"ngrams": "word:1@0"}, "word:1@400 for the first 400 characters"),
        ({"ngrams": "word:1|"}, "ngrams '' is not understood"),
        ({"branching": 1}, "branching is 1: it must be at least 2"),
        ({"max_weights": -3}, "max_weights is -3: it must be at least 1"),
        ({"seed": -1}, "seed is -1: it must be at least 0"),
        ({"lambda_": float("nan")}, "lambda_ is nan: it must be a finite number"),
        ({"tree": "typo"}, "tree 'typo' is not understood: write level sizes that end in L"),
        ({"tree": "16-8-L"}, "tree '16-8-L': level sizes must increase towards the labels"),
        ({"tree": "0-L"}, "tree '0-L' is not understood"),
    ],
)
def test_invalid_values_are_explained_in_one_line(values, message):
    with pytest.raises(TreetopError) as error:
        make_settings(values)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_unknown_preset():
    with pytest.raises(TreetopError, match="unknown preset 'fest': did you mean 'fast'"):
        presets.settings_of("fest")
    with pytest.raises(TreetopError, match="preset 'frozen' is for xr-transformer, not for xr-linear"):
        presets.settings_of("frozen", "xr-linear")
    with pytest.raises(TreetopError, match="names no ensemble"):
        presets.ensemble_of("fast")


def test_assignments():
    assert notation.parse_assignment("alpha=0.5") == ("alpha", 0.5)
    assert notation.parse_assignment("tree=4-L") == ("tree", "4-L")
    assert notation.parse_assignment("max_features=null") == ("max_features", None)
    with pytest.raises(TreetopError, match="write name=value"):
        notation.parse_assignment("alpha")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"weight_decay": -1}, "weight_decay is -1: it must be at least 0"),
        ({"dropout": 1.0}, "dropout is 1.0: it must be below 1"),
        ({"budget": "five"}, "budget 'five' is not understood"),
        ({"first_tree": "big"}, "first_tree 'big' is not understood"),
        ({"threads": -5}, "threads is -5: it must be at least 1"),
        ({"precision": "fp8"}, "precision is 'fp8': choose one of auto, fp32, bf16"),
        ({"checkpoint_minutes": 0}, "checkpoint_minutes is 0: it must be above 0"),
        ({"tensorboard": ""}, "tensorboard is '': give a folder"),
        ({"seed": 2**43}, "seed is 8796093022208: it must be below 8796093022208"),
        ({"lambda_": 1e-300}, "lambda_ is 1e-300: it must be at least 1e-15"),
        ({"tune_alpha": 1e300}, "tune_alpha is 1e+300: it must be below 1e+15"),
        ({"min_df": 1.5}, "min_df is 1.5: a fraction of all documents is at most 1.0; for a number of"),
        ({"max_df": 9.0}, "for a number of documents give an integer, such as 9"),
        ({"max_df": 0}, "max_df is 0, which drops every n-gram: 1.0 keeps all"),
        ({"budget": "0 epochs"}, "it must be above 0; fine_tune=false keeps the encoder frozen"),
        # Two labels: nothing is computed before it is known that the levels fit them.
        ({"tree": "4"}, "tree '4' does not end in the 2 labels: write level sizes that end in L"),
        ({"budget": "5/3 epochs"}, "has 2 parts, but 1 levels are fine-tuned: give one figure per"),
        ({"largest_level": 1}, "has at most largest_level=1 nodes: add a coarser level"),
    ],
)
def test_invalid_settings_are_rejected_before_training(values, message):
    steps = []
    reporter = Reporter()
    reporter.step = lambda name, total=None: steps.append(name)
    with pytest.raises(TreetopError) as error:
        treetop.XRTransformer(**values).fit(["a text", "more"], [["a"], ["b"]], report=reporter)
    assert message in str(error.value)
    assert steps == []


def test_the_levels_of_a_tree_are_checked_before_the_texts_are_read():
    def texts():
        raise AssertionError
        yield

    with pytest.raises(TreetopError, match="tree '4' does not end in the 2 labels"):
        treetop.XRLinear(tree="4").fit(texts(), [["a"], ["b"]])


def test_folders_may_hold_values_that_new_models_may_not():
    held = {"max_df": 9.0, "budget": "0 epochs"}
    settings = from_json({**to_json(TransformerSettings()), **held}, TransformerSettings)
    assert (settings.max_df, settings.budget) == (9.0, "0 epochs")


def test_the_largest_seed_trains():
    model = treetop.XRLinear(seed=2**43 - 1, flat_labels=0, leaf=1)
    model.fit(["red apple", "green grass", "blue sky"] * 4, [["red"], ["green"], ["blue"]] * 4)
    assert model.predict(["green"], 1)[0][0][0] == "green"


def test_numpy_scalars_are_accepted():
    settings = make_settings(
        {
            "beam": np.int64(5),
            "alpha": np.float32(0.5),
            "balanced": np.bool_(False),
            "max_df": np.float64(1),
        }
    )
    assert (settings.beam, settings.alpha, settings.balanced, settings.max_df) == (5, 0.5, False, 1.0)
    assert [type(value) for value in (settings.beam, settings.alpha, settings.balanced)] == [
        int,
        float,
        bool,
    ]
    assert Runtime(threads=np.int32(2)).threads == 2


@pytest.mark.parametrize(
    ("foreign", "ours"),
    [
        ("random_state", "seed"),
        ("n_jobs", "threads"),
        ("epochs", "budget"),
        ("class_weight", "cost_sensitive"),
        ("max_iter", "passes"),
        ("lr", "learning_rate"),
        ("batch_size", "batch"),
        ("ngram_range", "ngrams"),
        ("beam_size", "beam"),
    ],
)
def test_names_of_other_libraries_are_suggested(foreign, ours):
    with pytest.raises(TreetopError, match=f"unknown setting '{foreign}': did you mean '{ours}'"):
        treetop.XRTransformer(**{foreign: 1})


def test_suggestions_are_settings_of_the_model():
    known = set(TRANSFORMER.defaults)
    assert set(names.ELSEWHERE.values()) <= known
    assert not set(names.ELSEWHERE) & known
    with pytest.raises(TreetopError) as error:
        treetop.XRLinear(lr=0.1)  # XRLinear has no learning rate
    assert str(error.value) == (
        "unknown setting 'lr': 'learning_rate' is a setting of XRTransformer: "
        "use that class, or leave it out"
    )
    with pytest.raises(TreetopError, match=r"unknown setting 'preset': use XRLinear\.from_preset"):
        treetop.XRLinear(preset="fast")


def test_a_deprecated_name_works_with_a_warning():
    with pytest.warns(FutureWarning, match="threshold is now called prune_below"):
        model = treetop.XRLinear(threshold=0.5)
    assert model.prune_below == 0.5
    with pytest.warns(FutureWarning, match="threshold is now called prune_below"):
        assert model.set_params(threshold=0.2).prune_below == 0.2
    assert from_json({"threshold": 0.3, "threads": 4}, LinearSettings).prune_below == 0.3


def test_british_spelling_is_understood():
    assert treetop.XRLinear(optimise="P@1").optimize == "P@1"
    with pytest.raises(TreetopError, match="optimise is another spelling of optimize: give one of"):
        treetop.XRLinear(optimise="P@1", optimize="P@1")


def test_every_setting_has_a_full_sentence_as_help():
    for name, setting in documented_fields(TransformerSettings).items():
        text = facts_of(setting).help
        assert text[0].isupper(), name
        assert text.endswith("."), name
        if setting.default in (None, "auto"):
            assert "By default" in text, name
    assert all(len(facts_of(option).help) > 10 for option in documented_fields(Runtime).values())


@pytest.mark.parametrize("estimator", [treetop.XRLinear, treetop.XRTransformer])
def test_constructors_show_their_parameters(estimator):
    shown = inspect.signature(estimator).parameters
    assert {name: one.default for name, one in shown.items()} == PARAMETERS[estimator.kind].defaults


def test_a_stage_can_read_only_declared_settings():
    settings = declared(LinearSettings(beam=7), ("beam", "trees", "ngrams"), "rankers")
    assert settings.beam == 7
    assert settings.views() == []
    with pytest.raises(
        UndeclaredSettingError, match="the stage rankers reads leaf without declaring it"
    ):
        settings.leaf
    with pytest.raises(UndeclaredSettingError, match="reads min_df"):
        declared(LinearSettings(ngrams="word:1"), ("trees", "ngrams"), "words").analysers()


def test_changing_a_runtime_returns_a_new_one():
    runtime = Runtime(threads=2)
    assert runtime.changed(threads=None) is runtime
    assert runtime.changed(device="cpu") == Runtime(threads=2, device="cpu")
    with pytest.raises(AttributeError):
        runtime.threads = 3
    with pytest.raises(TreetopError, match="processes"):
        Runtime(processes=0)


def test_deprecated_names_with_presets_and_with_current_names():
    model = treetop.XRLinear.from_preset("one-vs-all", prune_below=0.3)
    with pytest.warns(FutureWarning, match="threshold is now called prune_below"):
        assert (
            treetop.XRLinear.from_preset("one-vs-all", threshold=0.3).get_params() == model.get_params()
        )
    with pytest.raises(TreetopError, match="threshold is now called prune_below: give one of them"):
        treetop.XRLinear(threshold=0.2, prune_below=0.3)


@pytest.mark.parametrize("value", [[2], True, 1.0, "2"])
def test_threads_must_be_an_integer_even_if_an_equal_value_was_valid(value):
    treetop.XRLinear(threads=1).fit(["a", "b"], [["x"], ["y"]])
    with pytest.raises(TreetopError, match=r"threads is .*: it must be of type int or None"):
        treetop.XRLinear(threads=value).fit(["a", "b"], [["x"], ["y"]])


@pytest.mark.parametrize("value", [[1, 2], [["a"]], "the"])
def test_stop_words_must_be_a_list_of_strings(value):
    with pytest.raises(TreetopError, match=r"stop_words is .*: it must be of type tuple"):
        make_settings({"stop_words": value})


def test_options_not_set_in_a_runtime_come_from_the_estimator():
    model = treetop.XRTransformer(threads=1, device="cpu", precision="fp32", fallback=True)
    place = model._place(Runtime(threads=2))
    assert place == Runtime(threads=2, device="cpu", precision="fp32", fallback=True)
    with pytest.raises(TreetopError, match=r"runtime is 'cpu': give a treetop\.Runtime"):
        model._place("cpu")
    with pytest.raises(TreetopError, match="reporter is 5"):
        Runtime(reporter=5)
