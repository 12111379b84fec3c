"""Search labels by name."""

from __future__ import annotations

import numpy as np

from treetop.ranking.combining import largest

# Matches collected per label wanted, before they are ranked.
CANDIDATES_PER_LABEL = 20
# Labels returned for an empty query.
MAX_FREQUENT = 1000
# Characters that are searched at once.
STEP = 1 << 18


class LabelSearch:
    """All names in one case-folded string: millions of them are searched in milliseconds."""

    def __init__(self, names: np.ndarray, counts: np.ndarray) -> None:
        self.names, self.counts = [str(name) for name in names], counts
        folded = [name.casefold().replace("\n", " ") for name in self.names]
        self.text = "\n" + "\n".join(folded) + "\n"
        self.starts = np.cumsum([1] + [len(name) + 1 for name in folded])[:-1]
        self.frequent = largest(np.asarray(counts), MAX_FREQUENT).tolist()

    def find_from(self, pattern: str, start: int) -> int:
        """Where `pattern` occurs first, in steps: other threads can run between two of them."""
        while start < len(self.text):
            at = self.text.find(pattern, start, start + STEP + len(pattern))
            if at >= 0:
                return at
            start += STEP
        return -1

    def find(self, query: str, limit: int) -> list[tuple[str, int]]:
        """Names that contain `query`, and their number of training documents.

        Names that start with the query come first, then those with a word that does, then the others;
        within each group the most frequent first. An empty query lists the most frequent labels.
        """
        query = " ".join(query.casefold().split())
        if not query:
            return [(self.names[label], int(self.counts[label])) for label in self.frequent[:limit]]
        ranks: dict[int, int] = {}
        for rank, pattern in enumerate(("\n" + query, " " + query, query)):
            places: list[int] = []
            at = self.find_from(pattern, 0)
            while at >= 0 and len(ranks) + len(places) < CANDIDATES_PER_LABEL * limit:
                places.append(at + len(pattern) - len(query))
                at = self.find_from(pattern, at + 1)
            for label in (np.searchsorted(self.starts, places, side="right") - 1).tolist():
                ranks.setdefault(label, rank)
        best = sorted(ranks, key=lambda label: (ranks[label], -int(self.counts[label]), label))
        return [(self.names[label], int(self.counts[label])) for label in best[:limit]]
