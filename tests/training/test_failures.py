"""Failures of the device: smaller batches, fallback to the CPU, or an error of one line."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import treetop  # noqa: E402
from tests.tiny import BRIEF, documents, same  # noqa: E402
from treetop.errors import TreetopError  # noqa: E402
from treetop.features.encoders.devices import is_out_of_memory  # noqa: E402
from treetop.features.encoders.transformer import Encoder  # noqa: E402
from treetop.runtime import Runtime  # noqa: E402
from treetop.runtime.progress import Reporter  # noqa: E402
from treetop.training.failures import with_fallback  # noqa: E402
from treetop.training.finetune import trainer as trainer_module  # noqa: E402
from treetop.training.finetune.objective import Objective  # noqa: E402
from treetop.training.finetune.trainer import LevelTrainer  # noqa: E402


class Notes(Reporter):
    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)


@pytest.mark.parametrize("fallback", [True, False])
def test_the_result_is_returned_if_nothing_fails(fallback):
    runtime = Runtime(fallback=fallback)
    assert with_fallback(runtime, lambda place: (place, "learned")) == (runtime, "learned")


def test_training_continues_on_the_cpu_if_fallback_is_set():
    said, tried = Notes(), []

    def learn(runtime):
        tried.append(runtime.device)
        if runtime.device != "cpu":
            raise RuntimeError("CUDA error: unspecified launch failure\nCompile with ...")
        return "learned"

    runtime = Runtime(device="cuda", fallback=True, reporter=said)
    assert with_fallback(runtime, learn) == "learned"
    assert tried == ["cuda", "cpu"]
    assert said.notes == ["the GPU failed: continuing on the CPU"]
    with pytest.raises(TreetopError) as error:
        with_fallback(Runtime(device="cuda"), learn)
    assert str(error.value) == (
        "the GPU failed (CUDA error: unspecified launch failure): run again with --resume "
        "(resume=True), or set fallback=true to continue on the CPU"
    )


@pytest.mark.parametrize("fallback", [True, False])
def test_out_of_memory_and_other_errors_are_not_retried(fallback):
    tried = []

    def learn(error):
        def fail(runtime):
            tried.append(runtime)
            raise error

        return fail

    runtime = Runtime(fallback=fallback)
    with pytest.raises(TreetopError) as full:
        with_fallback(runtime, learn(torch.OutOfMemoryError("CUDA out of memory")))
    assert str(full.value) == (
        "the device's memory is full: choose a smaller batch, max_length or encoder"
    )
    other = RuntimeError("shapes differ")
    with pytest.raises(RuntimeError, match="shapes differ") as error:
        with_fallback(runtime, learn(other))
    assert error.value is other
    assert tried == [runtime, runtime]


def test_out_of_memory_splits_batches_with_a_note_and_the_same_gradients(encoder, monkeypatch):
    real = Objective.add_gradients

    def tight(self, batch, documents, factor=1.0):
        if len(batch.rows) > 5:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(self, batch, documents, factor)

    whole = treetop.XRTransformer(encoder=encoder, **BRIEF, dropout=0.0, precision="fp32")
    whole.fit(*documents())
    monkeypatch.setattr(Objective, "add_gradients", tight)
    said = Notes()
    parts = treetop.XRTransformer(encoder=encoder, **BRIEF, dropout=0.0, precision="fp32")
    parts.fit(*documents(), report=said)
    assert said.notes[:2] == [
        "out of memory: splitting batches of 16 into parts of 8 from now on",
        "out of memory: splitting batches of 16 into parts of 4 from now on",
    ]
    np.testing.assert_allclose(
        [e["loss"] for e in parts.history_], [e["loss"] for e in whole.history_], rtol=1e-3
    )


def test_a_loss_that_is_not_finite_is_an_error_and_the_checkpoint_is_intact(
    encoder, monkeypatch, tmp_path
):
    monkeypatch.setattr(trainer_module, "STEPS_BETWEEN_FIGURES", 2)
    real = LevelTrainer.train_on

    def broken(self, rows):
        real(self, rows)
        if self.task.level == 2 and self.step == 7:
            self.losses[6] = float("nan")

    monkeypatch.setattr(LevelTrainer, "train_on", broken)
    model = treetop.XRTransformer(encoder=encoder, **BRIEF, checkpoint_minutes=1e-9)
    with pytest.raises(TreetopError) as error:
        model.fit(*documents(), run=tmp_path / "run")
    assert "not a number at level 2, step 7 of 12, learning rate" in str(error.value)
    monkeypatch.setattr(LevelTrainer, "train_on", real)
    model.fit(*documents(), run=tmp_path / "run", resume=True)
    plain = treetop.XRTransformer(encoder=encoder, **BRIEF).fit(*documents())
    texts, _ = documents(20, seed=1)
    assert same(model.predict_scores(texts, 5), plain.predict_scores(texts, 5))


def test_a_failing_gpu_is_an_error_or_falls_back_to_the_cpu(encoder, monkeypatch, tmp_path):
    real = LevelTrainer.train_on
    failed = []

    def vanishing(self, rows):
        if not failed and self.task.level == 2:
            failed.append(1)
            raise RuntimeError("CUDA error: an illegal memory access was encountered\nmore")
        real(self, rows)

    # The steps run on the CPU, so that the models are equal to the last bit on every machine.
    settings = {**BRIEF, "device": "cpu"}
    monkeypatch.setattr(LevelTrainer, "train_on", vanishing)
    with pytest.raises(TreetopError, match=r"the GPU failed .CUDA error.* run again with --resume"):
        treetop.XRTransformer(encoder=encoder, **settings).fit(*documents())
    failed.clear()
    said = Notes()
    model = treetop.XRTransformer(encoder=encoder, **settings, fallback=True)
    model.fit(*documents(), report=said, run=tmp_path / "run")
    assert said.notes == ["the GPU failed: continuing on the CPU"]
    unharmed = treetop.XRTransformer(encoder=encoder, **settings).fit(*documents())
    assert same(model.predict_scores(documents()[0], 5), unharmed.predict_scores(documents()[0], 5))


def test_persistent_lack_of_memory_is_explained_in_one_line(encoder, monkeypatch):
    def full(self, batch, documents, factor=1.0):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate\nmany lines")

    monkeypatch.setattr(Objective, "add_gradients", full)
    with pytest.raises(TreetopError, match="memory is full: choose a smaller batch"):
        treetop.XRTransformer(encoder=encoder, **BRIEF).fit(*documents())


def test_torch_without_memory_on_a_cpu_is_recognized():
    with pytest.raises(RuntimeError) as error:
        torch.empty(1 << 60, dtype=torch.uint8)
    assert is_out_of_memory(error.value)
    assert not is_out_of_memory(RuntimeError("sizes differ"))


def test_a_text_that_does_not_fit_into_the_memory_of_the_cpu_is_an_error_of_one_line(
    encoder, monkeypatch
):
    settings = {**BRIEF, "encoder": encoder, "device": "cpu"}
    model = treetop.XRTransformer(**settings).fit(*documents())
    monkeypatch.setattr(Encoder, "forward", lambda *_: torch.empty(1 << 60, dtype=torch.uint8))
    with pytest.raises(TreetopError, match="the device's memory is full: choose a smaller batch"):
        model.predict(["red apple"])
    with pytest.raises(TreetopError, match="the device's memory is full: choose a smaller batch"):
        treetop.XRTransformer(**settings).fit(*documents())


def test_a_training_gives_the_same_model_from_any_thread(encoder):
    texts, labels = documents()
    settings = {**BRIEF, "encoder": encoder, "dropout": 0.3}

    def train():
        return treetop.XRTransformer(**settings).fit(texts, labels)

    alone = train().predict_scores(texts, 10)
    before = torch.get_num_threads()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(torch.set_num_threads, 1).result()  # torch counts threads by calling thread
        elsewhere = pool.submit(train).result().predict_scores(texts, 10)
        assert pool.submit(torch.get_num_threads).result() == 1
    torch.set_num_threads(before)
    assert same(alone, elsewhere)


def test_two_trainings_in_one_process_give_the_models_they_would_give_alone(encoder, tmp_path):
    texts, labels = documents()
    settings = {**BRIEF, "encoder": encoder, "dropout": 0.3}

    def train(seed):
        return treetop.XRTransformer(seed=seed, **settings).fit(texts, labels)

    alone = [train(seed).predict_scores(texts, 10) for seed in (0, 1)]
    interval = sys.getswitchinterval()
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    with ThreadPoolExecutor(2) as pool:
        together = [model.predict_scores(texts, 10) for model in pool.map(train, (0, 1))]
    assert torch.equal(torch.rand(3), expected)  # the user's own random numbers
    assert sys.getswitchinterval() == pytest.approx(interval)
    assert same(alone[0], together[0])
    assert same(alone[1], together[1])
    assert not same(alone[0], alone[1])
