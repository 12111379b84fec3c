"""Which machine a message names, and how tasks are divided among calls; see also test_cluster.py."""

import pytest

from treetop.runtime.cluster import CALLS_PER_SIZE, Call, growing_groups
from treetop.runtime.whereabouts import Whereabouts, places_listed


def test_a_task_that_is_started_again_knows_where_it_has_failed():
    known = Whereabouts()
    assert known.started("1/0/1", "one (10.0.0.1), process 5") is None
    assert known.started("1/1/1", "two (10.0.0.2), process 6") is None
    assert known.started("1/0/1", "two (10.0.0.2), process 7") == "one (10.0.0.1), process 5"
    places = known.of(["1/0/1", "1/1/1", "1/2/1"])
    assert places == ["two (10.0.0.2), process 6", "two (10.0.0.2), process 7"]
    assert places_listed(places[:1] * 2) == "two (10.0.0.2), process 6 and two (10.0.0.2), process 6"
    assert places_listed([]) == "machines that have not started them"


def test_attempts_of_a_call_have_names_of_their_own():
    first = Call("rankers", run=3, number=7, attempt=1)
    assert first.name == "3/7/1"
    assert first._replace(attempt=2).name == "3/7/2"


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 30, 1000])
def test_calls_have_one_task_each_at_first_and_more_later(count):
    groups = growing_groups(range(count), workers=2)
    assert [task for group in groups for task in group] == list(range(count))
    sizes = list(map(len, groups))
    assert sizes[: 2 * CALLS_PER_SIZE] == [1] * min(count, 2 * CALLS_PER_SIZE)
    assert sizes[:-1] == sorted(sizes[:-1])
    assert len(sizes) <= 2 * CALLS_PER_SIZE + count // 2
