"""Folders written by earlier versions load and give the same scores."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import treetop
from tests.folders.make_folders import K, cpu

FOLDERS = Path(__file__).parents[1] / "folders"
SCORES = np.load(FOLDERS / "scores.npz")
NAMES = sorted(path.name for path in FOLDERS.iterdir() if path.is_dir() and path.name[0] not in "_.")
# Their encoders run on torch or onnxruntime, whose last bits differ between processors.
ENCODED = {
    "transformer",
    "compressed-transformer",
    "ensemble",
    "onnx",
    "compressed-onnx",
    "pecos-transformer",
}
# Several trees: a tree that did not list a label counted 0 for it.
FORESTS = {"flat", "forest", "matrix", "compressed", "compressed-onnx", "compressed-transformer"} | {
    "compressed-wordvectors",
    "ensemble",
    "onnx",
    "transformer",
    "wordvectors",
}
# Models are saved without a precision: here they compute in the one they were trained in.
RUNTIME = treetop.Runtime(precision="fp32", device="cpu")


def documents_of(name):
    if name == "matrix":
        return sp.load_npz(FOLDERS / "matrix-queries.npz")
    return json.loads((FOLDERS / "queries.json").read_text())


@pytest.mark.parametrize("name", NAMES)
def test_old_folders_give_the_same_scores(name, tmp_path):
    if name in ENCODED:
        pytest.importorskip("onnxruntime" if "onnx" in name else "torch")
    model = treetop.load(FOLDERS / name, runtime=RUNTIME)
    for loaded in (model, saved_again(model, tmp_path / "again")):
        scores = loaded.predict_scores(documents_of(name), K)
        np.testing.assert_array_equal(scores.indptr, SCORES[f"{name}.indptr"])
        expected = SCORES[f"{name}.data"]
        if name in FORESTS:
            before = sp.csr_matrix((expected, SCORES[f"{name}.indices"], scores.indptr), scores.shape)
            assert_scored_in_every_tree(before, scores)
            continue
        np.testing.assert_array_equal(scores.indices, SCORES[f"{name}.indices"])
        if name in ENCODED and str(SCORES["cpu"]) != cpu():
            np.testing.assert_allclose(scores.data, expected, rtol=1e-5)
        else:
            np.testing.assert_array_equal(scores.data, expected)


def assert_scored_in_every_tree(before, now):
    """The same best label with the same score; no score has become smaller."""
    for old, new in zip(before, now, strict=True):
        if old.data[0] == old.data[-1]:
            continue  # a text without known words: all labels tie
        assert new.indices[0] == old.indices[0]
        assert new.data[0] == pytest.approx(old.data[0], abs=1e-3)
        scores = dict(zip(new.indices.tolist(), new.data.tolist(), strict=True))
        for label, score in zip(old.indices.tolist(), old.data.tolist(), strict=True):
            assert scores.get(label, new.data[-1]) >= score - 1e-3


def saved_again(model, folder):
    model.save(folder)
    return treetop.load(folder, runtime=RUNTIME)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "ensemble"])
def test_runtime_options_in_old_folders_are_ignored(name):
    stored = json.loads((FOLDERS / name / "config.json").read_text())["settings"]
    assert "threads" in stored
    model = treetop.load(FOLDERS / name)
    assert not hasattr(model.settings_, "threads")
    assert model.get_params()["threads"] is None
    assert model.settings_.prune_below == stored["threshold"]
