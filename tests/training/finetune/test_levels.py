"""Settings of fine-tuning: losses, bootstrapping, validation, TensorBoard."""

import itertools

import pytest

torch = pytest.importorskip("torch")

import treetop  # noqa: E402
from tests.tiny import BRIEF, documents  # noqa: E402
from treetop.training.finetune import trainer as trainer_module  # noqa: E402
from treetop.training.finetune.trainer import LevelTrainer  # noqa: E402
from treetop.training.finetune.validation import Validator  # noqa: E402


def test_validation_keeps_the_best_weights(encoder, monkeypatch):
    texts, labels = documents(64)
    found = []
    validate = Validator.__call__
    monkeypatch.setattr(Validator, "__call__", lambda self: found.append(validate(self)) or found[-1])
    settings = {**BRIEF, "validate_every": 0.25, "learning_rate": 1e-3}
    model = treetop.XRTransformer(encoder=encoder, **settings)
    model.fit(texts, labels, validation=documents(32, seed=5))
    scores = [entry["validation P@1"] for entry in model.history_ if entry["level"] == 2]
    assert [entry["step"] for entry in model.history_ if entry["level"] == 2] == [3, 6, 9, 12]
    assert scores == found[-4:]
    assert [score * 32 % 1 for score in scores] == [0] * 4  # a fraction of 32 documents
    split = treetop.XRTransformer(encoder=encoder, **settings, validation=0.25, patience=1)
    split.fit(texts, labels)
    assert split.train_documents_ == 48


def test_early_stopping_ends_a_level(encoder, monkeypatch):
    monkeypatch.setattr(LevelTrainer, "keep_if_best", fading(LevelTrainer.keep_if_best))
    model = treetop.XRTransformer(encoder=encoder, **{**BRIEF, "validate_every": 0.1}, patience=2)
    model.fit(*documents(64), validation=documents(32, seed=5))
    # validated after every step; the second and the third are not better than the first
    assert [e["step"] for e in model.history_ if e["level"] == 2] == [1, 2, 3]


def fading(original):
    """Replace P@1 by decreasing values, so that the first weights stay the best."""
    scores = (0.9**number for number in itertools.count())

    def keep_if_best(self, score):
        original(self, next(scores))

    return keep_if_best


def losses_at_the_labels(encoder, **changes):
    model = treetop.XRTransformer(encoder=encoder, **{**BRIEF, **changes}).fit(*documents())
    return [facts["loss"] for facts in model.history_ if facts["level"] == 2]


@pytest.mark.parametrize(
    ("loss", "of_all", "of_few"), [("bce", 4.83, 2.07), ("squared-hinge", 7.63, 2.60)]
)
def test_the_loss_covers_all_labels_or_the_shortlist(encoder, loss, of_all, of_few):
    # a sum over more labels is larger
    brief = {"tune_loss": loss, "tune_beam": 1, "learning_rate": 1e-6, "head_learning_rate": 1e-6}
    every, few = (
        losses_at_the_labels(encoder, tune_shortlist=which, **brief) for which in ("all", "beam")
    )
    assert every == [pytest.approx(of_all, rel=0.05)]
    assert few == [pytest.approx(of_few, rel=0.05)]


def test_bootstrapping_lowers_the_initial_loss_of_a_level(encoder, monkeypatch):
    monkeypatch.setattr(trainer_module, "STEPS_BETWEEN_FIGURES", 1)
    first = {}
    for bootstrap in (True, False):
        model = treetop.XRTransformer(encoder=encoder, **BRIEF, bootstrap=bootstrap, dropout=0.0)
        model.fit(*documents())
        first[bootstrap] = next(e["loss"] for e in model.history_ if e["level"] == 2)
    assert first[True] < first[False]


def test_bootstrapping_the_first_level(encoder, monkeypatch):
    monkeypatch.setattr(trainer_module, "STEPS_BETWEEN_FIGURES", 1)
    first = {}
    for enabled in (True, False):
        model = treetop.XRTransformer(encoder=encoder, **BRIEF, bootstrap_first=enabled, dropout=0.0)
        first[enabled] = model.fit(*documents()).history_[0]["loss"]
    assert first[True] < first[False]


def test_losses_are_logged_to_tensorboard(encoder, tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = tmp_path / "board"
    model = treetop.XRTransformer(encoder=encoder, **BRIEF, tensorboard=str(board)).fit(*documents())
    events = EventAccumulator(str(board)).Reload()
    for level in (1, 2):
        losses = [entry["loss"] for entry in model.history_ if entry["level"] == level]
        assert [event.value for event in events.Scalars(f"level {level}/loss")] == losses
