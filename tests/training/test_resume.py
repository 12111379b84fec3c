"""Resuming training: after a change of settings, after a kill, in an existing folder."""

from pathlib import Path

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
    stages = {f"{name}.safetensors" for name in ("competition", *STAGES)}
    assert set(written) == stages | {"run.json", "history.jsonl"}
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


def test_a_resumed_model_is_saved_like_the_undisturbed_one(encoder, tmp_path):
    def fit(**options):
        model = treetop.XRTransformer(encoder=encoder, **BRIEF)
        model.fit(*documents(), run=tmp_path / "run", **options)
        model.save(tmp_path / "model")
        return {
            path.relative_to(tmp_path): path.read_bytes()
            for path in (tmp_path / "model").rglob("*")
            if path.is_file()
        }

    whole = fit()
    assert fit(resume=True) == whole
    for name in ("tokens", "level-2", "rankers"):  # half of them is gone
        (tmp_path / "run" / f"{name}.safetensors").write_bytes(b"")
    history = tmp_path / "run" / "history.jsonl"
    history.write_bytes(history.read_bytes()[:-5] + b"\xff")
    again = fit(resume=True)
    timed = [Path("model", name) for name in ("history.jsonl", "config.json", "README.md")]
    assert {name for name in whole if again[name] != whole[name]} <= set(timed)
