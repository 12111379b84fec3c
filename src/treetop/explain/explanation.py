"""What an explanation contains, and how it is printed."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any

from treetop.labels.types import Label
from treetop.runtime.tables import html_table


@dataclass(frozen=True)
class Word:
    """A word or n-gram, its contribution to the raw score, and where it occurs in the text."""

    name: str
    value: float
    spans: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True)
class Node:
    """A node on the path from the root of a label tree to a label.

    Its raw score is `words` + `encoder` + `bias`; `worth` is the transformed raw score.
    """

    level: int
    raw: float
    worth: float
    siblings: int  # including the node itself
    labels: list[Label]  # most frequent labels below the node
    words: float
    encoder: float
    bias: float


@dataclass(frozen=True)
class Path:
    """The path through one tree, or the only node of a one-versus-all model.

    `raw_score` is the sum of the raw scores that count: of all nodes, or of the last one only if
    `transform` is ``identity``. A tree in which beam search does not reach the label (`reached` is
    False) counts too, if it is reached in another one.
    """

    score: float
    reached: bool
    nodes: list[Node]
    raw_score: float
    transform: str

    @property
    def is_flat(self) -> bool:
        """Whether all labels are children of the root: one-versus-all."""
        return len(self.nodes) == 1


@dataclass(frozen=True)
class Neighbour:
    """A similar training document."""

    document: int
    similarity: float
    text: str
    labels: list[Label]
    has_label: bool


@dataclass(frozen=True)
class Explanation:
    """Why a label has its score.

    `words`, `other_words`, `encoder` and `bias` add up to `raw_score`: the mean over the trees of the
    raw scores on the path to the label, or the weighted mean over the members of an ensemble. The score
    transform makes `score` of the raw scores. If beam search reaches the label in no tree, `reached` is
    False, the label is not predicted, `score` is 0, and the parts are those it would have had.
    `probability` is None if the model is not calibrated.
    """

    label: Label
    score: float
    words: list[Word]
    other_words: float
    encoder: float
    bias: float
    raw_score: float
    paths: list[Path]
    neighbours: list[Neighbour]
    probability: float | None = None

    @property
    def shown_score(self) -> str:
        """The score in words, after the probability if there is one."""
        score = f"score {self.score:.4f}"
        return score if self.probability is None else f"probability {self.probability:.4f}, {score}"

    @property
    def word_sum(self) -> float:
        """Contribution of all words."""
        return sum(word.value for word in self.words) + self.other_words

    @property
    def encoder_share(self) -> float:
        """The encoder's share of the positive contributions of words and encoder, from 0 to 1."""
        encoder, words = max(self.encoder, 0.0), max(self.word_sum, 0.0)
        return encoder / (encoder + words) if encoder + words > 0 else 0.0

    @property
    def reached(self) -> bool:
        """Whether beam search reaches the label in at least one tree."""
        return any(path.reached for path in self.paths)

    def to_dict(self) -> dict[str, Any]:
        """All fields and properties as plain values."""
        derived = ("word_sum", "encoder_share", "reached")
        return {**asdict(self), **{name: getattr(self, name) for name in derived}}

    def __str__(self) -> str:
        lines = [f"{self.label}  {self.shown_score}"]
        if not self.reached:
            lines.append(
                "  not predicted: nothing in the text is known, or beam search does not reach the label"
            )
        parts = f"words {self.word_sum:+.3f}"
        if self.encoder:
            parts += f", encoder {self.encoder:+.3f}"
        lines.append(f"  raw score {self.raw_score:+.3f} = {parts}, bias {self.bias:+.3f}")
        lines += [f"    {word.value:+.3f}  {word.name}" for word in self.words]
        if self.words:
            lines.append(f"    {self.other_words:+.3f}  all other words")
        for number, path in enumerate(self.paths, start=1):
            lines += path_lines(path, number, len(self.paths))
        if self.neighbours:
            lines.append("  similar training documents (* has the label):")
        lines += [
            f"  {'*' if neighbour.has_label else ' '} {neighbour.similarity:.3f}  "
            f"{neighbour.document}: {neighbour.text}"
            for neighbour in self.neighbours
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        rows = [(word.name, f"{word.value:+.3f}") for word in self.words]
        rows += [("all other words", f"{self.other_words:+.3f}")] if self.words else []
        rows += [("encoder", f"{self.encoder:+.3f}")] if self.encoder else []
        rows.append(("bias", f"{self.bias:+.3f}"))
        table = html_table(rows, (f"{self.label}, {self.shown_score}", "contribution"))
        return f"{table}<details><summary>as text</summary><pre>{escape(str(self))}</pre></details>"


def path_lines(path: Path, number: int, count: int) -> list[str]:
    """The printed lines of a path, number `number` of `count`."""
    if path.is_flat:
        name = "one-versus-all" if count == 1 else f"one-versus-all model {number}"
        return [f"  {name}: {path.transform}({path.raw_score:+.3f}) = {path.score:.4f}"]
    reached = "" if path.reached else " (not reached by beam search)"
    lines = [f"  tree {number}: {path.transform} score {path.score:.4f}{reached}"]
    for node in path.nodes:
        below = ", ".join(map(str, node.labels))
        worth = "" if node.worth == node.raw else f" -> {node.worth:.4f}"  # raw scores stay as they are
        lines.append(f"    level {node.level}: {node.raw:+.3f}{worth}, one of {node.siblings}: {below}")
    return lines
