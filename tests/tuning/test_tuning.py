"""Searches find better settings where there are some, and keep the defaults where there are none."""

import json

import numpy as np
import pytest

import treetop
from treetop.cli.main import run_command
from treetop.errors import TreetopError
from treetop.runtime import Runtime, extras
from treetop.settings.schema import LinearSettings
from treetop.tuning.search import complete_trials, open_study
from treetop.tuning.space import dimensions, of_default
from treetop.tuning.workspace import SplitDocuments, Workspace

optuna = pytest.importorskip("optuna")
RUNTIME = Runtime(threads=2)


@pytest.fixture(scope="module")
def hidden_in_letters():
    """Labels that follow from letters within words: words alone, which are all rare, say little."""
    rng = np.random.default_rng(0)
    letters = "bcdfghjklmnpqrstvwxz"
    stems = ["".join(rng.choice(list(letters), 4)) for _ in range(12)]
    numbers = rng.integers(0, 12, 500)
    ends = ["".join(rng.choice(list(letters), 6)) for _ in range(500)]
    texts = [f"{stems[n]}{end}" for n, end in zip(numbers, ends, strict=True)]
    return texts, [[f"label {n}"] for n in numbers]


def test_a_search_finds_what_the_default_misses(hidden_in_letters, tmp_path):
    texts, labels = hidden_in_letters
    given = {"ngrams": "word:1"}
    none = treetop.tune(texts, labels, settings=given, trials=2, runtime=RUNTIME)
    assert none.settings == given, "no other setting can help"
    assert none.value == none.default_value
    start = {"trees": 1, "competition": False}
    tuned = treetop.tune(texts, labels, settings=start, trials=8, runtime=RUNTIME)
    assert tuned.value >= tuned.default_value
    tuned.save(tmp_path / "found.json")
    estimator = treetop.XRLinear.from_preset(str(tmp_path / "found.json"))
    assert {name: getattr(estimator, name) for name in tuned.settings} == tuned.settings
    about = json.loads((tmp_path / "found.json").read_text())["about"]
    assert about.startswith("found by treetop tune in ")


def test_trees_of_a_workspace_score_as_the_estimator_does(hidden_in_letters):
    texts, labels = hidden_in_letters
    for extra in ({"ngrams": "word:1|char:2-3"}, {"flat_labels": 0, "leaf": 4, "ngrams": "char:1-3"}):
        model = treetop.XRLinear(trees=2, threads=2, competition=False, **extra)
        model.fit(texts[:400], labels[:400])
        Y = treetop.training.read_labels(labels, None)[0]
        documents = SplitDocuments(texts[:400], Y[:400], texts[400:], Y[400:])
        workspace = Workspace(documents, "nDCG@5", 2)
        settings = model.settings_
        *_, measured = workspace.growing(settings)
        expected = model.evaluate(texts[400:], labels[400:])["nDCG@5"]
        assert measured.value == pytest.approx(expected, abs=1e-6)
        assert len(workspace._features) == 1


def test_a_search_is_resumed_and_its_first_trial_is_the_default(hidden_in_letters, tmp_path):
    texts, labels = hidden_in_letters
    options = {"storage": tmp_path / "study.db", "runtime": RUNTIME, "settings": {"trees": 1}}
    assert treetop.tune(texts, labels, trials=2, **options).trials == 2
    assert treetop.tune(texts, labels, trials=3, **options).trials == 3
    names = optuna.get_all_study_names(f"sqlite:///{tmp_path}/study.db")
    study = optuna.load_study(study_name=names[0], storage=f"sqlite:///{tmp_path}/study.db")
    assert study.trials[0].params["lambda_"] == 1.0
    assert [trial.number for trial in complete_trials(study)][-1] >= 0


def test_settings_that_are_given_are_not_searched():
    settings = LinearSettings(lambda_=1.0, alpha=0.5, cost_sensitive=True, bias=1.0)
    space = dimensions(settings, {"lambda_": 1.0}, labels=10)
    assert "lambda_" not in space
    assert "leaf" not in space, "the tree is flat"
    assert of_default(space, settings)["alpha"] == 1.0
    assert {"leaf", "branching", "bias"} <= dimensions(settings, {}, labels=10_000).keys()


def test_several_processes_search_together(hidden_in_letters, tmp_path):
    texts, labels = hidden_in_letters
    tuned = treetop.tune(
        texts, labels, settings={"trees": 1}, trials=4, jobs=2, seconds=60, runtime=RUNTIME
    )
    assert tuned.trials >= 4


def test_the_command_writes_a_preset_that_train_takes(hidden_in_letters, tmp_path, capsys):
    texts, labels = hidden_in_letters
    (tmp_path / "train.txt").write_text("\n".join(texts))
    (tmp_path / "train.labels").write_text("\n".join(name for (name,) in labels))
    preset = tmp_path / "found.json"
    command = ["tune", str(tmp_path), "-o", str(preset), "--trials", "2", "--set", "trees=1"]
    assert run_command([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["preset"] == str(preset)
    train = ["train", str(tmp_path), "-o", str(tmp_path / "model"), "--preset", str(preset), "-q"]
    assert run_command(train) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "x.txt"], "x.txt: the preset must be called .json"),
        (["-o", "x.json", "--time", "soon"], "time 'soon' is not understood: write it as 90s, 30m or"),
        (["-o", "x.json", "--encoder", "minilm"], "--encoder is for --model xr-transformer"),
    ],
)
def test_mistakes_are_told_in_one_line(arguments, message, tmp_path, capsys):
    assert run_command(["tune", str(tmp_path), *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


def test_documents_that_cannot_be_searched_on():
    with pytest.raises(TreetopError, match="2 documents are too few to hold some out: pass validation"):
        treetop.tune(["a", "b"], [["x"], ["y"]])


def test_a_missing_extra_is_named(monkeypatch, tmp_path):
    def missing(name):
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(extras, "import_module", missing)
    with pytest.raises(TreetopError, match=r"searches for settings require an extra .*\[tune\]"):
        open_study(None, "", 0)
