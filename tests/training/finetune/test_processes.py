"""Training in several processes, which really run: gloo, on the loopback interface."""

import json
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import treetop  # noqa: E402
from tests.tiny import BRIEF, documents, same  # noqa: E402
from treetop import Runtime, XRTransformer  # noqa: E402
from treetop.cli.main import run_command  # noqa: E402
from treetop.errors import TreetopError  # noqa: E402
from treetop.runtime.failpoints import VARIABLE  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="binds gloo to the interface lo"),
]
# On CPUs also where there is a GPU: one GPU is not enough for two processes.
SETTINGS = {**BRIEF, "device": "cpu", "batch": 48, "threads": 1, "precision": "fp32", "validation": 0.2}
SETTINGS |= {"learning_rate": 2e-3, "trees": 1}
TEXTS, LABELS = documents(120)
HERE = {"processes": 2, "stall_minutes": 0.5}


def fitted(encoder, runtime, **options):
    return XRTransformer(encoder=encoder, **SETTINGS).fit(TEXTS, LABELS, runtime=runtime, **options)


def weights_of(model):
    return torch.cat([weight.detach().ravel() for weight in model.encoder_.parameters()])


def scores_of(model):
    return model.predict_scores(TEXTS, k=20, threads=1)


@pytest.fixture(scope="module")
def alone(encoder):
    return fitted(encoder, Runtime(deterministic=True))


def test_two_processes_train_the_same_model_bit_for_bit_if_that_is_asked_for(encoder, alone):
    together = fitted(encoder, Runtime(deterministic=True, **HERE))
    assert torch.equal(weights_of(together), weights_of(alone))
    assert same(scores_of(together), scores_of(alone))
    figures = ("level", "step", "validation P@1")
    own, other = ([[e.get(n) for n in figures] for e in m.history_] for m in (together, alone))
    assert own == other


def test_averaged_gradients_give_the_same_encoder_within_rounding(encoder, alone):
    together = fitted(encoder, Runtime(**HERE))
    before = weights_of(
        XRTransformer(encoder=encoder, fine_tune=False, trees=1, device="cpu").fit(TEXTS, LABELS)
    )
    learned = weights_of(alone) - before
    noise = weights_of(together) - weights_of(alone)
    assert 0 < noise.norm() < 0.02 * learned.norm()


def test_a_frozen_encoder_gives_the_same_vectors_in_two_processes(encoder):
    models = [
        XRTransformer(encoder=encoder, fine_tune=False, threads=1, device="cpu").fit(
            TEXTS, LABELS, runtime=Runtime(deterministic=True, processes=processes)
        )
        for processes in (1, 2)
    ]
    assert same(*map(scores_of, models))


def test_a_killed_process_is_named_and_one_process_resumes_to_the_same_model(
    encoder, alone, tmp_path, monkeypatch
):
    fault = {"at": "level-2", "step": 7, "process": 1, "fault": "kill"}
    monkeypatch.setenv(VARIABLE, json.dumps(fault))
    runtime = Runtime(deterministic=True, checkpoint_minutes=1e-9, **HERE)
    with pytest.raises(TreetopError) as caught:
        fitted(encoder, runtime, run=tmp_path / "run")
    assert "process 1 of 2 (" in str(caught.value)
    assert "was ended by SIGKILL: run again with --resume (resume=True)" in str(caught.value)
    monkeypatch.delenv(VARIABLE)
    resumed = fitted(encoder, Runtime(deterministic=True), run=tmp_path / "run", resume=True)
    assert torch.equal(weights_of(resumed), weights_of(alone))
    assert same(scores_of(resumed), scores_of(alone))


def test_a_process_that_does_not_answer_is_named(encoder, tmp_path, monkeypatch):
    fault = {"at": "level-1", "step": 2, "process": 1, "fault": "stop"}
    monkeypatch.setenv(VARIABLE, json.dumps(fault))
    runtime = Runtime(processes=2, stall_minutes=8 / 60)
    with pytest.raises(
        TreetopError, match=r"process 1 of 2 \(.*\) stopped or does not answer: run again"
    ):
        fitted(encoder, runtime)


def test_torchrun_trains_one_model_and_each_process_ends(encoder, tmp_path):
    lines = [json.dumps({"text": t, "labels": names}) for t, names in zip(TEXTS, LABELS, strict=True)]
    (tmp_path / "data.jsonl").write_text("\n".join(lines) + "\n")
    changes = {**SETTINGS, "deterministic": True, "encoder": encoder}
    chosen = [
        part
        for item in changes.items()
        for part in ("--set", f"{item[0]}={json.dumps(item[1]).strip(chr(34))}")
    ]
    data, model = str(tmp_path / "data.jsonl"), ("--model", "xr-transformer")
    launcher = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone")
    command = [sys.executable, *launcher, "-m", "treetop", "train", data, *model, *chosen]
    command += ["-o", str(tmp_path / "together")]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("trained in") == 1
    assert run_command(["train", data, *model, *chosen, "-o", str(tmp_path / "alone")]) == 0
    together, alone = (treetop.load(tmp_path / name) for name in ("together", "alone"))
    assert torch.equal(weights_of(together), weights_of(alone))
    assert same(scores_of(together), scores_of(alone))
