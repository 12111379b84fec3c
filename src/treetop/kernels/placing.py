"""Weights of clusters arranged in rows by feature, as the search reads them."""

from treetop.kernels import array, const, csr, f4, i4, i8, kernel, void
from treetop.kernels.products import WIDTH

# Weights that fill more than this share of a cluster are kept as full vectors of WIDTH children.
DENSE = 0.4


@kernel(void(const(i4), const(i8), i8, i8, array(i8), array(i4, 2), array(i8)))
def place_cluster(features, ends, cluster, count, cursor, rows, row_sizes):
    """Enter a cluster of `count` children into the rows of its features.

    `cursor` is the next free place of each row. A size is the number of weights, or minus the number of
    vectors for weights dense enough to be kept as a full row.
    """
    start = 0
    for at in range(features.size):
        place = cursor[features[at]]
        cursor[features[at]] = place + 1
        rows[place, 0] = cluster
        size = ends[at] - start
        row_sizes[place] = -((count + WIDTH - 1) // WIDTH) if size > DENSE * count else size
        start = ends[at]


@kernel(
    void(const(i4), *csr, i8, i8, const(i4, 2), array(i8), array(i4, 2), array(f4, 2), array(f4, 2))
)
def place_values(features, ends, children, values, low, high, rows, cursor, pairs, pair_values, full):
    """Copy a cluster's weights into the rows of its features from `low` to `high`.

    `cursor` is as in `place_cluster`; `pair_values` is `pairs` seen as floats.
    """
    start = 0
    for at in range(features.size):
        if not low <= features[at] < high:
            start = ends[at]
            continue
        target = rows[cursor[features[at]], 1]
        cursor[features[at]] += 1
        if target < 0:
            for source in range(start, ends[at]):
                child = children[source]
                full[-1 - target + child // WIDTH, child % WIDTH] = values[source]
        else:
            pairs[target, 0] = ends[at] - start
            for source in range(start, ends[at]):
                target += 1
                pairs[target, 0] = children[source]
                pair_values[target, 1] = values[source]
        start = ends[at]
