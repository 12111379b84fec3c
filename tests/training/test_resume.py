"""Resuming training: after a change of settings, after a kill, in an existing folder."""

import os
import random
import signal
import subprocess
import sys

import pytest

import treetop
from tests.tiny import BRIEF, documents, save_encoder
from treetop.errors import TreetopError

STAGES = ["text-features", "first-tree", "tokens", "level-1", "level-2", "rankers"]


def repeated_stages(folder, fit):
    """Return the stages whose files `fit` wrote again."""
    before = {name: (folder / f"{name}.safetensors").stat().st_mtime_ns for name in STAGES}
    fit()
    return [
        name for name in STAGES if (folder / f"{name}.safetensors").stat().st_mtime_ns != before[name]
    ]


def test_a_changed_setting_repeats_exactly_the_stages_that_depend_on_it(encoder, tmp_path):
    folder = tmp_path / "run"

    def fit(**changes):
        settings = {"encoder": encoder, **BRIEF, **changes}
        treetop.XRTransformer(**settings).fit(*documents(), run=folder, resume=True)

    fit()
    cases = [
        ({}, []),
        ({"trees": 4}, ["rankers"]),
        ({"beam": 20}, ["rankers"]),
        ({"lambda_": 1.0, "dense_weight": 1.0, "prune_below": 0.5}, ["rankers"]),
        ({"learning_rate": 1e-3}, ["level-1", "level-2", "rankers"]),
        ({"max_length": 8}, ["tokens", "level-1", "level-2", "rankers"]),
        ({"first_tree": "5-L"}, ["first-tree", "level-1", "level-2", "rankers"]),
        ({"ngrams": "word:1"}, ["text-features", "first-tree", "level-1", "level-2", "rankers"]),
        ({"threads": 1, "checkpoint_minutes": 3.0}, None),
    ]
    for changes, expected in cases:
        fit()
        again = repeated_stages(folder, lambda changes=changes: fit(**changes))
        assert again == (expected or []), changes


def test_changing_which_tree_uses_which_ngrams_repeats_the_rankers(encoder, tmp_path):
    texts, labels = documents()
    settings = {"encoder": encoder, **BRIEF, "fine_tune": False, "trees": 2}
    apart = treetop.XRTransformer(**settings, ngrams="word:1|char:3")
    apart.fit(texts, labels, run=tmp_path / "run")
    whole = treetop.XRTransformer(**settings, ngrams="word:1+char:3")
    fresh = whole.fit(texts, labels).predict(texts[:9])
    assert whole.fit(texts, labels, run=tmp_path / "run", resume=True).predict(texts[:9]) == fresh


def test_a_replaced_encoder_is_detected(tmp_path):
    folder, place = tmp_path / "run", tmp_path / "encoder"
    save_encoder(place)
    model = treetop.XRTransformer(encoder=str(place), **BRIEF, fine_tune=False)
    model.fit(*documents(), run=folder)
    written = (folder / "embedding.safetensors").stat().st_mtime_ns
    model.fit(*documents(), run=folder, resume=True)
    assert (folder / "embedding.safetensors").stat().st_mtime_ns == written
    save_encoder(place, seed=1)
    model.fit(*documents(), run=folder, resume=True)
    assert (folder / "embedding.safetensors").stat().st_mtime_ns != written


def test_an_existing_run_is_resumed_or_overwritten(encoder, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    model = treetop.XRTransformer(encoder=encoder, **BRIEF).fit(*documents(), run=folder)
    with pytest.raises(TreetopError, match="this run began on other data"):
        model.fit(*documents(60), run=folder, resume=True)
    written = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert set(written) == {f"{name}.safetensors" for name in STAGES} | {"run.json", "history.jsonl"}
    with monkeypatch.context() as patched:
        # The run's folder is checked before any work is done.
        patched.setattr("treetop.training.documents.read_documents", None)
        with pytest.raises(TreetopError, match=r"holds an earlier run.*resume=True.*overwrite=True"):
            model.fit(*documents(60), run=folder)
        with pytest.raises(TreetopError, match="resume or overwrite, not both"):
            model.fit(*documents(60), resume=True, overwrite=True)
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == written
    model.fit(*documents(60), run=folder, overwrite=True)
    again = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert set(again) == set(written)
    assert all(again[name] != written[name] for name in written)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "precious.txt").write_text("mine")
    with pytest.raises(TreetopError, match="is not the folder of a run"):
        treetop.XRTransformer(encoder=encoder, **BRIEF).fit(*documents(), run=tmp_path / "other")


SCRIPT = """
import sys, time
import treetop
from tests.tiny import documents
from treetop.training.finetune import trainer
trainer.STEPS_BETWEEN_FIGURES = 3
folder, encoder, model = sys.argv[1:]
settings = dict(encoder=encoder, max_length=16, batch=16, budget="40/60 steps", first_tree="6-L",
                checkpoint_minutes=1e-9, trees=2, threads=2)
print("ready", flush=True)
treetop.XRTransformer(**settings).fit(
    *documents(96), validation=documents(32, seed=5), run=folder, resume=True).save(model)
"""


def train(start_process, folder, encoder, model):
    """Start a process that trains, and wait until it has begun."""
    process = start_process(
        [sys.executable, "-c", SCRIPT, str(folder), encoder, str(model)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])},
    )
    assert process.stdout.readline().strip() == b"ready"
    return process


@pytest.mark.slow
def test_a_run_killed_at_random_moments_ends_with_the_same_model(encoder, tmp_path, start_process):
    assert train(start_process, tmp_path / "whole", encoder, tmp_path / "a").wait() == 0
    chosen = random.Random(7)
    kills = 0
    while True:
        process = train(start_process, tmp_path / "broken", encoder, tmp_path / "b")
        try:
            code = process.wait(timeout=chosen.uniform(0.3, 2.5) if kills < 6 else None)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
            continue
        assert code == 0
        break
    assert kills > 0  # how many depends on the machine
    for file in sorted((tmp_path / "a").rglob("*.safetensors")):
        twin = tmp_path / "b" / file.relative_to(tmp_path / "a")
        assert file.read_bytes() == twin.read_bytes(), file.name
