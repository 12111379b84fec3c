"""The commands in this process: help, versions, quiet and JSON output, completion, Ctrl-C."""

import json
import os
import re
import shlex
import subprocess
import sys

import pytest
import typer

from tests.tiny import documents
from treetop import XRLinear, __version__
from treetop.cli.completion import complete_preset, complete_setting, complete_setting_name
from treetop.cli.main import app, run_command
from treetop.cli.usage import commands_by_group, option_rows
from treetop.estimators import XRTransformer

TEXTS, LABELS = documents(24)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with data and a model."""
    here = tmp_path_factory.mktemp("place")
    (here / "data").mkdir()
    for split in ("train", "test"):
        (here / "data" / f"{split}.txt").write_text("\n".join(TEXTS) + "\n")
        lines = ("\t".join(line) for line in LABELS)
        (here / "data" / f"{split}.labels").write_text("\n".join(lines) + "\n")
    table = "".join(f"{text},{';'.join(line)}\n" for text, line in zip(TEXTS, LABELS, strict=True))
    (here / "table.csv").write_text("text,labels\n" + table)
    XRLinear(threads=1).fit(TEXTS, LABELS).save(here / "model")
    return here


@pytest.fixture
def output_of(place, monkeypatch, capsys):
    """Runs a command; what it prints on stdout and stderr."""
    monkeypatch.chdir(place)

    def run(command):
        assert run_command(shlex.split(command)) == 0
        return capsys.readouterr()

    return run


def commands():
    """Every command by its full name."""
    for name, command in typer.main.get_command(app).commands.items():
        for sub, inner in getattr(command, "commands", {"": command}).items():
            yield f"{name} {sub}".strip(), inner


def test_versions(output_of):
    assert output_of("--version").out == f"treetop {__version__}\n"
    assert output_of("-V").out == f"treetop {__version__}\n"
    shown = output_of("-v --version").out
    assert re.match(rf"treetop {re.escape(__version__)}, Python 3\.\d+\.\d+, numpy \d", shown)


def test_commands_are_grouped_by_task(output_of):
    shown = output_of("-h").out
    assert shown == output_of("--help").out == output_of("").out
    headings = re.findall(r"^(\w.*):$", shown, re.MULTILINE)
    groups = ["Get started", "Use a model", "Change a model", "Look up", "Set up"]
    assert headings == [*groups, "Options", "Output"]
    assert list(commands_by_group(typer.main.get_command(app))) == ["Get started", *groups[1:]]


@pytest.mark.parametrize(("name", "command"), list(commands()), ids=[name for name, _ in commands()])
def test_the_help_of_a_command(output_of, name, command):
    shown = output_of(f"{name} -h").out
    assert shown.startswith(f"Usage: treetop {name} ")
    assert not re.search(r"<\w+|list\[", shown)
    for rows in option_rows(command.params).values():
        for flags, text in rows:
            assert re.fullmatch(r"(-\w, |--optimize, )?-[-\w]+(, --no-[-\w]+| \S+)?|[A-Z]+", flags), (
                flags
            )
            assert text[0].isupper() or text.startswith(("0:", "Hub")), text
    for example in (command.epilog or "").splitlines():
        words = shlex.split(example.rpartition("| ")[2])
        assert " ".join(words).startswith(f"treetop {name}")
        context = command.make_context(name, words[1 + len(name.split()) :])
        assert context.params


@pytest.mark.parametrize(
    "command",
    [
        "evaluate model data --json --allow-training-data",
        "data inspect data --json",
        "data formats --json",
        "data list --json",
        "presets --json",
        "settings beam trees --json",
        "compress model -o small --data data --json",
        "explain model 'red apple' --json",
        "train data -o trained --json",
    ],
)
def test_json_is_all_there_is_on_stdout(output_of, command):
    assert json.loads(output_of(command).out)
    assert output_of(f"{command} -q").err == ""


def test_what_json_says(output_of):
    trained = json.loads(output_of("train data -o trained --json --set trees=1").out)
    labels = len({name for line in LABELS for name in line})
    assert trained["output"] == "trained"
    assert (trained["documents"], trained["labels"], trained["run"]) == (24, labels, None)
    assert {"reading data", "text features", "saving"} <= set(trained["stages"])
    inspected = json.loads(output_of("data inspect data --json").out)
    assert inspected["format"] == "text-lines"
    assert inspected["splits"]["test"]["documents"] == 24
    assert inspected["splits"]["train"]["mean_labels_per_document"] == 3.0
    compressed = json.loads(output_of("compress model -o small --data data --json").out)
    assert compressed["after"]["bytes"] < compressed["before"]["bytes"]
    assert (
        compressed["before"]["P@1"]
        == json.loads(output_of("evaluate model data --allow-training-data --json").out)["P@1"]
    )
    (beam,) = json.loads(output_of("settings beam --json").out)["settings"]
    assert (beam["name"], beam["default"]) == ("beam", None)
    assert beam["models"] == ["xr-linear", "xr-transformer"]


@pytest.mark.parametrize("command", ["-q train data -o trained", "train data -o trained -q"])
def test_quiet_prints_nothing_but_results(output_of, command):
    assert tuple(output_of(command)) == ("", "")


def test_verbose_shows_versions_and_durations(output_of):
    lines = output_of("train data -o trained -v").err.splitlines()
    assert lines[0].startswith(f"treetop: treetop {__version__}, Python ")
    assert re.fullmatch(r"  total +[\d.]+ s", lines[-1])


def test_predict_reads_the_text_column_of_a_table(output_of):
    from_table = output_of("predict model table.csv -k 2").out
    lines = output_of("predict model data/train.txt -k 2").out.splitlines()
    kept = [json.loads(line) for line in from_table.splitlines()]
    assert [one["predicted_labels"] for one in kept] == [json.loads(line)["labels"] for line in lines]
    assert [one["text"] for one in kept] == TEXTS
    assert from_table == output_of("predict model table.csv -k 2 --text-column text").out


def test_predict_shows_progress_for_a_file(output_of, place):
    shown = output_of("predict model data/train.txt -o predictions.jsonl").err.splitlines()
    assert re.fullmatch(r"treetop: loading model: [\d.]+ s", shown[0])
    assert re.fullmatch(r"treetop: predicting: [\d.]+ s, 24 texts", shown[1])
    assert shown[2].startswith("treetop: this model is not calibrated")
    assert "run treetop calibrate MODEL DATA" in shown[2]
    assert (place / "predictions.jsonl").read_text().count("\n") == 24


def test_the_commands_to_type_next_are_quoted(output_of, place):
    (place / "my data.csv").write_text((place / "table.csv").read_text())
    shown = output_of("train 'my data.csv' -o 'my model' --text-column text").out.splitlines()
    assert shown[2:5] == [
        "Next:",
        "  treetop evaluate 'my model' TESTDATA --text-column text  # metrics on test documents",
        "  treetop predict 'my model' texts.txt                     # labels for texts, one per line",
    ]


def test_an_interrupted_run_names_the_command_that_resumes_it(place, monkeypatch, capsys, encoder):
    def fit(self, *_, run, **__):
        run.mkdir(parents=True, exist_ok=True)
        (run / "run.json").write_text('{"treetop": 1, "data": "x"}')
        raise KeyboardInterrupt

    monkeypatch.setattr(XRTransformer, "fit", fit)
    monkeypatch.chdir(place)
    typed = ["train", "data", "-o", "a model", "--model", "xr-transformer", "--encoder", encoder]
    assert run_command([*typed, "--overwrite"]) == 130
    command = capsys.readouterr().err.splitlines()[-1].partition("resume with: ")[2]
    assert shlex.split(command) == ["treetop", *typed, "--resume"]
    assert run_command([*typed, "--resume"], "python -m treetop") == 130
    command = capsys.readouterr().err.splitlines()[-1].partition("resume with: ")[2]
    assert shlex.split(command) == ["python", "-m", "treetop", *typed, "--resume"]


def test_an_interrupted_linear_training_leaves_nothing(place, monkeypatch, capsys):
    def fit(self, *_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(XRLinear, "fit", fit)
    monkeypatch.chdir(place)
    assert run_command(["train", "data", "-o", "interrupted"]) == 130
    assert capsys.readouterr().err.endswith("treetop: stopped; nothing was left half-written\n")
    assert not (place / "interrupted").exists()


def test_completion_of_values():
    assert [value for value, _ in complete_preset("fr")] == ["frozen"]
    assert [value for value, _ in complete_setting("be")] == ["beam=null"]
    assert [value for value, _ in complete_setting_name("be")] == ["beam"]
    choices = [value for value, _ in complete_setting("loss=")]
    assert choices == ["loss=squared-hinge", "loss=hinge", "loss=logistic"]
    assert [value for value, _ in complete_setting("center=t")] == ["center=true"]
    assert complete_setting("nothing=") == []


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("treetop tr", ["train"]),
        ("treetop train mydata --preset bon", ["bonsai"]),
        ("treetop data convert mydata new --to js", ["jsonl"]),
    ],
)
def test_completion_in_bash(typed, expected):
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    code = "import sys; sys.argv[0] = 'treetop'; from treetop.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **words, "_TREETOP_COMPLETE": "complete_bash"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == expected


def test_the_script_for_completion_can_be_shown():
    done = subprocess.run(
        ["bash", "-c", f"{shlex.quote(sys.executable)} -m treetop --show-completion; true"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "complete -o default -F" in done.stdout
