"""Draws the pictures of docs/explained.md.

python docs/pictures.py [DATA]     # DATA: a data set with splits train and test, for the picture of λ
"""

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import numpy as np
from matplotlib import pyplot

HERE = Path(__file__).parent
TEAL, ORANGE, GREY = "#00796b", "#e65100", "#b0bec5"


def tree_picture() -> None:
    """Draw a tree 4-12-36 with the path of a beam of 2 through it."""
    sizes, chosen = (1, 4, 12, 36), ({0}, {1, 2}, {4, 6}, {13, 18, 19})
    figure, axes = pyplot.subplots(figsize=(9, 3.6), layout="constrained")
    place = lambda level, node: ((node + 0.5) / sizes[level], -level)  # noqa: E731
    for level in range(1, 4):
        for node in range(sizes[level]):
            parent = node * sizes[level - 1] // sizes[level]
            scored = parent in chosen[level - 1]
            colour = TEAL if node in chosen[level] else ORANGE if scored else GREY
            (x, y), (px, py) = place(level, node), place(level - 1, parent)
            axes.plot(
                [px, x], [py, y], color=colour if scored else GREY, lw=1.6 if scored else 0.6, zorder=1
            )
            axes.scatter(x, y, s=60 if level < 3 else 26, color=colour, zorder=2)
    axes.scatter(*place(0, 0), s=70, color=TEAL, zorder=2)
    names = ("root", "4 nodes", "12 nodes", "36 labels")
    for level, name in enumerate(names):
        axes.text(-0.01, -level, name, ha="right", va="center")
    axes.set(
        xlim=(-0.12, 1.0),
        ylim=(-3.3, 0.3),
        title="4-12-L with a beam of 2: kept (teal), scored but not kept (orange), not visited (grey)",
    )
    axes.axis("off")
    figure.savefig(HERE / "tree.png", dpi=130)
    pyplot.close(figure)


def score_picture() -> None:
    """Draw score transforms: from the raw score of a ranker to its factor of the label's score."""
    from treetop.ranking.scores import score_kind

    values = np.linspace(-1.5, 2, 200)
    figure, axes = pyplot.subplots(figsize=(5.2, 3.2), layout="constrained")
    for name, colour in (("l3-hinge", TEAL), ("l1-hinge", ORANGE), ("sigmoid", GREY)):
        kind = score_kind(name)
        factor = (
            1 / (1 + np.exp(-values))
            if name == "sigmoid"
            else np.exp(-(np.maximum(1 - values, 0) ** kind.power))
        )
        axes.plot(values, factor, color=colour, label=name)
    axes.set(xlabel="raw score of a ranker", ylabel="factor", title="Factor of a label's score")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(HERE / "scores.png", dpi=130)
    pyplot.close(figure)


def lambda_picture(folder: Path) -> None:
    """Draw precision and model size by λ, on the data set in a folder."""
    import treetop
    from treetop.data import open_data

    data = open_data(folder)
    train, test = data.split("train"), data.split("test")
    strengths, precisions, sizes = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0), [], []
    for strength in strengths:
        model = treetop.XRLinear(lambda_=strength).fit(train.texts, train.labels)
        precisions.append(100 * treetop.scorer("P@1")(model, test.texts, test.labels))
        weights = [ranker.weights for ranker in model.rankers_]
        sizes.append(sum(np.count_nonzero(w.pairs[:, 1]) + np.count_nonzero(w.full) for w in weights))
    figure, axes = pyplot.subplots(figsize=(5.2, 3.2), layout="constrained")
    axes.semilogx(strengths, precisions, color=TEAL, marker="o")
    axes.set(xlabel="λ", ylabel="P@1, %", title=f"Precision and model size by λ ({folder.name})")
    right = axes.twinx()
    right.semilogx(strengths, np.array(sizes) / 1e6, color=ORANGE, marker="s", ms=4)
    right.set_ylabel("weights, millions", color=ORANGE)
    axes.spines["top"].set_visible(False)
    right.spines["top"].set_visible(False)
    figure.savefig(HERE / "lambda.png", dpi=130)
    pyplot.close(figure)


if __name__ == "__main__":
    tree_picture()
    score_picture()
    for argument in sys.argv[1:]:
        lambda_picture(Path(argument))
