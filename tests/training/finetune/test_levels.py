"""What settings of fine-tuning do to its levels: losses, bootstrapping, validation, TensorBoard."""

import itertools

import pytest

torch = pytest.importorskip("torch")

import treetop  # noqa: E402
from tests.tiny import BRIEF, documents  # noqa: E402
from treetop.training.finetune import trainer as trainer_module  # noqa: E402
from treetop.training.finetune.trainer import LevelTrainer  # noqa: E402


def test_validation_keeps_the_best_weights(encoder):
    texts, labels = documents(64)
    settings = {**BRIEF, "validate_every": 0.25, "learning_rate": 1e-3}
    model = treetop.XRTransformer(encoder=encoder, **settings)
    model.fit(texts, labels, validation=documents(32, seed=5))
    scores = [entry["validation P@1"] for entry in model.history_ if entry["level"] == 2]
    assert len(scores) == 4
    assert all(0 <= score <= 1 for score in scores)
    split = treetop.XRTransformer(encoder=encoder, **settings, validation=0.25, patience=1)
    split.fit(texts, labels)
    assert split.train_documents_ == 48


def test_early_stopping_ends_a_level(encoder, monkeypatch):
    monkeypatch.setattr(LevelTrainer, "keep_if_best", fading(LevelTrainer.keep_if_best))
    model = treetop.XRTransformer(encoder=encoder, **{**BRIEF, "validate_every": 0.1}, patience=2)
    model.fit(*documents(64), validation=documents(32, seed=5))
    assert max(e["step"] for e in model.history_ if e["level"] == 2) < 12


def fading(original):
    """P@1 that only falls: the first weights stay the best."""
    scores = (0.9**number for number in itertools.count())

    def keep_if_best(self, score):
        original(self, next(scores))

    return keep_if_best


def losses_at_the_labels(encoder, **changes):
    model = treetop.XRTransformer(encoder=encoder, **{**BRIEF, **changes}).fit(*documents())
    return [facts["loss"] for facts in model.history_ if facts["level"] == 2]


@pytest.mark.parametrize("loss", ["bce", "squared-hinge"])
def test_every_label_is_learned_on_or_the_shortlist_alone(encoder, loss):
    # a sum over more labels is larger
    brief = {"tune_loss": loss, "tune_beam": 1, "learning_rate": 1e-6, "head_learning_rate": 1e-6}
    every, few = (
        losses_at_the_labels(encoder, tune_shortlist=which, **brief) for which in ("all", "beam")
    )
    assert every[0] > 1.2 * few[0]


def test_bootstrapping_lowers_the_loss_a_level_begins_with(encoder, monkeypatch):
    monkeypatch.setattr(trainer_module, "STEPS_BETWEEN_FIGURES", 1)
    first = {}
    for bootstrap in (True, False):
        model = treetop.XRTransformer(encoder=encoder, **BRIEF, bootstrap=bootstrap, dropout=0.0)
        model.fit(*documents())
        first[bootstrap] = next(e["loss"] for e in model.history_ if e["level"] == 2)
    assert first[True] < first[False]


def test_the_first_level_can_be_bootstrapped_too(encoder, monkeypatch):
    monkeypatch.setattr(trainer_module, "STEPS_BETWEEN_FIGURES", 1)
    first = {}
    for wanted in (True, False):
        model = treetop.XRTransformer(encoder=encoder, **BRIEF, bootstrap_first=wanted, dropout=0.0)
        first[wanted] = model.fit(*documents()).history_[0]["loss"]
    assert first[True] < first[False]


def test_tensorboard_gets_the_losses(encoder, tmp_path):
    pytest.importorskip("tensorboard")
    treetop.XRTransformer(encoder=encoder, **BRIEF, tensorboard=str(tmp_path / "board")).fit(
        *documents()
    )
    assert any((tmp_path / "board").iterdir())
