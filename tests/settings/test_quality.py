"""One dial: qualities are settings, and settings given by hand win."""

import pytest

import treetop
from treetop.cli.main import run_command
from treetop.errors import TreetopError
from treetop.settings.making import PARAMETERS
from treetop.settings.quality import QUALITIES, UPPER_LAYERS, plans, quality_settings


@pytest.mark.parametrize("kind", list(PARAMETERS))
@pytest.mark.parametrize("quality", list(QUALITIES))
def test_a_quality_is_valid_settings_of_each_kind(kind, quality):
    PARAMETERS[kind].settings(quality_settings(quality, kind))


def test_qualities_go_from_little_to_much():
    quick, balanced, best = map(treetop.XRLinear.of_quality, QUALITIES)
    assert quick.trees < balanced.trees < best.trees
    assert not quick.competition
    assert balanced.get_params() == treetop.XRLinear().get_params()
    assert best.ngrams.count("|") == best.trees - 1, "every tree has features of its own"
    assert not treetop.XRTransformer.of_quality("quick").fine_tune


def test_settings_given_by_hand_win():
    assert treetop.XRLinear.of_quality("quick", trees=2).trees == 2


def test_an_unknown_quality_is_an_error():
    with pytest.raises(TreetopError, match="quality is 'fine': choose one of quick, balanced, best"):
        quality_settings("fine", "xr-linear")


def test_plans_go_from_much_to_little():
    assert [name for name, _ in plans("xr-linear", "best")] == ["best", "balanced", "quick"]
    listed = dict(plans("xr-transformer", "balanced"))
    assert list(listed.values())[1:3] == [{"tuned_layers": UPPER_LAYERS}, {"fine_tune": False}]
    assert [name.split(",")[0] for name in listed] == ["balanced"] * 3 + ["quick"]
    for settings in listed.values():
        PARAMETERS["xr-transformer"].settings(settings)


@pytest.fixture(scope="module")
def documents():
    colors = ["red", "green", "blue", "yellow"]
    texts = [f"{colors[n % 4]} word{n % 97} word{n % 89}" for n in range(1200)]
    return texts, [[colors[n % 4]] for n in range(1200)]


def params_of(quality):
    return treetop.XRLinear.of_quality(quality).get_params()


def test_a_time_becomes_the_highest_quality_that_fits(documents):
    assert treetop.XRLinear.within("1h", *documents).get_params() == params_of("best")
    assert treetop.XRLinear.within("1h", *documents, trees=2).trees == 2
    hurried = treetop.XRLinear.within("0.0001s", *documents)
    assert hurried.get_params() == params_of("quick")
    assert hurried.fit(*documents).settings_.trees == 1


def test_the_command_plans_and_trains_what_fits(documents, tmp_path, capsys):
    texts, labels = documents
    (tmp_path / "train.txt").write_text("\n".join(texts))
    (tmp_path / "train.labels").write_text("\n".join(name for (name,) in labels))
    command = ["train", str(tmp_path), "-o"]
    assert run_command([*command, str(tmp_path / "quick"), "--quality", "quick"]) == 0
    assert treetop.load(tmp_path / "quick").settings_.trees == 1
    assert run_command([*command, str(tmp_path / "planned"), "--time", "0.0001s"]) == 0
    shown = capsys.readouterr().err
    assert "plan for 0.0001s: quality quick, although it is estimated to take longer" in shown
    assert treetop.load(tmp_path / "planned").settings_.trees == 1


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--time", "soon"], "time 'soon' is not understood: write it as 90s, 30m or 1.5h"),
        (["--quality", "good"], "quality is 'good': choose one of quick, balanced, best"),
    ],
)
def test_mistakes_are_told_in_one_line(option, message, tmp_path, capsys):
    assert run_command(["train", str(tmp_path), "-o", str(tmp_path / "m"), *option]) == 2
    assert message in capsys.readouterr().err
