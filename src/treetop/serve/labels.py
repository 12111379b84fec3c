"""Search over label names."""

from __future__ import annotations

import numpy as np

# Hits looked at, for each that is wanted, before the best are chosen.
LOOK_FURTHER = 20
# Labels listed at most.
MOST = 1000


class LabelSearch:
    """All names in one lower-case string: millions of them are searched in milliseconds."""

    def __init__(self, names: np.ndarray, counts: np.ndarray) -> None:
        self.names, self.counts = [str(name) for name in names], counts
        folded = [name.casefold().replace("\n", " ") for name in self.names]
        self.text = "\n" + "\n".join(folded) + "\n"
        self.starts = np.cumsum([1] + [len(name) + 1 for name in folded])[:-1]
        self.frequent = np.argsort(-np.asarray(counts), kind="stable")[:MOST].tolist()

    def find(self, query: str, limit: int) -> list[tuple[str, int]]:
        """Names that hold `query`: those that begin with it first, then at a word, then the others.

        Within these the frequent ones come first. Gives (name, training documents).
        """
        query = " ".join(query.casefold().split())
        if not query:
            return [(self.names[label], int(self.counts[label])) for label in self.frequent[:limit]]
        ranked: dict[int, int] = {}
        for rank, pattern in enumerate(("\n" + query, " " + query, query)):
            places: list[int] = []
            at = self.text.find(pattern)
            while at >= 0 and len(ranked) + len(places) < LOOK_FURTHER * limit:
                places.append(at + len(pattern) - len(query))
                at = self.text.find(pattern, at + 1)
            for label in (np.searchsorted(self.starts, places, side="right") - 1).tolist():
                ranked.setdefault(label, rank)
        best = sorted(ranked, key=lambda label: (ranked[label], -int(self.counts[label]), label))
        return [(self.names[label], int(self.counts[label])) for label in best[:limit]]
