"""Each documented field of a dataclass is an option of a command, with the same bounds in Python."""

from dataclasses import dataclass
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from treetop.cli.main import app
from treetop.cli.model_options import EvaluateOptions, ExplainOptions, PredictOptions
from treetop.cli.options import OBJECTIVES, QUALITY_NAMES, TrainOptions
from treetop.cli.typer_options import options_from
from treetop.errors import TreetopError
from treetop.fields import documented, documented_fields, facts_of
from treetop.serve.options import ServiceOptions
from treetop.settings.quality import QUALITIES
from treetop.settings.schema import linear


@dataclass(frozen=True)
class PaintOptions(ServiceOptions):
    """The options of the service and two others."""

    max_colours: int = documented(3, "Maximum number of colours.", at_least=1)
    shade: tuple[str, ...] = documented((), "Shade of a colour.", flags=("-s", "--shade"))


def command_of(kind):
    """A command with the options of a dataclass, and the list of instances it was called with."""
    received = []
    alone = typer.Typer()
    alone.command()(options_from(kind)(received.append))
    return alone, received


def parameters(command):
    return {parameter.name: parameter for parameter in command.params}


def test_a_new_field_is_an_option_and_arrives():
    command, received = command_of(PaintOptions)
    known = parameters(typer.main.get_command(command))
    assert known["max_colours"].opts == ["--max-colours"]
    assert known["max_colours"].help == "Maximum number of colours."
    assert known["max_colours"].default == 3
    assert known["shade"].opts == ["-s", "--shade"]
    arguments = ["m", "--max-colours", "5", "-s", "light", "-s", "dark", "--port", "0"]
    assert CliRunner().invoke(command, arguments).exit_code == 0
    assert received == [PaintOptions(Path("m"), port=0, max_colours=5, shade=("light", "dark"))]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("serve", ServiceOptions),
        ("train", TrainOptions),
        ("predict", PredictOptions),
        ("explain", ExplainOptions),
        ("evaluate", EvaluateOptions),
    ],
)
def test_every_documented_field_is_an_option_of_its_command(name, kind):
    known = parameters(typer.main.get_command(app).commands[name])
    declared = {name: facts_of(field).help for name, field in documented_fields(kind).items()}
    shared = {"verbose", "quiet"}
    assert {option: one.help for option, one in known.items() if option not in shared} == declared


def test_without_options_a_command_has_the_defaults_of_python():
    command, received = command_of(ServiceOptions)
    assert CliRunner().invoke(command, ["m"]).exit_code == 0
    assert received == [ServiceOptions("m")]
    assert received[0].model == Path("m")


def test_the_token_may_come_from_the_environment():
    command, received = command_of(ServiceOptions)
    CliRunner().invoke(command, ["m"], env={"TREETOP_TOKEN": "secret"})
    assert received == [ServiceOptions("m", token="secret")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"port": -1}, "port is -1: it must be at least 0"),
        ({"port": 65_536}, "port is 65536: it must be below 65536"),
        ({"workers": 0}, "workers is 0: it must be at least 1"),
        ({"batch": 0}, "batch is 0: it must be at least 1"),
        ({"batch_wait": -0.5}, "batch_wait is -0.5: it must be at least 0"),
        ({"max_body": 0.0}, "max_body is 0.0: it must be at least 0.001"),
        ({"max_wait": float("nan")}, "max_wait is nan: it must be a finite number"),
        ({"timeout": float("inf")}, "timeout is inf: it must be a finite number"),
        ({"max_texts": "many"}, "max_texts is 'many': it must be of type int"),
        ({"allow_origin": "a"}, "allow_origin is 'a': it must be of type tuple[str, ...]"),
        ({"token": ""}, "the token must not be empty and must consist of ASCII characters"),
        ({"max_colours": 0}, "max_colours is 0: it must be at least 1"),
    ],
)
def test_bounds_are_those_of_the_declaration(options, message):
    with pytest.raises(TreetopError) as error:
        PaintOptions("m", **options)
    assert str(error.value) == message


def test_choices_are_those_of_the_settings():
    assert OBJECTIVES == linear.OBJECTIVES
    assert tuple(QUALITIES) == QUALITY_NAMES
