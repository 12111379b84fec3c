import json

import pytest

from treetop import config
from treetop.errors import TreetopError


def test_settings_go_through_json_and_back():
    settings = config.make_settings({"alpha": 0.25, "stop_words": ["a", "b"]})
    assert config.make_settings(json.loads(json.dumps(config.to_json(settings)))) == settings


def test_every_preset_is_valid():
    for name in config.PRESETS:
        assert config.make_settings(config.preset(name)).ranker().beam > 0


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("word:1-2", [("word", (1, 2))]),
        ("word:1-2 + char:3", [("word", (1, 2)), ("char", (3, 3))]),
    ],
)
def test_ngrams(spec, expected):
    assert config.parse_ngrams(spec) == expected


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
        config.preset("fest")


def test_assignments():
    assert config.parse_assignment("alpha=0.5") == ("alpha", 0.5)
    assert config.parse_assignment("tree=4-L") == ("tree", "4-L")
    assert config.parse_assignment("max_features=null") == ("max_features", None)
    with pytest.raises(TreetopError, match="write name=value"):
        config.parse_assignment("alpha")
