"""Folders written by earlier versions load and give the same scores."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import treetop
from tests.folders.make_folders import K, cpu
from treetop.model.ensemble import EnsembleModel
from treetop.ranking.blank import without_rows
from treetop.ranking.combining import best_of

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
# Texts none of whose words a model knows. Character n-grams and encoders read any.
QUERIES = json.loads((FOLDERS / "queries.json").read_text())
UNKNOWN = {
    **dict.fromkeys(["flat", "tree", "wordvectors", "compressed-wordvectors"], QUERIES[-1:]),
    "pecos-linear": QUERIES,  # learned in another language
}


def documents_of(name):
    if name == "matrix":
        return sp.load_npz(FOLDERS / "matrix-queries.npz")
    return QUERIES


@pytest.mark.parametrize("name", NAMES)
def test_old_folders_give_the_same_scores(name, tmp_path):
    if name in ENCODED:
        pytest.importorskip("onnxruntime" if "onnx" in name else "torch")
    model = treetop.load(FOLDERS / name, runtime=RUNTIME)
    for loaded in (model, saved_again(model, tmp_path / "again")):
        scores, expected = loaded.predict_scores(documents_of(name), K), scores_before(name)
        np.testing.assert_array_equal(scores.indptr, expected.indptr)
        if name in FORESTS:
            assert_scored_in_every_tree(expected, scores)
            continue
        np.testing.assert_array_equal(scores.indices, expected.indices)
        if name in ENCODED and str(SCORES["cpu"]) != cpu():
            np.testing.assert_allclose(scores.data, expected.data, rtol=1e-5)
        else:
            np.testing.assert_array_equal(scores.data, expected.data)


def scores_before(name):
    """The scores of earlier versions, without those of texts that get no labels today."""
    parts = (SCORES[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
    scores = sp.csr_matrix(tuple(parts))
    if name == "matrix":
        return scores
    blank = [not text or text in UNKNOWN.get(name, ()) for text in documents_of(name)]
    return without_rows(scores, np.array(blank))


def assert_scored_in_every_tree(before, now):
    """The same best label; no score is smaller, and only where a tree was missing it rises.

    Of labels that were within 1e-3 of each other, another may be the best.
    """
    for old, new in zip(before, now, strict=True):
        if not old.nnz:
            continue
        scores = dict(zip(new.indices.tolist(), new.data.tolist(), strict=True))
        assert scores[old.indices[0]] >= new.data[0] - 1e-3
        for label, score in zip(old.indices.tolist(), old.data.tolist(), strict=True):
            assert scores.get(label, new.data[-1]) >= score - 1e-3


@pytest.mark.parametrize("name", sorted(FORESTS))
def test_each_tree_of_old_folders_gives_the_same_scores(name):
    """Combined as they were at first, the scores of the trees are those of then, bit for bit."""
    if name in ENCODED:
        pytest.importorskip("onnxruntime" if "onnx" in name else "torch")
    model = treetop.load(FOLDERS / name, runtime=RUNTIME).model_
    scores = combined_as_before(model, documents_of(name), K)
    expected = sp.csr_matrix(tuple(SCORES[f"{name}.{part}"] for part in ("data", "indices", "indptr")))
    np.testing.assert_array_equal(scores.indptr, expected.indptr)
    np.testing.assert_array_equal(scores.indices, expected.indices)
    same_cpu = name not in ENCODED or str(SCORES["cpu"]) == cpu()
    np.testing.assert_allclose(scores.data, expected.data, rtol=0 if same_cpu else 1e-5, atol=0)


def combined_as_before(model, documents, k):
    """The mean over the best 2k labels of each tree, or 4k of each member; others count as 0."""
    if isinstance(model, EnsembleModel):
        members = [combined_as_before(member, documents, 4 * k) for member in model.members]
        parts, weights = [softmax_of_rows(part) for part in members], np.array(model.weights)
    else:
        X = model.features(documents, RUNTIME)
        top = k if len(model.rankers) == 1 else 2 * k
        parts = [ranker.predict(X, top, 1) for ranker in model.rankers]
        weights = np.ones(len(parts))
        if len(parts) == 1:
            return parts[0]
    shares = [float(share) for share in weights / weights.sum()]
    return best_of(
        sp.csr_matrix(sum(share * part for share, part in zip(shares, parts, strict=True))), k
    )


def softmax_of_rows(scores):
    rows = np.repeat(np.arange(scores.shape[0]), np.diff(scores.indptr))
    data, peak = scores.data.astype(np.float64), np.full(scores.shape[0], -np.inf)
    np.maximum.at(peak, rows, data)
    data = np.exp(data - peak[rows])
    data /= np.bincount(rows, data, minlength=scores.shape[0])[rows]
    return sp.csr_matrix((data, scores.indices, scores.indptr), shape=scores.shape)


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
