"""What processes that talk by torch.distributed add up; they really run."""

import os
import sys

import pytest

torch = pytest.importorskip("torch")

from torch import distributed  # noqa: E402

from treetop.runtime.process_group import GroupTeam  # noqa: E402

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="binds gloo to the interface lo")


def gradient_of(rank, touched):
    """A gradient of 40 rows, of which a process has touched some, one of them with zeros."""
    gradient = torch.zeros(40, 3)
    rows = torch.randperm(40, generator=torch.Generator().manual_seed(rank))[: touched + rank]
    gradient[rows] = torch.arange(3.0 * len(rows)).view(-1, 3) + rank
    return gradient


def average(rank, size, cases, folder):
    """Average the gradients of a process with those of the others, several times."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=size
    )
    gradients = [gradient_of(rank, touched) for touched in cases]
    for gradient in gradients:
        GroupTeam(rank, size, rank, size).average_rows(gradient)
    torch.save(gradients, f"{folder}/{rank}")
    distributed.destroy_process_group()


def test_rows_are_averaged_over_processes(tmp_path):
    size, cases = 3, (0, 5, 30)  # of the last, everything is sent
    torch.multiprocessing.spawn(average, (size, cases, str(tmp_path)), nprocs=size)
    averaged = [torch.load(tmp_path / str(rank)) for rank in range(size)]
    for case, touched in enumerate(cases):
        mean = sum(gradient_of(rank, touched) for rank in range(size)) / size
        torch.testing.assert_close(averaged[0][case], mean)
        assert all(torch.equal(other[case], averaged[0][case]) for other in averaged)
