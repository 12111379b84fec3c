"""How a batch is divided into parts, and parts among processes."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from treetop.runtime.team import Team  # noqa: E402
from treetop.training.finetune.sharing import (  # noqa: E402
    batch_parts,
    part_size_of,
    parts_of_process,
    turns_of,
)

CPU = torch.device("cpu")


def process(rank, size):
    team = Team()
    team.rank, team.size = rank, size
    return team


def test_on_a_cpu_parts_depend_on_the_batch_alone_and_on_gpus_each_process_has_one():
    for size in (1, 2, 5):
        assert part_size_of(CPU, 64, process(0, size)) == 16
        assert part_size_of(CPU, 8, process(0, size)) == 8
    assert [part_size_of(torch.device("cuda"), 64, process(0, size)) for size in (1, 2, 5)] == [
        64,
        32,
        13,
    ]


def test_the_first_part_has_the_seed_of_the_step_and_others_have_their_own():
    rows = np.arange(40)[::-1]
    parts = batch_parts(rows, 16, seed=7)
    assert [part.seed for part in parts] == [7, 8, 9]
    np.testing.assert_array_equal(np.concatenate([part.rows for part in parts]), rows)
    assert {part.factor for part in parts} == {1.0}


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("count", [1, 4, 5])
def test_processes_compute_each_part_once_and_all_take_part(size, count):
    parts = batch_parts(np.arange(count), 1)
    own = [parts_of_process(parts, process(rank, size)) for rank in range(size)]
    assert all(own)
    counting = [part for share in own for part in share if part.factor]
    assert sorted(part.rows[0] for part in counting) == list(range(count))
    # gradients are averaged, so that each process multiplies its own by the number of processes
    assert {part.factor for part in counting} == {float(size)}
    assert max(map(len, own)) - min(map(len, own)) <= 1
    turns = turns_of(parts, process(0, size))
    assert [part.rows[0] for turn in turns for part in turn][:count] == list(range(count))
    assert {len(turn) for turn in turns} == {size}


def test_long_and_short_parts_are_mixed():
    """Documents are ordered by length: with two processes, the sums of positions are equal."""
    parts = batch_parts(np.arange(8), 1)
    totals = [sum(p.rows[0] for p in parts_of_process(parts, process(rank, 2))) for rank in (0, 1)]
    assert totals == [14, 14]
