"""Each equation of fine-tuning on a hand-computed example."""

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")

from treetop.errors import TreetopError  # noqa: E402
from treetop.ranking.matching import shortlist  # noqa: E402
from treetop.settings.auto import first_sizes, learning_rates, steps_by_level  # noqa: E402
from treetop.settings.schema import TransformerSettings  # noqa: E402
from treetop.training.finetune.batches import Batches  # noqa: E402
from treetop.training.finetune.head import Head  # noqa: E402
from treetop.training.finetune.loss import level_loss, pointwise  # noqa: E402
from treetop.training.finetune.optimizer import (  # noqa: E402
    LevelOptimizer,
    MasterWeights,
    rate_at,
)
from treetop.training.finetune.targets import DeviceRows, Targets  # noqa: E402

CPU = torch.device("cpu")


def test_pointwise_losses_on_a_hand_computed_example():
    logits = torch.tensor([2.0, 0.5, -1.0, 0.5])
    positive = torch.tensor([True, True, True, False])
    torch.testing.assert_close(pointwise("hinge", logits, positive), torch.tensor([0.0, 0.5, 2.0, 1.5]))
    squared = torch.tensor([0.0, 0.25, 4.0, 2.25])
    torch.testing.assert_close(pointwise("squared-hinge", logits, positive), squared)
    expected = torch.nn.functional.binary_cross_entropy_with_logits(
        logits, positive.float(), reduction="none"
    )
    torch.testing.assert_close(pointwise("bce", logits, positive), expected)


def test_the_loss_of_a_level_on_a_hand_computed_example():
    # R̂: positives 3/4 and 1/4; the listed negative weighs α = 0.5; the last node is not listed
    logits = torch.tensor([[0.0, 0.0, 0.0, 9.0]])
    relevance = torch.tensor([[0.75, 0.25, 0.0, 0.0]])
    listed = torch.tensor([[1.0, 1.0, 1.0, 0.0]])
    loss = level_loss("hinge", logits, relevance, listed, 0.5, torch.ones(1))
    assert loss.item() == pytest.approx(0.75 + 0.25 + 0.5)
    twice = level_loss("hinge", logits, relevance, listed, 0.5, torch.full((1,), 2.0))
    assert twice.item() == pytest.approx(3.0)


def test_the_loss_of_a_document_does_not_depend_on_other_shortlists():
    logits = torch.randn(2, 6)
    relevance = torch.tensor([[1.0, 0, 0, 0, 0, 0], [0, 0.5, 0.5, 0, 0, 0]])
    narrow = torch.tensor([[1.0, 1, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0]])
    wide = narrow.clone()
    wide[1] = 1
    losses = [level_loss("bce", logits, relevance, m, 1.0, torch.ones(2))[0] for m in (narrow, wide)]
    assert losses[0] == losses[1]


def test_the_shortlist_contains_every_positive(rng):
    P = sp.random(30, 8, 0.2, "csr", np.float32, rng)
    Y = sp.random(30, 8, 0.2, "csr", np.float32, rng)
    M = shortlist(P, Y).toarray()
    assert (M[(P.toarray() > 0) | (Y.toarray() > 0)] == 1).all()
    assert (M[(P.toarray() == 0) & (Y.toarray() == 0)] == 0).all()
    child_ptr = np.array([0, 3, 4, 6, 8, 11, 12, 14, 16])
    parents = np.repeat(np.arange(8), np.diff(child_ptr))
    targets = Targets(
        sp.random(30, 16, 0.1, "csr", np.float32, rng), shortlist(P, Y), child_ptr, None, CPU
    )
    rows = np.array([4, 0, 29])
    _, listed, weights = targets(torch.from_numpy(rows))
    np.testing.assert_array_equal(listed, M[rows][:, parents])
    np.testing.assert_array_equal(weights, [1, 1, 1])


def test_device_rows_equal_dense_rows(rng):
    matrix = sp.random(20, 9, 0.3, "csr", np.float32, rng)
    matrix[3] = 0
    matrix.eliminate_zeros()
    rows = np.array([3, 7, 7, 0])
    made = DeviceRows(matrix, CPU).dense(torch.from_numpy(rows))
    np.testing.assert_array_equal(made, matrix.toarray()[rows])


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        ("300/400/600 steps", [300, 400, 600]),
        ("1300 steps", [295, 416, 589]),
        ("2600 samples", [6, 8, 12]),
        ("1/1/2 epochs", [10, 10, 20]),
    ],
)
def test_budgets(budget, expected):
    assert steps_by_level(budget, 3, 1000, 100) == expected


def test_an_epoch_smaller_than_a_batch_is_one_step():
    assert sum(steps_by_level("20 epochs", 2, 50, 256)) == 20


def test_invalid_budgets_are_an_error():
    with pytest.raises(TreetopError, match="2 parts, but 3 levels are fine-tuned"):
        steps_by_level("3/4 steps", 3, 100, 10)
    with pytest.raises(TreetopError, match="budget '5 weeks' is not understood"):
        steps_by_level("5 weeks", 3, 100, 10)


@pytest.mark.parametrize(
    ("spec", "labels", "sizes", "tuned"),
    [
        ("16-256-L", 4108, [16, 256], 3),
        ("16-256-4108", 4108, [16, 256], 3),
        ("64-512-4096-32768", 501_070, [64, 512, 4096, 32768], 4),
        ("auto", 4108, [16, 256], 3),
        ("auto", 20, [], 1),
        ("auto", 1, [], 1),
        ("auto", 670_091, [29, 819, 23_421], 3),
        ("flat", 100, [], 1),
        ("41", 4108, [41], 1),
        ("16-256-L", 100, [16], 2),
        ("1-16-L", 100, [16], 2),
    ],
)
def test_level_sizes_of_the_preliminary_tree(spec, labels, sizes, tuned):
    assert first_sizes(spec, labels, 32_768) == (sizes, tuned)


@pytest.mark.parametrize(
    ("spec", "message"),
    [("16-x-L", "not understood"), ("256-16-L", "must increase"), ("flat", "add a coarser level")],
)
def test_invalid_preliminary_trees_are_an_error(spec, message):
    with pytest.raises(TreetopError, match=message):
        first_sizes(spec, 4108, 100)


def test_batches_contain_every_document_once_per_epoch(rng):
    lengths = rng.integers(1, 100, 1000)
    batches = Batches(lengths, 30, seed=3)
    epoch = np.concatenate([batches[step] for step in range(33)])
    assert np.unique(epoch).size == 990
    assert [batches[step].tolist() for step in (5, 40)] == [
        Batches(lengths, 30, seed=3)[step].tolist() for step in (5, 40)
    ]
    padding = sum(lengths[batches[s]].max() * 30 - lengths[batches[s]].sum() for s in range(33))
    assert padding < 0.15 * lengths.sum()
    assert Batches(lengths[:10], 256, 0)[3].size == 10  # fewer documents than the batch


def test_the_linear_learning_rate_schedule():
    rates = [rate_at(step, 100, 10) for step in range(100)]
    np.testing.assert_allclose(rates[:10], np.arange(1, 11) / 11)  # 0 is before the first step
    np.testing.assert_allclose(rates[10:], np.arange(90, 0, -1) / 91)  # and after the last one
    assert rate_at(0, 1, 1) == 0.5


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_the_optimizer_agrees_with_torch(precision):
    torch.manual_seed(0)
    encoder, head = torch.nn.Linear(4, 3), Head(2, 3, 0.0)
    twin = torch.nn.Linear(4, 3)
    twin.load_state_dict(encoder.state_dict())
    twin_head = Head(2, 3, 0.0)
    weights = MasterWeights(encoder, precision)
    optimizer = LevelOptimizer(weights, head, TransformerSettings(), rate=0.01, head_rate=0.1)
    plain = torch.optim.Adam(
        [{"params": twin.parameters(), "lr": 0.01}, {"params": twin_head.parameters(), "lr": 0.1}]
    )
    for _ in range(5):
        x = torch.randn(8, 4)
        head(encoder(x.to(precision)).float()).sub(1).square().mean().backward()
        twin_head(twin(x)).sub(1).square().mean().backward()
        torch.nn.utils.clip_grad_norm_([*twin.parameters(), *twin_head.parameters()], 1.0)
        optimizer.set_rate(1.0)
        optimizer.step()
        plain.step()
        plain.zero_grad()
    close = {"atol": 1e-6, "rtol": 1e-5} if precision == torch.float32 else {"atol": 0.02, "rtol": 0.1}
    torch.testing.assert_close(weights.float32[0].data, twin.weight.data, **close)
    torch.testing.assert_close(head.weight.data, twin_head.weight.data, **close)


def test_default_learning_rates_by_width():
    assert learning_rates(None, 2e-3, 384) == (2e-4, 2e-3)
    assert learning_rates(None, 2e-3, 768) == (5e-5, 2e-3)
    assert learning_rates(None, 2e-3, 128) == (2e-4, 2e-3)
    assert learning_rates(1e-4, None, 768) == (1e-4, 1e-4)


def test_a_head_initialized_with_frequencies_predicts_them():
    head = Head(3, 4, 0.0)
    head.start_from_shares(np.array([0.5, 0.01, 0.0]))
    chances = torch.sigmoid(head(torch.zeros(2, 4)))
    torch.testing.assert_close(chances[0], torch.tensor([0.5, 0.01, 1e-6]), rtol=1e-3, atol=1e-7)
    torch.testing.assert_close(chances[0], chances[1])
