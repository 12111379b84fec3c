import json

import pytest

from treetop.errors import TreetopError
from treetop.ranking.combining import COMBINE
from treetop.settings import notation, presets
from treetop.settings import schema as config


def test_settings_go_through_json_and_back():
    settings = config.make_settings({"alpha": 0.25, "stop_words": ["a", "b"]})
    assert config.make_settings(json.loads(json.dumps(config.to_json(settings)))) == settings


TYPES = {"xr-linear": config.LinearSettings, "xr-transformer": config.TransformerSettings}


@pytest.mark.parametrize("name", presets.names())
def test_every_preset_is_valid(name):
    kind = TYPES[presets.kind_of(name)]
    assert config.make_settings(presets.settings_of(name), kind).ranker().beam > 0
    if "ensemble" in presets.read(name):
        members, combine = presets.ensemble_of(name)
        assert len(members) == 3
        assert combine in COMBINE
        for member in members:
            config.make_settings({**presets.settings_of(name), **member}, kind)


def test_the_papers_table_of_hyperparameters():
    """Table 7: preliminary and refined tree, learning rate, steps, tokens, α, λ."""
    rows = {
        "eurlex-4k": ("16-256-L", "4-32-256-L", 5e-5, "2400 steps", 128, 1.0, 0.5),
        "wiki10-31k": ("128-2048-L", "8-128-2048-L", 1e-4, "4000 steps", 256, 0.25, 0.25),
        "amazoncat-13k": ("128-1024-L", "128-1024-L", 1e-4, "45000 steps", 256, 2.0, 2.0),
        "wiki-500k": ("64-512-4096-32768", "8-256-8192-L", 1e-4, "60000 steps", 128, 0.25, 0.25),
        "amazon-670k": ("128-2048-32768", "8-256-8192-L", 1e-4, "20000 steps", 128, None, 1.0),
        "amazon-3m": ("128-2048-32768", "8-256-8192-L", 1e-4, "30000 steps", 128, 0.125, 0.125),
    }
    for name, (first, refined, rate, steps, tokens, alpha, lambda_) in rows.items():
        made = config.make_settings(presets.settings_of(name), config.TransformerSettings)
        assert (made.first_tree, made.tree, made.budget) == (first, refined, steps)
        assert (made.learning_rate, made.max_length) == (rate, tokens)
        assert made.lambda_ == made.tune_lambda == lambda_
        assert made.cost_sensitive == made.tune_cost_sensitive == (alpha is not None)
        assert alpha is None or made.alpha == made.tune_alpha == alpha
        assert (made.dense_weight, made.center, made.head_learning_rate, made.trees) == (
            1.0,
            False,
            None,
            1,
        )


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


def test_trees_that_count_different_things():
    settings = config.LinearSettings(ngrams="word:1 + char:3 | word:1 | char:3@9", trees=3)
    assert [(one.unit, one.first) for one in settings.analysers()] == [
        ("word", None),
        ("char", None),
        ("char", 9),
    ]
    assert settings.views() == [[0, 1], [0], [2]]
    fewer = config.LinearSettings(ngrams="word:1|char:3", trees=1)
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
        ({"branching": 1}, "branching is 1"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(values, message):
    with pytest.raises(TreetopError) as error:
        config.make_settings(values)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_unknown_preset():
    with pytest.raises(TreetopError, match="unknown preset 'fest': choose one of xr-linear"):
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
