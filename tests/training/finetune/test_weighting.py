"""PECOS's weightings of fine-tuning, its bootstrapping and its matcher, computed by hand."""

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")

import treetop  # noqa: E402
from tests.training.finetune.test_curriculum import SETTINGS, texts_and_labels, watched_fit  # noqa: E402
from treetop.labels.tree import from_parents  # noqa: E402
from treetop.settings.auto import warmup_steps  # noqa: E402
from treetop.settings.schema import TransformerSettings  # noqa: E402
from treetop.training.finetune.bootstrap import bootstrap_settings  # noqa: E402
from treetop.training.finetune.head import Head  # noqa: E402
from treetop.training.finetune.matcher import matcher_settings  # noqa: E402
from treetop.training.finetune.objective import Objective  # noqa: E402
from treetop.training.finetune.optimizer import LevelOptimizer, MasterWeights, rate_at  # noqa: E402
from treetop.training.finetune.problem import TuningDocuments, TuningProblem  # noqa: E402
from treetop.training.finetune.sharing import batch_parts  # noqa: E402
from treetop.training.finetune.targets import Targets, most_candidates  # noqa: E402
from treetop.training.finetune.weighting import Weighting, weighting_of  # noqa: E402

CPU = torch.device("cpu")


class FixedVectors:
    """An encoder whose vectors are parameters: their gradients can be computed by hand."""

    max_length, device = 4, CPU

    def __init__(self, vectors):
        self.vectors = torch.nn.Parameter(torch.tensor(vectors))

    def __call__(self, batch):
        return self.vectors[batch.rows]


def objective(name, loss="squared-hinge"):
    """Two documents, four nodes: R = [3, 1, 0, 0] and [0, 0, 2, 0]; the second has two candidates."""
    R = sp.csr_matrix(np.array([[3, 1, 0, 0], [0, 0, 2, 0]], np.float32))
    M = sp.csr_matrix(np.array([[1, 1], [0, 1]], np.float32))
    head = Head(4, 2, 0.0)
    head.start_from(
        np.array([[1, 0], [0, 1], [1, 1], [2, 0]], np.float32), np.array([0, 0, 0, -1], np.float32)
    )
    head.eval()
    settings = TransformerSettings(tune_weighting=name, tune_lambda=0.5, tune_alpha=0.25)
    weighting = weighting_of(settings, name)
    if not weighting.summed:
        R.data[:] = 1  # the maximum instead of the sum
    targets = Targets(weighting.of_positives(R), M, np.array([0, 2, 4]), None, CPU)
    encoder = FixedVectors([[0.5, 0.5], [1.0, 0.0]])
    return encoder, head, Objective(encoder, head, targets, np.array([4, 4]), loss, weighting)


def test_weighted_squared_hinge_and_its_gradient_on_a_hand_computed_example():
    """Logits [.5, .5, 1, 0] and [1, 0, 1, 1]; four candidates at most, so sums are divided by 4.

    Document 1: 3 · .5² + 1 · .5² + (1 + 1)² + (1 + 0)² = 6. Document 2: 2 · 0 + (1 + 1)² = 4.
    """
    encoder, head, counts = objective("counts")
    loss = counts.batch_gradients(batch_parts(np.array([0, 1]), 2), 2)
    assert loss.item() == pytest.approx((6 / 4 + 4 / 4) / 2)
    # dL/dlogit = ∓2 · weight · gap / 4 / 2 documents; no λ.
    slopes = np.array([[-3 * 2 * 0.5, -2 * 0.5, 2 * 2, 2 * 1], [0, 0, 0, 2 * 2]]) / 8
    vectors = encoder.vectors.detach().numpy()
    np.testing.assert_allclose(head.weight.grad, slopes.T @ vectors, rtol=1e-6)
    np.testing.assert_allclose(head.bias.grad, slopes.sum(0), rtol=1e-6)
    W = head.weight.detach().numpy()
    np.testing.assert_allclose(encoder.vectors.grad, slopes @ W, rtol=1e-6)


def test_equal_weights_are_pecos_squared_hinge():
    _, _, equal = objective("equal")
    loss = equal.batch_gradients(batch_parts(np.array([0, 1]), 2), 2)
    # Document 1 is .5² + .5² + 2² + 1².
    assert loss.item() == pytest.approx((5.5 / 4 + 4 / 4) / 2)


def test_the_paper_weighs_by_relevance_and_alpha_and_adds_lambda():
    _, head, paper = objective("relevance")
    loss = paper.batch_gradients(batch_parts(np.array([0, 1]), 2), 2)
    first = 0.75 * 0.25 + 0.25 * 0.25 + 0.25 * (4 + 1)
    assert loss.item() == pytest.approx((first + 0.25 * 4) / 2)
    head.zero_grad()
    paper.add_penalty_gradients()
    np.testing.assert_allclose(head.weight.grad, 2 * 0.5 / 2 * head.weight.detach())


def test_the_loss_agrees_with_pecos_on_random_input(rng):
    """PECOS pads shortlists with negatives of score 0, which add a constant, and takes the mean."""
    logits, counts = rng.normal(size=(5, 8)), rng.integers(0, 4, (5, 8)) * (rng.random((5, 8)) < 0.4)
    listed = (rng.random((5, 4)) < 0.5) | (counts.reshape(5, 4, 2).sum(2) > 0)
    M, child_ptr = sp.csr_matrix(listed, dtype=np.float32), np.arange(0, 9, 2)
    width = most_candidates(M, child_ptr)
    assert width == 2 * listed.sum(1).max()
    for row in range(5):
        nodes = np.flatnonzero(np.repeat(listed[row], 2))
        z, y = np.zeros(width), np.zeros(width)
        z[: nodes.size], y[: nodes.size] = logits[row, nodes], counts[row, nodes]
        signs = np.where(y > 0, 1.0, -1.0)
        hinge = np.maximum(1 - signs * z, 0) ** 2 * np.where(y > 0, y, 1.0)
        constant = (width - nodes.size) / width
        own = sum(
            (counts[row, n] if counts[row, n] else 1.0)
            * max(0.0, 1 - (1 if counts[row, n] else -1) * logits[row, n]) ** 2
            for n in nodes
        )
        weighting = weighting_of(TransformerSettings(), "counts")
        assert own * weighting.factor(width) + constant == pytest.approx(hinge.mean())


def test_relevance_is_summed_or_not_by_the_weighting():
    settings = TransformerSettings(tune_cost_sensitive=False, tune_alpha=0.3, tune_lambda=0.1)
    assert weighting_of(settings, "relevance") == Weighting(False, False, 0.3, 0.1, mean=False)
    assert weighting_of(settings, "counts") == Weighting(True, False, 1.0, 0.0, mean=True)
    assert weighting_of(settings, "equal") == Weighting(False, False, 1.0, 0.0, mean=True)


def test_bootstrapping_with_costs_of_100():
    """Cp = Cn = 100 is λ = 1/200 and α = 1; weighted-linear weighs positives by counts, linear by 1."""
    pecos = {"bootstrap_lambda": 0.005, "bootstrap_alpha": 1.0, "tune_weighting": "counts"}
    made = bootstrap_settings(TransformerSettings(**pecos, bootstrap_passes=100, tolerance=0.1))
    assert (made.lambda_, made.alpha, made.cost_sensitive, made.relevance_norm) == (
        0.005,
        1.0,
        True,
        "none",
    )
    assert (made.passes, made.tolerance, made.bias) == (100, 0.1, 1.0)
    linear = bootstrap_settings(TransformerSettings(**pecos, bootstrap_weighting="equal"))
    assert not linear.cost_sensitive
    paper = bootstrap_settings(TransformerSettings(tune_lambda=0.25, tune_alpha=0.5))
    assert (paper.lambda_, paper.alpha, paper.relevance_norm) == (0.25, 0.5, "l1")


def problem(**changes):
    settings = TransformerSettings(**{"bias": 0.5, "budget": "1/2 steps", **changes})
    documents = TuningDocuments(sp.csr_matrix((2, 1)), None, sp.csr_matrix(np.eye(4)[:2]))
    tree = from_parents([np.array([0, 0, 1, 1])])
    return TuningProblem(documents, None, tree, 2, None, settings, None)


def made_problem(monkeypatch, **changes):
    monkeypatch.setattr(TuningProblem, "__post_init__", lambda self: None)
    return problem(**changes)


def test_the_matcher_has_settings_of_its_own(monkeypatch):
    """``cost_sensitive_ranker`` concerns the rankers between the levels alone."""
    own = {
        "matcher_lambda": 2.0,
        "matcher_alpha": 3.0,
        "matcher_cost_sensitive": False,
        "matcher_bias": 1.0,
        "matcher_prune_below": 0.0,
        "matcher_tolerance": 0.01,
        "matcher_score_transform": "l3-hinge",
    }
    # The final rankers have three levels, the preliminary tree has two.
    ours = {"lambda_": "0.5/0.5/0.25", "alpha": 1.0, "cost_sensitive": True, "tune_beam": "7/3"}
    made = matcher_settings(made_problem(monkeypatch, **own, **ours), 1)
    for name, value in own.items():
        assert getattr(made, {"matcher_lambda": "lambda_"}.get(name, name[8:])) == value
    assert made.beam == 7
    inherited = matcher_settings(made_problem(monkeypatch, **ours, score_transform="identity"), 2)
    assert (inherited.lambda_, inherited.bias, inherited.beam) == (0.5, 0.5, 3)
    assert inherited.cost_sensitive
    assert inherited.score_transform == "identity"


@pytest.mark.parametrize(
    ("warmup", "expected"),
    [
        (0.1, [60, 80, 120]),
        ("0.1/0.2/0.5", [60, 160, 600]),
        ("0.5/.../0.1", [300, 400, 120]),
        ("100 steps", [100, 100, 100]),
        ("100/200/0 steps", [100, 200, 1]),
    ],
)
def test_warmup_by_level(warmup, expected):
    settings = TransformerSettings(warmup=warmup)
    assert warmup_steps(settings.warmup, [600, 800, 1200]) == expected


def test_a_warm_up_longer_than_a_level_only_rises():
    assert [rate_at(step, 3, 10) for step in range(3)] == [1 / 11, 2 / 11, 3 / 11]


def test_gradients_are_clipped_separately_as_pecos_does():
    def clipped(separately):
        encoder, head = torch.nn.Linear(1, 1, bias=False), Head(1, 1, 0.0)
        settings = TransformerSettings(clip=1.0, clip_separately=separately)
        optimizer = LevelOptimizer(
            MasterWeights(encoder, torch.float32), head, settings, rate=0.0, head_rate=0.0
        )
        encoder.weight.grad = torch.full((1, 1), 3.0)
        head.weight.grad, head.bias.grad = torch.full((1, 1), 4.0), torch.zeros(1)
        for parameters in optimizer.clipped_together:
            torch.nn.utils.clip_grad_norm_(parameters, optimizer.clip)
        return encoder.weight.grad.item(), head.weight.grad.item()

    assert clipped(False) == pytest.approx((0.6, 0.8), rel=1e-4)
    assert clipped(True) == pytest.approx((1.0, 1.0), rel=1e-4)


def test_a_shortlist_of_true_parents_predicts_no_beams(encoder):
    watched = watched_fit(encoder, tune_shortlist="true", budget="1/1/1 steps")
    assert not watched.matches
    targets = watched.tasks[3].targets
    rows = torch.arange(4, device=targets.parents.device)
    relevance, listed, _ = targets(rows)
    parents = targets.parents
    for row in range(4):
        true = {int(parents[node]) for node in torch.nonzero(relevance[row])[:, 0]}
        assert {int(parents[node]) for node in torch.nonzero(listed[row])[:, 0]} == true


def test_levels_learn_with_counts_and_by_their_own_beams_and_warm_up(encoder):
    changes = {
        "tune_weighting": "counts",
        "bootstrap_lambda": 0.005,
        "tune_beam": "1/2/1",
        "warmup": "1/2/3 steps",
        "budget": "2/3/4 steps",
    }
    watched = watched_fit(encoder, **changes)
    beams = [np.diff(watched.matches[t].beams.train.indptr).max() for t in (1, 2)]
    assert beams == [1, 2]
    assert [watched.tasks[t].warmup for t in (1, 2, 3)] == [1, 2, 3]
    counts = watched.tasks[1].targets.relevance.values
    assert set(counts.tolist()) == {1.0, 2.0}  # two labels of a document below one node


def test_resume_depends_on_the_precision(encoder, tmp_path):
    texts, labels = texts_and_labels(48, seed=0)
    brief = {**SETTINGS, "first_tree": "3-L", "budget": "1/1 steps"}
    for precision, repeats in (("fp32", True), ("fp32", False), ("bf16", True)):
        before = {path.name: path.stat().st_mtime_ns for path in tmp_path.rglob("level-*.safetensors")}
        model = treetop.XRTransformer(encoder=encoder, **{**brief, "precision": precision})
        model.fit(texts, labels, run=tmp_path / "run", resume=bool(before))
        after = {path.name: path.stat().st_mtime_ns for path in tmp_path.rglob("level-*.safetensors")}
        assert (before != after) == repeats
