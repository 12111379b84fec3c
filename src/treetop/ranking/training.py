"""The second loop of Algorithm 2: the rankers of a tree, trained level by level."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from treetop.features.hybrid import Features
from treetop.labels.relevance import all_levels
from treetop.labels.tree import Tree
from treetop.ranking.chunks import Chunks
from treetop.ranking.matching import all_below_root, best_nodes, shortlist
from treetop.ranking.ranker import Ranker
from treetop.ranking.solver import solve_clusters
from treetop.ranking.weights import ClusterWeights, LabelWeights, weight_form, with_share
from treetop.runtime.progress import Reporter
from treetop.settings import auto
from treetop.settings.parts import RankerSettings


def step_name(title: str, level: int, depth: int) -> str:
    """The name of a level's step for the reporter; a flat tree has no levels to speak of."""
    return f"{title}rankers" + (f", level {level} of {depth}" if depth > 1 else "")


def train_rankers(
    X: Features,
    Y: sp.csr_matrix,
    tree: Tree,
    settings: RankerSettings,
    *,
    seed: int,
    threads: int,
    report: Reporter | None = None,
    weights: np.ndarray | None = None,
    head: LabelWeights | None = None,
    scale: float = 1.0,
    title: str = "",
    held: np.ndarray | None = None,
) -> tuple[Ranker, ...]:
    """Run the second loop of Algorithm 2: for t = 1 … D learn W[t] on M[t], then P = Top(W[t]ᵀΦ, k).

    `weights` are the weights of the documents; None: all 1. `head` is another linear score of each
    label, whose share of the final score is `head_share`. `scale` is a factor of the learned weights of
    sparse features. `title` begins the names of reported steps. With `held`, a mark (uint8) per
    document that is held out, a second ranker is returned, which was trained without these documents.
    """
    settings = auto.for_depth(settings, tree.depth)
    relevance = all_levels(Y, tree, settings.cost_sensitive)
    largest = max(int(np.diff(pointers).max()) for pointers in tree.child_ptr)
    form, first = weight_form(settings.weight_type, largest), 0
    models = [Chunks(X.widths[0], form) for _ in range(1 if held is None else 2)]
    M = all_below_root(X.rows)
    by_level = settings.by_level(tree.depth)
    for level in range(1, tree.depth + 1):
        R = relevance.pop(0)
        pointers = tree.child_ptr[level - 1]

        def keep(
            cluster: int, *both: ClusterWeights, first: int = first, pointers: np.ndarray = pointers
        ) -> None:
            for chunks, solved in zip(models, both, strict=True):
                if pointers is tree.child_ptr[-1] and head is not None:
                    labels = tree.label_of[pointers[cluster] : pointers[cluster + 1]]
                    solved = with_share(solved, labels, head, settings.head_share)
                if scale != 1:
                    solved = solved._replace(values=np.float32(scale) * solved.values)
                chunks.add(first + cluster, solved)

        solve_clusters(
            X,
            R,
            M,
            pointers,
            by_level[level - 1],
            keep=keep,
            seed=seed + level,
            threads=threads,
            report=report or Reporter(),
            name=step_name(title, level, tree.depth),
            document_weights=weights,
            held=held,
        )
        first += pointers.size - 1
        if level < tree.depth:
            P, source = None, by_level[level].shortlist  # that of the next level
            if source != "true":
                so_far = models[0].assembled(tree, threads)
                P = best_nodes(so_far, X.scaled(1 / scale), tree, level, settings, threads=threads)
            M = shortlist(P, None if source == "beam" else R)
    return tuple(Ranker(tree, chunks.assembled(tree, threads), settings) for chunks in models)
