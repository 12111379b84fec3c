"""The first loop of Algorithm 2, step by step: the tree, then P, M and R̂ of each level.

There are twelve labels below 6 and 3 nodes. A document consists of words of its label and of the nodes
above it; every sixth has those of another label instead, so that predicted and true nodes differ.
"""

from collections import namedtuple

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import treetop  # noqa: E402
from tests.tiny import WORDS  # noqa: E402
from treetop.training.finetune import curriculum, matcher  # noqa: E402
from treetop.training.finetune import level as level_module  # noqa: E402

LABELS = [f"label{number:02d}" for number in range(12)]
TOP, MIDDLE, REST = WORDS[:3], WORDS[3:9], WORDS[9:]
BEAM = 2
SETTINGS = {
    "ngrams": "word:1",
    "sublinear": False,
    "first_tree": "3-6-L",
    "tune_shortlist": "beam",
    "tune_beam": BEAM,
    "max_length": 16,
    "batch": 16,
    "budget": "4/4/4 steps",
    "precision": "fp32",
    "threads": 1,
}


def texts_and_labels(count, seed):
    """Return texts and their labels; some texts have a second label."""
    random = np.random.default_rng(seed)
    texts, labels = [], []
    for number in range(count):
        label, other = number % 12, int(random.integers(12))
        turn = (number // 12 + number) % 6
        shown = other if turn == 0 else label
        words = [TOP[shown // 4]] * 6 + [MIDDLE[shown // 2]] * 3 + [f"own{shown}", random.choice(REST)]
        texts.append(" ".join(words))
        labels.append(sorted({LABELS[label], LABELS[other if turn == 1 else label]}))
    return texts, labels


Match = namedtuple("Match", "problem M level above X W beams")


class Watched:
    """Records arguments and results of the steps of fine-tuning, by level."""

    def __init__(self, monkeypatch):
        self.matches, self.tasks = {}, {}
        predict_beams, train_matcher = curriculum.predict_beams, matcher.train_matcher
        task, trained = level_module.level_task, []

        def watch_matcher(problem, t, M, X):
            trained.append((X, train_matcher(problem, t, M, X)))
            return trained[-1][1]

        def watch_beams(problem, t, M, level, above):
            beams = predict_beams(problem, t, M, level, above)
            self.matches[t] = Match(problem, M, level, above, *trained[-1], beams)
            return beams

        def watch_task(encoder, problem, start):
            self.tasks[start.t] = task(encoder, problem, start)
            return self.tasks[start.t]

        monkeypatch.setattr(matcher, "train_matcher", watch_matcher)
        monkeypatch.setattr(curriculum, "predict_beams", watch_beams)
        monkeypatch.setattr(level_module, "level_task", watch_task)


def watched_fit(encoder, **changes):
    with pytest.MonkeyPatch.context() as monkeypatch:
        watched = Watched(monkeypatch)
        model = treetop.XRTransformer(encoder=encoder, **{**SETTINGS, **changes})
        model.fit(*texts_and_labels(96, seed=0), validation=texts_and_labels(36, seed=1))
    return watched


@pytest.fixture(scope="module")
def watched(encoder):
    return watched_fit(encoder, score_transform="identity")


def unit(rows):
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def phi_cat(match, documents, vectors):
    """Compute Φ_cat by its equation; the center is that of the training documents."""
    center = unit(match.level["vectors"]).mean(axis=0)
    dense = match.problem.settings.dense_weight * unit(unit(match.level[vectors]) - center)
    return np.hstack([unit(documents.tfidf.toarray()), dense])


def dense_matrix(clusters, columns, child_ptr):
    """Return W[t], features x nodes."""
    W = np.zeros((columns, child_ptr[-1]))
    for first, cluster in zip(child_ptr[:-1], clusters, strict=True):
        W[columns - len(cluster.dense) :, first : first + cluster.biases.size] = cluster.dense
        start = 0
        for feature, end in zip(cluster.features, cluster.ends, strict=True):
            W[feature, first + cluster.children[start:end]] = cluster.values[start:end]
            start = end
    return W


def top(scores, k):
    """Whether each score is among the k best of its row; -∞ never is."""
    best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    kept = np.zeros(scores.shape, bool)
    np.put_along_axis(kept, best, values=True, axis=1)
    return kept & np.isfinite(scores)


def relevance_by_level(Y, tree):
    """Compute R[1] … R[D]: R[D] is Y in the order of the nodes, R[t] = R[t+1] C[t+1]."""
    levels = [Y.toarray()[:, tree.label_of]]
    for t in range(tree.depth, 1, -1):
        levels.insert(0, levels[0] @ tree.C(t).toarray())
    return levels


def test_the_preliminary_tree_groups_labels_that_share_words(watched):
    tree = watched.matches[1].problem.tree
    assert tree.sizes == [3, 6, 12]
    assert tree.child_ptr[0].tolist() == [0, 3]
    middle = tree.parents(3)[tree.node_of]  # of each label
    for labels in ({2 * n, 2 * n + 1} for n in range(6)):
        assert set(np.flatnonzero(middle == middle[min(labels)])) == labels
    upper = tree.parents(2)[middle]
    for labels in (set(range(4 * n, 4 * n + 4)) for n in range(3)):
        assert set(np.flatnonzero(upper == upper[min(labels)])) == labels


def test_p_is_predicted_after_every_level_but_the_last(watched):
    assert sorted(watched.matches) == [1, 2]
    assert sorted(watched.tasks) == [1, 2, 3]


@pytest.mark.parametrize("transform", ["identity", "sigmoid"])
def test_p_is_the_top_of_the_children_of_the_previous_p(encoder, transform):
    """P[t] = Top(W[t]ᵀ Φ_cat, k) by dense products; sigmoid scores are multiplied along the path."""
    watched = watched_fit(encoder, score_transform=transform)
    problem = watched.matches[1].problem
    parts = {"train": (problem.train, "vectors"), "held_out": (problem.held_out, "held")}
    for name, (documents, vectors) in parts.items():
        above = np.ones((documents.Y.shape[0], 1))  # the root
        for t, match in watched.matches.items():
            X = phi_cat(match, documents, vectors)
            W = dense_matrix(match.W, X.shape[1], problem.tree.child_ptr[t - 1])
            below = above @ problem.tree.C(t).toarray().T
            scores = X @ W if transform == "identity" else below / (1 + np.exp(-X @ W))
            scores[below == 0] = -np.inf
            P = top(scores, BEAM)
            beams = getattr(match.beams, name).toarray()
            np.testing.assert_array_equal(beams != 0, P)
            np.testing.assert_allclose(beams[P], scores[P], rtol=1e-3, atol=1e-5)
            assert not P.all()
            above = np.where(P, 1.0 if transform == "identity" else scores, 0.0)


def test_the_matcher_is_trained_on_phi_cat_of_the_level(watched):
    for match in watched.matches.values():
        X = np.hstack([match.X.sparse.toarray(), match.X.dense])
        expected = phi_cat(match, match.problem.train, "vectors")
        np.testing.assert_allclose(X, expected, atol=2e-6)
    first, second = (match.level["vectors"] for match in watched.matches.values())
    assert not np.allclose(first, second)  # θ has changed from level to level


def targets(task, documents):
    """The training targets of the first documents, moved from the device to the CPU."""
    rows = torch.arange(documents, device=task.targets.parents.device)
    return [part if part is None else part.cpu() for part in task.targets(rows)]


def test_positives_are_weighted_by_normalized_relevance(watched):
    problem = watched.matches[1].problem
    for t, R in enumerate(relevance_by_level(problem.train.Y, problem.tree), start=1):
        relevance, _, weights = targets(watched.tasks[t], len(R))
        np.testing.assert_allclose(relevance, R / R.sum(axis=1, keepdims=True), rtol=1e-6)
        np.testing.assert_array_equal(weights, np.ones(len(R)))


def test_m_is_the_children_of_predicted_and_true_parents(watched):
    """M[t] = binarize(P[t-1] C[t]ᵀ) + binarize(Y[t-1] C[t]ᵀ), and all nodes at level 1."""
    problem = watched.matches[1].problem
    R = relevance_by_level(problem.train.Y, problem.tree)
    documents = len(R[0])
    assert targets(watched.tasks[1], documents)[1] is None
    assert watched.matches[1].M is None
    for t in (2, 3):
        C = problem.tree.C(t).toarray()
        P, Y = watched.matches[t - 1].beams.train.toarray() != 0, R[t - 2] > 0
        predicted, true = P @ C.T > 0, Y @ C.T > 0
        M = predicted.astype(int) + true
        _, listed, _ = targets(watched.tasks[t], documents)
        np.testing.assert_array_equal(listed != 0, M != 0)
        # both terms contribute, and M does not contain all nodes
        assert (predicted & ~true).any()
        assert (true & ~predicted).any()
        assert (M == 0).any()
    # the rankers that predict P[2] are trained on M[2], here by parent
    P, Y = watched.matches[1].beams.train.toarray() != 0, R[0] > 0
    np.testing.assert_array_equal(watched.matches[2].M.toarray(), (P | Y).astype(np.float32))


def test_p_and_m_are_not_used_when_training_on_all_nodes(encoder):
    watched = watched_fit(encoder, tune_shortlist="all")
    assert not watched.matches
    assert all(targets(task, 96)[1] is None for task in watched.tasks.values())


def test_matcher_passes_limits_the_passes_of_the_matcher(encoder):
    W = {}
    for passes, of_rankers in ((1, 20), (5, 20), (5, 1)):
        settings = {"matcher_passes": passes, "passes": of_rankers, "tolerance": 1e-6}
        match = watched_fit(encoder, bootstrap=False, **settings).matches[1]
        W[passes, of_rankers] = match.W[0].dense
    assert not np.array_equal(W[1, 20], W[5, 20])
    np.testing.assert_array_equal(
        W[1, 20], W[5, 1]
    )  # never more passes than those of the final rankers
