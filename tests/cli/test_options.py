"""One field of a dataclass is one option: of the command, with its bounds, and from Python."""

from dataclasses import dataclass, fields
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from treetop.cli.main import app
from treetop.cli.options import EvaluateOptions, TrainOptions, options_from
from treetop.errors import TreetopError
from treetop.fields import META, documented
from treetop.serve.options import ServiceOptions


@dataclass(frozen=True)
class MoreOptions(ServiceOptions):
    """Those of the service, and two new ones."""

    most_colours: int = documented(3, "Colours at most.", at_least=1)
    shade: tuple[str, ...] = documented((), "Of each colour.", flags=("-s", "--shade"))


def command_of(kind):
    """A command with the options of a dataclass, and what it was called with."""
    received = []
    alone = typer.Typer()
    alone.command()(options_from(kind)(received.append))
    return alone, received


def parameters(command):
    return {one.name: one for one in command.params}


def test_a_new_field_is_an_option_and_arrives():
    command, received = command_of(MoreOptions)
    known = parameters(typer.main.get_command(command))
    assert known["most_colours"].opts == ["--most-colours"]
    assert known["most_colours"].help == "Colours at most."
    assert known["most_colours"].default == 3
    assert known["shade"].opts == ["-s", "--shade"]
    arguments = ["m", "--most-colours", "5", "-s", "light", "-s", "dark", "--port", "0"]
    assert CliRunner().invoke(command, arguments).exit_code == 0
    assert received == [MoreOptions(Path("m"), port=0, most_colours=5, shade=("light", "dark"))]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("serve", ServiceOptions), ("train", TrainOptions), ("evaluate", EvaluateOptions)],
)
def test_every_documented_field_is_an_option_of_its_command(name, kind):
    known = parameters(typer.main.get_command(app).commands[name])
    declared = {one.name: one.metadata[META].help for one in fields(kind) if META in one.metadata}
    assert {option: one.help for option, one in known.items()} == declared


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
        ({"most_colours": 0}, "most_colours is 0: it must be at least 1"),
    ],
)
def test_bounds_are_those_of_the_declaration(options, message):
    with pytest.raises(TreetopError) as error:
        MoreOptions("m", **options)
    assert str(error.value) == message
