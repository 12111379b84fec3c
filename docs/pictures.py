"""Draws the pictures of docs/explained.md."""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import numpy as np
from matplotlib import pyplot

HERE = Path(__file__).parent
TEAL, ORANGE, GREY = "#00796b", "#e65100", "#b0bec5"


def tree_picture() -> None:
    """A tree 4-12-36 with the way of a beam of 2 through it."""
    sizes, chosen = (1, 4, 12, 36), ({0}, {1, 2}, {4, 6}, {13, 18, 19})
    figure, axes = pyplot.subplots(figsize=(9, 3.6), layout="constrained")
    place = lambda level, node: ((node + 0.5) / sizes[level], -level)  # noqa: E731
    for level in range(1, 4):
        for node in range(sizes[level]):
            parent = node * sizes[level - 1] // sizes[level]
            looked = parent in chosen[level - 1]
            colour = TEAL if node in chosen[level] else ORANGE if looked else GREY
            (x, y), (px, py) = place(level, node), place(level - 1, parent)
            axes.plot(
                [px, x], [py, y], color=colour if looked else GREY, lw=1.6 if looked else 0.6, zorder=1
            )
            axes.scatter(x, y, s=60 if level < 3 else 26, color=colour, zorder=2)
    axes.scatter(*place(0, 0), s=70, color=TEAL, zorder=2)
    names = ("root", "4 nodes", "12 nodes", "36 labels")
    for level, name in enumerate(names):
        axes.text(-0.01, -level, name, ha="right", va="center")
    axes.set(
        xlim=(-0.12, 1.0),
        ylim=(-3.3, 0.3),
        title="4-12-L with a beam of 2: followed (teal), looked at (orange), never seen (grey)",
    )
    axes.axis("off")
    figure.savefig(HERE / "tree.png", dpi=130)
    pyplot.close(figure)


def score_picture() -> None:
    """What a raw score is worth."""
    from treetop.ranking.scores import score_kind

    values = np.linspace(-1.5, 2, 200)
    figure, axes = pyplot.subplots(figsize=(5.2, 3.2), layout="constrained")
    for name, colour in (("l3-hinge", TEAL), ("l1-hinge", ORANGE), ("sigmoid", GREY)):
        kind = score_kind(name)
        worth = (
            1 / (1 + np.exp(-values))
            if name == "sigmoid"
            else np.exp(-(np.maximum(1 - values, 0) ** kind.power))
        )
        axes.plot(values, worth, color=colour, label=name)
    axes.set(
        xlabel="raw score of a ranker", ylabel="worth", title="Multiplied from the root to the label"
    )
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(HERE / "scores.png", dpi=130)
    pyplot.close(figure)


def lambda_picture() -> None:
    """Precision and size over λ, on the documentation of installed packages."""
    import treetop
    from treetop.data.docstrings import load_docstrings

    data = load_docstrings()
    train, test = data.split("train"), data.split("test")
    strengths, found, sizes = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0), [], []
    for strength in strengths:
        model = treetop.XRLinear(lambda_=strength).fit(train.texts, train.labels)
        found.append(100 * treetop.scorer("P@1")(model, test.texts, test.labels))
        sizes.append(
            sum(
                int((r.weights.pairs[:, 1] != 0).sum() + (r.weights.full != 0).sum())
                for r in model.rankers_
            )
            / 1e3
        )
    figure, axes = pyplot.subplots(figsize=(5.2, 3.2), layout="constrained")
    axes.semilogx(strengths, found, color=TEAL, marker="o")
    axes.set(xlabel="λ", ylabel="P@1, %", title="λ on the documentation of Python packages")
    other = axes.twinx()
    other.semilogx(strengths, sizes, color=ORANGE, marker="s", ms=4)
    other.set_ylabel("weights kept, thousands", color=ORANGE)
    axes.spines["top"].set_visible(False)
    other.spines["top"].set_visible(False)
    figure.savefig(HERE / "lambda.png", dpi=130)
    pyplot.close(figure)


if __name__ == "__main__":
    tree_picture()
    score_picture()
    lambda_picture()
