"""Sizes of a model and of its training for any number of labels, from counted bytes."""

from generated import COUNTS

from treetop.labels.pifa import VALUES_PER_TASK
from treetop.labels.tree import LABELS_PER_WAVE
from treetop.ranking.solver import BLOCK_FEATURES
from treetop.settings.auto import sizes_by_branching
from treetop.training.memory import LANES, UPPER_FEATURES, VALUE, WEIGHT

THREADS = 2
PROGRAM = 2e8  # bytes of Python, its packages and compiled kernels
# Features of a document, and its labels, in problems with Amazon-670K's counts.
VALUES, POSITIVES = 61, 5.1
TREE_FEATURES = 256


def folder_formula(labels: int, counts: dict, known: int) -> float:
    """Bytes of a model: rows, cells, pointers of features, biases, tree and label names."""
    share = labels / known
    weights = share * (8 * counts["rows"] + 2 * counts["cells"] + 4 * counts["nodes"])
    # Of the tree: the label of each leaf and the pointers of clusters; a name is about 8 bytes long.
    return weights + 16 * counts["features"] + labels * (8 + 16 + 8) + share * 16 * counts["clusters"]


def memory_formula(labels: int) -> float:
    """Bytes that training takes at most, as `training/memory.py` plans it for two threads."""
    counts = COUNTS["amazon-670k"]
    documents = labels * counts.documents / counts.labels
    values, positives = VALUES * documents, POSITIVES * documents
    share = min(1.0, LABELS_PER_WAVE / labels)
    wave = 2 * THREADS * share * min(TREE_FEATURES, VALUES * positives / labels) * labels
    tree = VALUE * (3 * positives + 2 * THREADS * VALUES_PER_TASK + UPPER_FEATURES * labels + wave)
    widest = BLOCK_FEATURES + counts.vocabulary
    rankers = 5 * VALUE * positives + WEIGHT * values + 2 * THREADS * WEIGHT * LANES * widest
    return PROGRAM + VALUE * (values + positives) + max(tree, rankers)


def levels(labels: int) -> int:
    """The number of levels of a tree with up to 16 children per node and 100 labels per cluster."""
    return len(sizes_by_branching(labels, 16, 100)) + 1
