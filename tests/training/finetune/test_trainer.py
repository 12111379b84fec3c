"""The training loop: resuming, memory of the device, and records."""

import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")

from tests.tiny import documents, save_encoder  # noqa: E402
from treetop.features.encoders.transformer import Encoder  # noqa: E402
from treetop.runtime import Runtime  # noqa: E402
from treetop.runtime.progress import Reporter  # noqa: E402
from treetop.settings.auto import warmup_steps  # noqa: E402
from treetop.settings.schema import TransformerSettings  # noqa: E402
from treetop.training.finetune import step as step_module  # noqa: E402
from treetop.training.finetune.batches import Batches  # noqa: E402
from treetop.training.finetune.graphs import PLAIN_STEPS  # noqa: E402
from treetop.training.finetune.head import Head  # noqa: E402
from treetop.training.finetune.network import LearningEncoder  # noqa: E402
from treetop.training.finetune.runlog import VALIDATION, RunLog  # noqa: E402
from treetop.training.finetune.sharing import batch_parts  # noqa: E402
from treetop.training.finetune.state import from_arrays, to_arrays  # noqa: E402
from treetop.training.finetune.targets import Targets  # noqa: E402
from treetop.training.finetune.trainer import LevelTask, LevelTrainer  # noqa: E402
from treetop.training.finetune.weighting import weighting_of  # noqa: E402
from treetop.training.run import Run, Stage  # noqa: E402

STEPS = 6
SETTINGS = replace(
    TransformerSettings(), batch=8, learning_rate=1e-2, dropout=0.1, weight_decay=0.01, clip=0.5
)
PRECISIONS = pytest.mark.parametrize("precision", ["fp32", "bf16"])


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return save_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture
def make(source):
    """Creates identical trainers of 5 nodes on 32 documents."""

    def make(precision="fp32", device="cpu", reporter=None, cuda_graphs=True, **changes):
        settings = replace(SETTINGS, **changes)
        runtime = Runtime(device=device, precision=precision, cuda_graphs=cuda_graphs)
        encoder = Encoder(source, max_length=16, dropout=settings.dropout).to(device)
        learning = LearningEncoder(encoder, encoder.tokens(documents(32)[0]), runtime)
        random = np.random.default_rng(0)
        relevance = sp.random(32, 5, 0.4, "csr", np.float32, random)
        targets = Targets(relevance, None, np.array([0, 5]), None, learning.device)
        head = Head(5, encoder.width, settings.dropout).to(learning.device)
        lengths = encoder.tokens(documents(32)[0]).lengths
        weighting = weighting_of(settings, settings.tune_weighting)
        batches = Batches(lengths, settings.batch, 3)
        (rising,) = warmup_steps(settings.warmup, [STEPS])
        task = LevelTask(1, targets, batches, STEPS, rising, weighting)
        return LevelTrainer(learning, head, task, settings, reporter or Reporter())

    return make


def log_of(run, runtime):
    return RunLog(run, Stage("level-1", (), ()), SETTINGS, {}, runtime)


def train(trainer, steps):
    trainer.encoder.train()
    trainer.head.train()
    for _ in range(steps):
        trainer.train_on(trainer.task.batches[trainer.step])


def assert_equal(state, twin):
    assert state.keys() == twin.keys()
    for name, tensor in state.items():
        assert tensor.dtype == twin[name].dtype, name
        assert torch.equal(tensor, twin[name]), name


def snapshot(trainer):
    return {name: tensor.clone() for name, tensor in trainer.state_dict().items()}


class Scores:
    """Stands in for `Validator` with predetermined values of P@1."""

    def __init__(self, *scores):
        self.remaining = list(scores)

    def __call__(self):
        return self.remaining.pop(0)


# State


@PRECISIONS
def test_resuming_from_a_state_gives_the_same_weights(make, precision):
    whole, first, second = make(precision), make(precision), make(precision)
    train(whole, 6)
    train(first, 3)
    before = snapshot(first)
    second.load_state_dict(first.state_dict())
    assert second.step == 3
    assert_equal(second.state_dict(), before)
    train(second, 3)
    assert_equal(second.state_dict(), whole.state_dict())
    assert torch.equal(second.losses[3:], whole.losses[3:])
    assert_equal(first.state_dict(), before)  # no memory is shared with the loaded state
    assert any(not torch.equal(before[name], whole.state_dict()[name]) for name in before)


def test_a_state_contains_weights_optimizer_and_progress(make):
    trainer = make()
    train(trainer, 2)
    trainer.keep_if_best(0.25)
    trainer.keep_if_best(0.125)
    state = trainer.state_dict()
    assert {name.split(".")[0] for name in state} == {
        "encoder",
        "head",
        "adam",
        "best",
        "step",
        "score",
        "since_best",
    }
    assert [state[name].tolist() for name in ("step", "score", "since_best")] == [[2], [0.25], [1]]
    weights = trainer.weights()
    assert {f"best.{name}" for name in weights} == {name for name in state if name.startswith("best.")}
    memory = {name for name in state if name.startswith("adam.")}
    assert memory == {
        f"adam.{number}.{name}"
        for number in range(len(weights))
        for name in ("step", "exp_avg", "exp_avg_sq")
    }
    again = make()
    again.load_state_dict(state)
    assert (again.best_score, again.since_best) == (0.25, 1)
    assert_equal(again.best_weights, trainer.best_weights)


def test_the_best_weights_are_restored_at_the_end(make):
    trainer = make(validate_every=1 / 3)
    log = log_of(Run(), Runtime())
    trainer.run(Scores(0.5, 0.75, 0.625), log)
    best = make(validate_every=1 / 3)
    train(best, 4)
    assert_equal(trainer.weights(), best.weights())
    assert [(one["step"], one[VALIDATION]) for one in log.history] == [(2, 0.5), (4, 0.75), (6, 0.625)]


@PRECISIONS
def test_resuming_from_a_checkpoint_file_gives_the_same_weights(make, precision, tmp_path):
    runtime = Runtime(checkpoint_minutes=1e-9)
    whole = make(precision, validate_every=1 / 3)
    whole.run(Scores(0.5, 0.25, 0.125), log_of(Run(), runtime))

    (tmp_path / "run").mkdir()
    run = Run(tmp_path / "run")
    run.fingerprint("level-1", {}, ())
    stopped = make(precision, validate_every=1 / 3)
    with pytest.raises(IndexError):  # there is no third score
        stopped.run(Scores(0.5, 0.25), log_of(run, runtime))
    state = log_of(run, runtime).load_checkpoint(1)
    assert int(state["step"]) == 4
    assert float(state["score"]) == 0.5
    resumed = make(precision, validate_every=1 / 3)
    resumed.load_state_dict(state)
    assert_equal(resumed.state_dict(), state)
    resumed.run(Scores(0.125), log_of(run, runtime))
    assert_equal(resumed.state_dict(), whole.state_dict())


def test_a_state_survives_conversion_to_arrays_and_back(make):
    trainer = make()
    train(trainer, 1)
    assert_equal(from_arrays(to_arrays(trainer.state_dict())), trainer.state_dict())


# The loop


def test_early_stopping_also_holds_after_resuming(make):
    notes = []
    reporter = Reporter()
    reporter.note = notes.append
    trainer = make(reporter=reporter, validate_every=1 / 6, patience=2)
    trainer.run(Scores(0.5, 0.5, 0.25), log_of(Run(), Runtime()))
    assert trainer.step == 3
    assert notes == ["level 1: no better P@1 in 2 validations"]
    # resumed from its last checkpoint, the level does not continue
    before = {name: tensor.clone() for name, tensor in trainer.weights().items()}
    again = make(validate_every=1 / 6, patience=2)
    again.load_state_dict(trainer.state_dict())
    again.run(Scores(), log_of(Run(), Runtime()))
    assert again.step == 3
    assert_equal(again.weights(), before)


def test_metrics_are_reported_and_recorded_and_repeated_steps_are_dropped(make, tmp_path):
    shown = []
    reporter = Reporter()
    reporter.step = lambda name, total: shown.append((name, total)) or (lambda: shown.append("."))
    reporter.figures = shown.append
    runtime = Runtime(checkpoint_minutes=1e-9, reporter=reporter)
    (tmp_path / "run").mkdir()
    run = Run(tmp_path / "run")
    run.fingerprint("level-1", {}, ())
    log = log_of(run, runtime)
    log.begin_level(1, "fine-tuning", step=0, steps=STEPS)
    figures = {"level": 1, "step": 2, "steps": STEPS, "loss": 0.5, "learning_rate": 0.1, "seconds": 1.0}
    log.record(figures)
    log.record({**figures, "step": 5, VALIDATION: 0.25})
    assert shown == [("fine-tuning", 6), ".", ".", "loss 0.500", *"...", "loss 0.500, P@1 25.0"]
    log.save_checkpoint(1, make().state_dict())
    lines = (tmp_path / "run" / "history.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["step"] for line in lines] == [2, 5]
    resumed = log_of(run, runtime)
    resumed.begin_level(1, "fine-tuning", step=4, steps=STEPS)
    assert resumed.history == [figures]


# Memory and recordings


def test_split_batches_have_the_same_gradients(make):
    whole, parts = make(dropout=0.0), make(dropout=0.0)
    rows = whole.task.batches[0]
    gradients = {}
    for name, trainer, size in (("whole", whole, 8), ("parts", parts, 3)):
        loss = trainer.take_step.objective.batch_gradients(batch_parts(rows, size), rows.size)
        gradients[name] = [loss, *(weight.grad for weight in trainer.optimizer.parameters)]
    for own, twin in zip(gradients["parts"], gradients["whole"], strict=True):
        torch.testing.assert_close(own, twin, rtol=1e-4, atol=1e-6)


class EagerRecorder:
    """Stands in for `Recorder` without a GPU: does the work that would be recorded."""

    def __init__(self, work):
        self.work, self.calls, self.most = work, 0, 99

    def __call__(self, rows, width, full):
        if len(rows) > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        self.calls += 1
        return self.work(rows, width, full)


@PRECISIONS
def test_recorded_steps_equal_plain_steps(make, monkeypatch, precision):
    plain = make(precision)
    train(plain, STEPS)
    monkeypatch.setattr(step_module, "Recorder", EagerRecorder)
    monkeypatch.setattr(LearningEncoder, "records_steps", True)
    recorded = make(precision)
    train(recorded, STEPS)
    assert recorded.take_step.recorder.calls == STEPS
    assert_equal(recorded.state_dict(), plain.state_dict())
    assert torch.equal(recorded.losses, plain.losses)


def test_out_of_memory_stops_recording_and_splits_batches(make, monkeypatch):
    monkeypatch.setattr(step_module, "Recorder", EagerRecorder)
    monkeypatch.setattr(LearningEncoder, "records_steps", True)
    notes = []
    reporter = Reporter()
    reporter.note = notes.append
    trainer, plain = make(reporter=reporter, dropout=0.0), make(dropout=0.0)
    trainer.take_step.recorder.most = 7
    train(trainer, STEPS)
    train(plain, STEPS)
    assert trainer.take_step.recorder is None
    assert notes == ["out of memory: splitting batches of 8 into parts of 4 from now on"]
    torch.testing.assert_close(trainer.losses, plain.losses, rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_recorded_steps_on_a_gpu_equal_plain_steps(make):
    losses = {}
    for cuda_graphs in (False, True):
        changes = {"dropout": 0.0, "learning_rate": 1e-4}
        trainer = make("fp32", "cuda", cuda_graphs=cuda_graphs, **changes)
        trainer.encoder.train()
        trainer.head.train()
        rows = trainer.task.batches[0]
        losses[cuda_graphs] = [float(trainer.take_step(rows, seed=n)) for n in range(3 * PLAIN_STEPS)]
        recorder = trainer.take_step.recorder
        assert len(recorder.recorded) == 1 if cuda_graphs else recorder is None
    np.testing.assert_allclose(losses[True], losses[False], rtol=1e-3)
    assert losses[True][-1] < losses[True][PLAIN_STEPS] < losses[True][0]
