"""Public behaviour of XRTransformer: fit, predict, save and errors."""

import numpy as np
import pytest

import treetop
from tests.tiny import BRIEF, documents, same
from treetop.errors import TreetopError


def test_a_tiny_model_overfits(encoder):
    texts, labels = documents(64)
    model = treetop.XRTransformer(
        encoder=encoder,
        max_length=16,
        batch=16,
        budget="60/90 steps",
        first_tree="6-L",
        dropout=0.0,
        learning_rate=3e-3,
    )
    model.fit(texts, labels)
    assert model.score(texts, labels) == 1.0
    first, last = model.history_[0]["loss"], model.history_[-1]["loss"]
    assert last < first


def test_fine_tuning_beats_a_frozen_encoder(encoder):
    # the only n-gram kept is in every document: what is learned went through the encoder
    texts, labels = documents(400)
    unseen = documents(100, seed=9)
    settings = {
        "encoder": encoder,
        "max_length": 16,
        "batch": 32,
        "first_tree": "6-L",
        "max_features": 1,
        "dropout": 0.0,
        "learning_rate": 3e-3,
    }
    frozen = treetop.XRTransformer(**settings, fine_tune=False).fit(texts, labels)
    tuned = treetop.XRTransformer(**settings, budget="100/150 steps").fit(texts, labels)
    assert tuned.score(*unseen) > frozen.score(*unseen) + 0.1


def test_a_loaded_model_predicts_the_same(fitted, tmp_path):
    texts, _ = documents(20, seed=1)
    fitted.save(tmp_path / "model")
    loaded = treetop.load(str(tmp_path / "model"))
    assert same(loaded.predict_scores(texts, 5), fitted.predict_scores(texts, 5))
    assert loaded.history_ == fitted.history_
    names = {path.name for path in (tmp_path / "model").iterdir()}
    assert {"config.json", "encoder", "labels.txt", "tfidf.safetensors", "history.jsonl"} <= names
    loaded.save(tmp_path / "again")  # an encoder that was never opened is copied
    again = treetop.load(str(tmp_path / "again"))
    assert same(again.predict_scores(texts, 5), fitted.predict_scores(texts, 5))
    (tmp_path / "model" / "encoder" / "model.safetensors").write_bytes(b"short")
    with pytest.raises(TreetopError, match=r"encoder/model.safetensors: 5 bytes instead of"):
        treetop.load(str(tmp_path / "model"))


def test_the_seed_determines_the_model(fitted, encoder):
    texts, _ = documents(20, seed=1)
    again = treetop.XRTransformer(encoder=encoder, **BRIEF).fit(*documents())
    other = treetop.XRTransformer(encoder=encoder, **BRIEF, seed=1).fit(*documents())
    assert same(again.predict_scores(texts, 5), fitted.predict_scores(texts, 5))
    assert not same(other.predict_scores(texts, 5), fitted.predict_scores(texts, 5))


def test_predictions_for_empty_and_long_texts(fitted):
    predictions = fitted.predict(["", "red " * 10_000, "nothing known here"], k=3)
    assert [len(row) for row in predictions] == [0, 3, 3]  # the encoder reads unknown words
    assert all(np.isfinite(score) for row in predictions for _, score in row)


@pytest.mark.parametrize(
    ("settings", "fit", "message"),
    [
        ({}, (np.eye(3), [["a"]] * 3), "reads texts, not a feature matrix"),
        ({}, (["a"], [["x"], ["y"]]), "1 documents but labels for 2"),
        ({"budget": "3 weeks"}, (["a"], [["x"]]), "budget '3 weeks' is not understood"),
        ({"dropout": 1.0}, (["a"], [["x"]]), "dropout is 1.0: it must be below 1"),
        ({"pooling": "max"}, (["a"], [["x"]]), "pooling is 'max': choose one of auto, mean"),
        ({"validation": 0.01}, (["a b"] * 10, [["x"]] * 10), "leaves none on one side"),
        ({"tune_lambda": 0}, (["a b"], [["x"]]), "tune_lambda is 0: it must be above 0"),
        ({"seed": -1}, (["a b"], [["x"]]), "seed is -1: it must be at least 0"),
        ({"budget": "1.2.3 steps"}, (["a b"], [["x"]]), "is not understood"),
        ({"score_transform": "x"}, (["a b"], [["x"]]), "score_transform is 'x': choose one of auto"),
        ({}, (["a b", None], [["x"], ["y"]]), "document 1 is of type NoneType"),
        ({"encoder": "no/such"}, (["a b"], [["x"]]), "encoder 'no/such'"),
        ({"device": "warp"}, (["a b"], [["x"]]), "device 'warp' cannot be used"),
    ],
)
def test_errors_are_one_line(encoder, settings, fit, message):
    with pytest.raises(TreetopError) as error:
        treetop.XRTransformer(**{"encoder": encoder, **settings}).fit(*fit)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_single_label_and_fewer_documents_than_the_batch(encoder):
    model = treetop.XRTransformer(encoder=encoder, budget="2 epochs", max_length=8)
    model.fit(["red apple", "green pear"], [["fruit"], ["fruit"]])
    assert model.predict(["blue sky"])[0][0][0] == "fruit"


def test_clone(encoder):
    from sklearn.base import clone

    model = clone(treetop.XRTransformer(encoder=encoder, batch=7))
    assert model.get_params()["batch"] == 7
    assert repr(model) == f"XRTransformer(encoder={encoder!r}, batch=7)"


def test_set_params_after_fit_does_not_change_the_model(encoder, tmp_path):
    texts, _ = documents(10, seed=1)
    model = treetop.XRTransformer(encoder=encoder, **BRIEF, words=False, center=False)
    model.fit(*documents())
    before = model.predict_scores(texts, 5)
    model.set_params(words=True, center=True, dense_weight=3.0)
    assert same(model.predict_scores(texts, 5), before)
    model.save(tmp_path / "model")
    assert same(treetop.load(str(tmp_path / "model")).predict_scores(texts, 5), before)


def test_a_loaded_model_does_not_use_the_device_it_was_trained_on(encoder, tmp_path):
    settings = {**BRIEF, "fine_tune": False, "device": "cpu", "threads": 2}
    model = treetop.XRTransformer(encoder=encoder, **settings).fit(*documents())
    model.save(tmp_path / "model")
    loaded = treetop.load(str(tmp_path / "model"))
    assert {name: loaded.get_params()[name] for name in ("device", "threads", "precision")} == {
        "device": "auto",
        "threads": None,
        "precision": "auto",
    }
    on_cpu = loaded.predict_scores(["red sky"], 5, runtime=treetop.Runtime(device="cpu"))
    assert same(on_cpu, model.predict_scores(["red sky"], 5))
    with pytest.raises(TreetopError, match=r"device 'cuda:7' cannot be used .*: try device=cpu"):
        loaded.predict(["red sky"], runtime=treetop.Runtime(device="cuda:7"))
    with pytest.raises(TreetopError, match="device 'cuda:7' cannot be used"):
        model.predict(["red sky"], runtime=treetop.Runtime(device="cuda:7"))


def test_dropout_is_off_after_fit(fitted):
    assert not fitted.encoder_.training


def test_lone_surrogates_are_read_as_replacement_characters(fitted):
    # as the character that stands for what cannot be read
    assert fitted.predict(["red \ud800 sky"], k=2) == fitted.predict(["red ? sky"], k=2)
