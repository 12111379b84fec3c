"""What a cluster is trained on: its documents, brought together, and their signs and costs."""

from typing import NamedTuple

import numpy as np

from treetop.kernels import helper, maker
from treetop.kernels.arrays import empty, full


class ClusterDocuments(NamedTuple):
    """The documents that a cluster is trained on."""

    indptr: np.ndarray  # sparse half: of the documents at `rows` alone if `own`, else of all
    indices: np.ndarray
    data: np.ndarray
    own: bool
    rows: np.ndarray
    dense: np.ndarray  # these three: of all documents
    norms: np.ndarray
    weights: np.ndarray
    factor: np.float32  # of all weights


class ClusterTargets(NamedTuple):
    """Signs and costs of each document's labels, see `set_targets`."""

    slots: np.ndarray
    signs: np.ndarray
    costs: np.ndarray


@helper
def gather(indptr, indices, data, rows, numbers, features, out_ptr, out_indices, out_data):
    """Copy `rows` with their features numbered anew in the order of first occurrence.

    `numbers` is -1 everywhere, and again afterwards. Returns how many different features there are.
    """
    count = 0
    place = 0
    for at in range(rows.size):
        row = rows[at]
        for source in range(indptr[row], indptr[row + 1]):
            feature = indices[source]
            number = numbers[feature]
            if number < 0:
                number = count
                numbers[feature] = number
                features[count] = feature
                count += 1
            out_indices[place] = number
            out_data[place] = data[source]
            place += 1
        out_ptr[at + 1] = place
    for number in range(count):
        numbers[features[number]] = -1
    return count


@maker
def gathered(indptr, indices, data, rows, numbers, features):
    """Bring `rows` together: see `gather`. Returns how many features there are, and the copies."""
    size = 0
    for at in range(rows.size):
        size += indptr[rows[at] + 1] - indptr[rows[at]]
    own_ptr = full(rows.size + 1, 0, np.int64)
    own_indices, own_data = empty(size, np.int32), empty(size, np.float32)
    columns = gather(indptr, indices, data, rows, numbers, features, own_ptr, own_indices, own_data)
    return columns, own_ptr, own_indices, own_data


@helper
def set_targets(
    children, rows, positive_ptr, positive_rows, positive_costs, row_of, slots, signs, costs
):
    """Signs and costs of the documents that are positive for some of `children`.

    `slots` says for each document which row of `signs` and `costs` is its own; row 0 is that of all
    documents without a positive label here. Returns the number of rows in use.
    """
    used = 1
    for row in range(slots.size):
        slots[row] = 0
    first, last = children
    for child in range(first, last):
        for at in range(positive_ptr[child], positive_ptr[child + 1]):
            row = row_of[positive_rows[at]]
            if row >= rows.size or rows[row] != positive_rows[at]:
                continue  # a positive that the shortlist missed
            if slots[row] == 0:
                slots[row] = used
                for lane in range(signs.shape[1]):
                    signs[used, lane] = signs[0, lane]
                    costs[used, lane] = costs[0, lane]
                used += 1
            signs[slots[row], child - first] = 1.0
            costs[slots[row], child - first] = positive_costs[at]
    return used


@maker
def targets_of(
    children, width, rows, positive_ptr, positive_rows, positive_costs, negative_cost, row_of
):
    """Make the targets of `children`, at most `width` of them: see `set_targets`."""
    first, last = children
    room = 1 + min(rows.size, positive_ptr[last] - positive_ptr[first])
    slots = full(rows.size, 0, np.int32)
    signs = full((room, width), 0.0, np.float32)  # 0 in lanes without a label: no step there
    costs = full((room, width), negative_cost, np.float32)
    for lane in range(last - first):
        signs[0, lane] = -1.0
    set_targets(
        children, rows, positive_ptr, positive_rows, positive_costs, row_of, slots, signs, costs
    )
    return ClusterTargets(slots, signs, costs)
