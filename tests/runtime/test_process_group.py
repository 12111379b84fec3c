"""What processes that talk by torch.distributed add up; they really run."""

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


def average(rank, size, touched, folder):
    """Average the gradients of a process with those of the others."""
    import os

    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=size
    )
    gradient = gradient_of(rank, touched)
    GroupTeam(rank, size, rank, size).average_rows(gradient)
    torch.save(gradient, f"{folder}/{rank}")
    distributed.destroy_process_group()


@pytest.mark.parametrize(("size", "touched"), [(2, 0), (3, 5), (3, 30)])
def test_rows_are_averaged_over_processes(size, touched, tmp_path):
    torch.multiprocessing.spawn(average, (size, touched, str(tmp_path)), nprocs=size)
    mean = sum(gradient_of(rank, touched) for rank in range(size)) / size
    averaged = [torch.load(tmp_path / str(rank)) for rank in range(size)]
    torch.testing.assert_close(averaged[0], mean)
    assert all(torch.equal(other, averaged[0]) for other in averaged)
