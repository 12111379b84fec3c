"""The log of a level that Ray Train learns; tests/test_cluster.py learns one."""

import pytest

torch = pytest.importorskip("torch")

from treetop.training.finetune.cluster import Keeper, News  # noqa: E402

PLACES = ("one (10.0.0.1), process 5", "two (10.0.0.2), process 6")


@pytest.fixture
def keeper():
    keeper = Keeper(None)
    for rank, place in enumerate(PLACES):
        keeper.join(rank, place)
    return keeper


@pytest.mark.parametrize(
    ("failed", "missed", "named"),
    [
        ([1], [0], [1]),  # killed, while the other waited for it
        ([], [0], [1]),  # does not answer
        ([], [0, 1], [0, 1]),  # nobody knows
        ([0], [], [0]),  # an error of its own
    ],
)
def test_the_process_that_has_failed_is_named(keeper, failed, missed, named):
    keeper.lose(failed, missed)
    expected = [f"process {rank} ({PLACES[rank]})" for rank in named]
    assert keeper.news(-1) == News([], None, 0, expected)
    assert keeper.news(-1).failed == []


def test_steps_that_are_repeated_replace_the_earlier_ones(keeper):
    state = {"step": torch.tensor([2])}
    assert keeper.start() is None
    for step in (1, 2, 3):
        keeper.record({"step": step, "loss": 1.0})
    keeper.save(state)
    keeper.record({"step": 2, "loss": 0.5})
    assert keeper.start() is state
    figures, checkpoint, starts, _ = keeper.news(0)
    assert figures == [{"step": 1, "loss": 1.0}, {"step": 2, "loss": 0.5}]
    assert checkpoint is state
    assert starts == 2
    assert keeper.news(2) == News([], None, 2, [])
