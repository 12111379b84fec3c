"""Fine-tuning of the upper layers, on what the lower ones have computed once."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import treetop  # noqa: E402
from tests.tiny import BRIEF, documents, same, save_encoder  # noqa: E402
from treetop import Runtime  # noqa: E402
from treetop.errors import TreetopError  # noqa: E402
from treetop.features.encoders.layers import layers_of  # noqa: E402
from treetop.features.encoders.randomness import seeded  # noqa: E402
from treetop.features.encoders.transformer import Encoder  # noqa: E402
from treetop.training.finetune import curriculum, network  # noqa: E402
from treetop.training.finetune.batches import on_device  # noqa: E402
from treetop.training.finetune.network import LearningEncoder  # noqa: E402

SETTINGS = {**BRIEF, "device": "cpu", "precision": "fp32", "learning_rate": 2e-3, "trees": 1}
TEXTS, LABELS = documents(80)
HELD = documents(30, seed=4)


@pytest.fixture(scope="module")
def deep_encoder(tmp_path_factory):
    """The folder of a tiny encoder with four layers."""
    return save_encoder(tmp_path_factory.mktemp("encoder"), num_hidden_layers=4)


def fitted(encoder, **changes):
    options = {name: changes.pop(name) for name in ("run", "resume", "runtime") if name in changes}
    model = treetop.XRTransformer(encoder=encoder, **{**SETTINGS, **changes})
    return model.fit(TEXTS, LABELS, validation=HELD, **options)


def state_of(model):
    return {name: weight.clone() for name, weight in model.encoder_.model.state_dict().items()}


class Twin(LearningEncoder):
    """Ordinary fine-tuning, with lower layers that have neither gradients nor dropout."""

    def __init__(self, encoder, tokens, runtime, team=None, most_documents=16, tuned_layers=None):
        for frozen in [encoder.model.embeddings, *layers_of(encoder.model)[:-tuned_layers]]:
            frozen.requires_grad_(False)
            for module in frozen.modules():
                if isinstance(module, torch.nn.Dropout):
                    module.p = 0.0
        super().__init__(encoder, tokens, runtime, team, most_documents)


def step_of(kind, folder, tuned):
    """Vectors of a batch, and the gradients of a sum of them, with dropout."""
    encoder = Encoder(folder, max_length=16, dropout=0.1).eval()
    texts = ["red", "the sky is blue and the sea", *TEXTS[:20]]
    tokens = encoder.tokens(texts)
    runtime = Runtime(device="cpu", precision="fp32")
    learning = kind(encoder, tokens, runtime, tuned_layers=tuned)
    learning.train()
    rows = np.argsort(-tokens.lengths, kind="stable")
    with seeded(3):
        vectors = learning(on_device(rows, tokens.lengths, 16, torch.device("cpu")))
    weights = torch.linspace(-1, 1, vectors.numel()).view_as(vectors)
    (weights * vectors).sum().backward()
    found = {name: one.grad for name, one in encoder.named_parameters() if one.grad is not None}
    return vectors.detach(), found


@pytest.mark.parametrize("tuned", [1, 3, 4])
def test_gradients_are_those_of_an_encoder_with_frozen_lower_layers(deep_encoder, tuned):
    vectors, gradients = step_of(LearningEncoder, deep_encoder, tuned)
    expected, of_twin = step_of(Twin, deep_encoder, tuned)
    assert torch.allclose(vectors, expected, atol=2e-6)
    assert gradients.keys() == of_twin.keys()
    assert {int(name.split(".")[3]) for name in gradients} == set(range(4 - tuned, 4))
    for name, gradient in gradients.items():
        assert torch.allclose(gradient, of_twin[name], atol=1e-5), name


@pytest.mark.parametrize("tuned", [1, 3])
def test_it_is_ordinary_fine_tuning_with_the_lower_layers_frozen(deep_encoder, tuned, monkeypatch):
    # At a high rate, Adam makes as large steps of rounding errors as of gradients.
    brief = {"tuned_layers": tuned, "learning_rate": 2e-4}
    model = fitted(deep_encoder, **brief)
    monkeypatch.setattr(curriculum, "LearningEncoder", Twin)
    twin = fitted(deep_encoder, **brief)
    before = treetop.XRTransformer(encoder=deep_encoder, fine_tune=False, trees=1).fit(TEXTS, LABELS)
    start, own, other = state_of(before), state_of(model), state_of(twin)
    learned = torch.cat([(own[name] - start[name]).ravel() for name in own])
    noise = torch.cat([(own[name] - other[name]).ravel() for name in own])
    assert noise.norm() < 0.02 * learned.norm()
    losses = [[entry["loss"] for entry in one.history_] for one in (model, twin)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_the_lower_layers_are_computed_once_for_each_document(deep_encoder, monkeypatch):
    computed = []
    activations = network.LowerLayers.activations
    monkeypatch.setattr(
        network.LowerLayers,
        "activations",
        lambda self, tokens: computed.append(tokens.rows) or activations(self, tokens),
    )
    fitted(deep_encoder, tuned_layers=1)
    assert sorted(computed) == [30, 80]


def test_the_same_seed_gives_the_same_model_and_it_survives_saving(deep_encoder, tmp_path):
    first, second = (fitted(deep_encoder, tuned_layers=2) for _ in range(2))
    assert same(first.predict_scores(TEXTS, k=10), second.predict_scores(TEXTS, k=10))
    first.save(tmp_path / "model")
    loaded = treetop.load(tmp_path / "model", runtime=Runtime(device="cpu", precision="fp32"))
    own, other = (model.predict_scores(TEXTS, k=10).toarray() for model in (first, loaded))
    assert np.abs(own - other).max() < 1e-5
    from transformers import AutoModel

    plain = AutoModel.from_pretrained(tmp_path / "model" / "encoder")
    saved, kept = plain.state_dict(), state_of(first)
    assert all(torch.allclose(saved[name], kept[name], atol=1e-3) for name in saved)


def test_in_sixteen_bits_the_lower_layers_keep_all_their_digits(deep_encoder):
    start = state_of(treetop.XRTransformer(encoder=deep_encoder, fine_tune=False).fit(TEXTS, LABELS))
    model = fitted(deep_encoder, tuned_layers=1, precision="bf16")
    lower = [name for name in start if not name.startswith(("encoder.layer.3", "pooler"))]
    assert all(torch.equal(state_of(model)[name], start[name]) for name in lower)
    alone, batch = (
        [scores for text in part for scores in model.predict(text, k=3)]
        for part in ([[text] for text in TEXTS[:20]], [TEXTS[:20]])
    )
    assert alone == batch


def test_changing_the_number_of_layers_repeats_the_levels_and_nothing_else_does(
    deep_encoder, tmp_path, monkeypatch
):
    run = tmp_path / "run"
    first = fitted(deep_encoder, tuned_layers=1, run=run)
    learned = []
    learn = curriculum.LevelLearner.learn
    monkeypatch.setattr(
        curriculum.LevelLearner,
        "learn",
        lambda self, t, *rest: learned.append(t) or learn(self, t, *rest),
    )
    again = fitted(deep_encoder, tuned_layers=1, run=run, resume=True)
    assert learned == []
    assert same(first.predict_scores(TEXTS, k=10), again.predict_scores(TEXTS, k=10))
    fitted(deep_encoder, tuned_layers=2, run=run, resume=True)
    assert learned == [1, 2]


def test_a_level_is_resumed_within(deep_encoder, tmp_path, monkeypatch):
    brief = {"tuned_layers": 1, "validate_every": 0.1}
    calls = []

    def stop(self, batch, of=LearningEncoder.__call__):
        calls.append(batch)
        if len(calls) > 14:
            raise KeyboardInterrupt
        return of(self, batch)

    often = Runtime(checkpoint_minutes=1e-9, device="cpu", precision="fp32", threads=2)
    with monkeypatch.context() as patch:
        patch.setattr(LearningEncoder, "__call__", stop)
        with pytest.raises(KeyboardInterrupt):
            fitted(deep_encoder, **brief, run=tmp_path / "run", runtime=often)
    resumed = fitted(deep_encoder, **brief, run=tmp_path / "run", resume=True)
    whole = fitted(deep_encoder, **brief)
    assert same(resumed.predict_scores(TEXTS, k=10), whole.predict_scores(TEXTS, k=10))
    steps = [[(e["level"], e["step"]) for e in model.history_] for model in (resumed, whole)]
    assert steps[0] == steps[1]


def test_too_many_layers_are_an_error_before_any_work(deep_encoder):
    with pytest.raises(TreetopError, match="tuned_layers=5, but the encoder has 4 layers"):
        fitted(deep_encoder, tuned_layers=5)


@pytest.mark.slow
def test_two_processes_train_the_same_model(deep_encoder):
    settings = {**SETTINGS, "tuned_layers": 1, "threads": 1, "validation": 0.2}
    alone, together = (
        treetop.XRTransformer(encoder=deep_encoder, **settings).fit(
            TEXTS, LABELS, runtime=Runtime(deterministic=True, processes=count, stall_minutes=0.5)
        )
        for count in (1, 2)
    )
    assert same(alone.predict_scores(TEXTS, k=10), together.predict_scores(TEXTS, k=10))
