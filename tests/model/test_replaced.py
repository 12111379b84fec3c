"""Loading from a folder that another process replaces: all of one model, or an error of one line."""

import os
import shutil

import numpy as np
import pytest

import treetop
from treetop.errors import TreetopError
from treetop.features.encoders.wordvectors import WordVectors
from treetop.model import folder as folder_module
from treetop.model import layout
from treetop.runtime import pinned
from treetop.runtime.pinned import read_pinned

TEXTS = ["red apple", "green pear", "red cherry", "green grass", "blue sky"] * 4
LABELS = [["red", "fruit"], ["green", "fruit"], ["red", "fruit"], ["green"], ["blue"]] * 4
OTHERS = [[f"other {name}" for name in names] for names in LABELS]


def with_vectors(path, seed):
    """A model with an encoder of random word vectors."""
    words = sorted({word for text in TEXTS for word in text.split()})
    vectors = np.random.default_rng(seed).standard_normal((len(words), 8)).astype(np.float32)
    lines = [
        f"{word} {' '.join(map(str, vector))}" for word, vector in zip(words, vectors, strict=True)
    ]
    path.write_text(f"{len(words)} 8\n" + "\n".join(lines) + "\n")
    settings = {"encoder": str(path), "fine_tune": False, "trees": 1, "words": False}
    return treetop.XRTransformer(**settings).fit(TEXTS, LABELS)


@pytest.mark.parametrize("pins", [True, False])
def test_a_model_that_is_replaced_while_it_is_loaded_is_not_mixed(tmp_path, monkeypatch, pins):
    models = [treetop.XRLinear(threads=1).fit(TEXTS, labels) for labels in (LABELS, OTHERS)]
    models[0].save(tmp_path / "model")
    read, calls = folder_module.read_arrays, []

    def replace_and_read(path):
        calls.append(path)
        if len(calls) == 2:
            models[1].save(tmp_path / "model")
        return read(path)

    monkeypatch.setattr(folder_module, "read_arrays", replace_and_read)
    if not pins:  # as on systems without /proc
        monkeypatch.setattr(pinned, "HANDLES", tmp_path / "absent")
    assert treetop.load(tmp_path / "model").predict(TEXTS[:3]) == models[1].predict(TEXTS[:3])


def test_an_ensemble_is_read_from_one_folder(tmp_path, monkeypatch):
    def ensemble(labels):
        members = [treetop.XRLinear(seed=seed).fit(TEXTS, labels) for seed in (0, 1)]
        return treetop.Ensemble(members)

    models = [ensemble(LABELS), ensemble(OTHERS)]
    models[0].save(tmp_path / "model")
    read, calls = folder_module.read_parts, []

    def replace_and_read(*arguments):
        if not calls:
            models[1].save(tmp_path / "model")
        calls.append(arguments)
        return read(*arguments)

    monkeypatch.setattr(folder_module, "read_parts", replace_and_read)
    assert treetop.load(tmp_path / "model").predict(TEXTS[:3]) == models[1].predict(TEXTS[:3])


def test_an_encoder_that_is_opened_late_is_the_one_of_the_model(tmp_path):
    models = [with_vectors(tmp_path / f"{seed}.vec", seed) for seed in (0, 1)]
    folder = tmp_path / "model"
    models[0].save(folder)
    early, late = treetop.load(folder), treetop.load(folder)
    expected = early.predict(TEXTS)
    models[1].save(folder)
    assert early.predict(TEXTS) == expected  # it is open
    for use in (lambda: late.predict(TEXTS), lambda: late.save(tmp_path / "copy")):
        with pytest.raises(TreetopError) as error:
            use()
        message = "was replaced or moved since the model was loaded: load it again"
        assert str(error.value) == f"{folder}: {message}"
    assert not (tmp_path / "copy").exists()
    assert treetop.load(folder).predict(TEXTS) == models[1].predict(TEXTS)
    shutil.rmtree(folder)
    with pytest.raises(TreetopError, match="was replaced or moved since the model was loaded"):
        late.predict(TEXTS)


def test_an_encoder_is_opened_late_from_a_folder_that_holds_the_same_encoder(tmp_path):
    model, folder = with_vectors(tmp_path / "0.vec", 0), tmp_path / "model"
    model.save(folder)
    late = treetop.load(folder)
    shutil.copytree(folder, tmp_path / "again")
    shutil.rmtree(folder)
    (tmp_path / "again").rename(folder)
    late.save(folder)  # over itself
    layout.keep_measures(folder, {"P@1": 0.5}, lambda _: "")
    assert late.predict(TEXTS) == model.predict(TEXTS)


def test_an_encoder_that_is_replaced_while_it_is_opened_is_refused(tmp_path, monkeypatch):
    models = [with_vectors(tmp_path / f"{seed}.vec", seed) for seed in (0, 1)]
    models[0].save(tmp_path / "model")
    late = treetop.load(tmp_path / "model")
    load = WordVectors.load

    def replace_and_load(path):
        models[1].save(tmp_path / "model")
        return load(path)

    monkeypatch.setattr(WordVectors, "load", replace_and_load)
    with pytest.raises(TreetopError, match="was replaced or moved since the model was loaded"):
        late.predict(TEXTS)


def test_errors_name_the_folder_and_not_its_handle(tmp_path):
    folder = tmp_path / "model"
    treetop.XRLinear(threads=1).fit(TEXTS, LABELS).save(folder)
    (folder / "tree.safetensors").unlink()
    with pytest.raises(TreetopError) as error:
        treetop.load(folder)
    missing = folder / "tree.safetensors"
    assert str(error.value) == f"{missing}: missing: copy the whole model folder or train again"

    def unreadable(place):
        raise PermissionError(13, "Permission denied", str(place / "config.json"))

    with pytest.raises(TreetopError) as error:
        read_pinned(folder, unreadable)
    assert str(error.value) == f"{folder / 'config.json'}: cannot be read (Permission denied)"


def test_a_folder_that_is_replaced_without_end_is_an_error(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()

    def replace(_):
        folder.rename(tmp_path / f"old {len(os.listdir(tmp_path))}")
        folder.mkdir()

    with pytest.raises(TreetopError, match="is being replaced again and again: try again later"):
        read_pinned(folder, replace)


def test_saving_metrics_of_a_model_waits_for_who_is_replacing_it(tmp_path, monkeypatch):
    folder = tmp_path / "model"
    treetop.XRLinear(threads=1).fit(TEXTS, LABELS).save(folder)
    seen = []

    def make_card(config):
        seen.extend(name for name in os.listdir(tmp_path) if name.endswith(".lock"))
        return "card"

    layout.keep_measures(folder, {"P@1": 0.5}, make_card)
    assert seen == [".model.lock"]
    assert os.listdir(tmp_path) == ["model"]
