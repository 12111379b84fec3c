"""What a level's rankers are trained on: the predicted nodes P[t] and the shortlist M[t]."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from treetop.features.hybrid import Features
from treetop.labels.relevance import binarize
from treetop.labels.tree import Tree
from treetop.ranking.beam import Nodes, SearchPlan, Start, search_anywhere, to_csr
from treetop.ranking.chunks import assemble
from treetop.ranking.ranker import beams_of_levels, score_of_levels
from treetop.ranking.weights import ClusterWeights, Weights
from treetop.settings import auto
from treetop.settings.parts import RankerSettings


def shortlist(predicted: sp.csr_matrix | None, positive: sp.csr_matrix | None) -> sp.csr_matrix:
    """Compute M[t], the paper's equation 8, by cluster: shape (N, K[t-1]).

    M[t] = binarize(P[t-1] C[t]ᵀ) + binarize(Y[t-1] C[t]ᵀ) has all children of a cluster or none. So it
    suffices to know the clusters that level t - 1 predicts, P[t-1], or that are true, Y[t-1]; either
    may be omitted.
    """
    shortlists = [binarize(matrix) for matrix in (predicted, positive) if matrix is not None]
    return binarize(sp.csr_matrix(sum(shortlists)))


def all_below_root(documents: int) -> sp.csr_matrix:
    """Return M[1] by cluster: every document is trained on all children of the root."""
    return sp.csr_matrix(np.ones((documents, 1), np.float32))


def predicted_nodes(
    clusters: list[ClusterWeights],
    X: Features,
    tree: Tree,
    level: int,
    settings: RankerSettings,
    *,
    threads: int,
    above: sp.csr_matrix | None = None,
) -> sp.csr_matrix:
    """Compute P[t], the paper's equation 7: the best nodes of `level` and their scores, (N, K[t]).

    `clusters` are the weights of all levels up to `level`. With `above`, P[t-1] and its scores, the
    search starts there, and `clusters` are the weights of `level` alone.
    """
    if above is not None:
        clusters = [*without_weights(tree, level, X.dense.shape[1]), *clusters]
    weights = assemble(clusters, tree, X.sparse.shape[1], threads)
    return best_nodes(weights, X, tree, level, settings, threads=threads, above=above)


def best_nodes(
    weights: Weights,
    X: Features,
    tree: Tree,
    level: int,
    settings: RankerSettings,
    *,
    threads: int,
    above: sp.csr_matrix | None = None,
) -> sp.csr_matrix:
    """Like `predicted_nodes`, with the weights of all levels up to `level`."""
    offset = sum(tree.sizes[: level - 1])
    score = score_of_levels(auto.for_depth(settings, tree.depth), level, tree.depth)
    beams = beams_of_levels(settings, level, tree.depth)
    plan = SearchPlan(level, beams, top=int(beams[-1]), score=score)
    if above is not None:
        first = offset - tree.sizes[level - 2]
        worth = np.log(np.maximum(above.data, 1e-30)) if score.exponentiate else above.data
        start = Start(
            level - 1,
            ptr=above.indptr.astype(np.int64),
            nodes=above.indices.astype(np.int64) + first,
            scores=worth.astype(np.float32),
        )
        plan = plan._replace(start=start)
    best = search_anywhere(weights, X, plan, threads)
    predicted = to_csr(Nodes(best.nodes - offset, best.scores, best.counts), tree.sizes[level - 1])
    predicted.sort_indices()
    return predicted


def without_weights(tree: Tree, level: int, dense_columns: int) -> list[ClusterWeights]:
    """Return clusters without weights for the levels above `level`."""
    nothing = np.zeros(0, np.int32)
    return [
        ClusterWeights(
            features=nothing,
            ends=np.zeros(0, np.int64),
            children=nothing,
            values=np.zeros(0, np.float32),
            dense=np.zeros((dense_columns, size), np.float32),
            biases=np.zeros(size, np.float32),
        )
        for pointers in tree.child_ptr[: level - 1]
        for size in np.diff(pointers).tolist()
    ]
