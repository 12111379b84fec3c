"""What an explanation says, and how it is shown."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from html import escape

from treetop.runtime.tables import html_table


@dataclass(frozen=True)
class Word:
    """A word or n-gram, what it adds, and where it stands in the text."""

    name: str
    value: float
    spans: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True)
class Node:
    """A node on the way to a label: its raw score, what that counts for, and labels below it."""

    level: int
    raw: float
    worth: float
    siblings: int
    labels: list[str]


@dataclass(frozen=True)
class Path:
    """The way through one tree; `reached`: whether the search came by, else the tree counts for 0."""

    score: float
    reached: bool
    nodes: list[Node]


@dataclass(frozen=True)
class Neighbour:
    """A training document that is alike."""

    document: int
    similarity: float
    text: str
    labels: list[str]
    has_label: bool


@dataclass(frozen=True)
class Explanation:
    """Why a label got its score.

    `words`, `other_words`, `encoder` and `bias` add up to the raw scores on the way to the label, which
    is the mean over the trees of their sums.
    """

    label: str
    score: float
    words: list[Word]
    other_words: float
    encoder: float
    bias: float
    paths: list[Path]
    neighbours: list[Neighbour]

    @property
    def word_sum(self) -> float:
        """What all words add."""
        return sum(word.value for word in self.words) + self.other_words

    @property
    def encoder_share(self) -> float:
        """The encoder's part of what spoke for the label, 0 to 1."""
        encoder, words = max(self.encoder, 0.0), max(self.word_sum, 0.0)
        return encoder / (encoder + words) if encoder + words > 0 else 0.0

    def to_dict(self) -> dict[str, object]:
        """Return plain values, as the HTTP API does."""
        return {**asdict(self), "word_sum": self.word_sum, "encoder_share": self.encoder_share}

    def __str__(self) -> str:
        lines = [f"{self.label}  {self.score:.4f}"]
        lines.append(
            f"  words {self.word_sum:+.3f}, encoder {self.encoder:+.3f}, bias {self.bias:+.3f}"
        )
        lines += [f"    {word.value:+.3f}  {word.name}" for word in self.words]
        if self.words:
            lines.append(f"    {self.other_words:+.3f}  all other words")
        for number, path in enumerate(self.paths, start=1):
            passed = "" if path.reached else " (not in the beam: counts 0)"
            lines.append(f"  tree {number}: {path.score:.4f}{passed}")
            for node in path.nodes:
                named = ", ".join(node.labels)
                lines.append(
                    f"    level {node.level}: {node.raw:+.3f} counts {node.worth:.4f}, "
                    f"one of {node.siblings}: {named}"
                )
        lines += [
            f"  {'*' if one.has_label else ' '} {one.similarity:.3f}  {one.document}: {one.text}"
            for one in self.neighbours
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        rows = [(word.name, f"{word.value:+.3f}") for word in self.words]
        rows += [("all other words", f"{self.other_words:+.3f}")] if self.words else []
        rows += [("encoder", f"{self.encoder:+.3f}")] if self.encoder else []
        rows.append(("bias", f"{self.bias:+.3f}"))
        table = html_table(rows, (f"{self.label}, score {self.score:.4f}", "contribution"))
        return f"{table}<details><summary>as text</summary><pre>{escape(str(self))}</pre></details>"
