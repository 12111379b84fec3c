"""Teams of processes that talk by torch.distributed: gloo between CPUs, NCCL between GPUs."""

from __future__ import annotations

import os
import pickle
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import numpy as np

from treetop.errors import TreetopError
from treetop.runtime.beats import Beats
from treetop.runtime.parallel import thread_count
from treetop.runtime.team import DismissedError, Place, Team

LOOPBACK = "127.0.0.1"
# Followers wait for work without a limit: the leader may solve rankers for hours meanwhile. If it ends,
# its connections do, and so do they.
FOREVER = timedelta(days=365)
START_SECONDS = 300
DISMISSED = "dismissed"


class GroupTeam(Team):
    """The processes of the default process group of torch, which exists already."""

    def __init__(self, rank: int, size: int, local_rank: int, local_size: int) -> None:
        self.rank, self.size = rank, size
        self.local_rank, self.local_size = local_rank, local_size

    def agree(self, value: Any) -> Any:
        """Return the leader's value in all processes."""
        import torch
        from torch import distributed

        values = [value]
        distributed.broadcast_object_list(values, 0, device=torch.device("cpu"))
        return values[0]

    def add_up(self, values: Any) -> Any:
        """Return the sum of a tensor over the processes."""
        from torch import distributed

        total = values.clone()
        distributed.all_reduce(total)
        return total

    def everyone(self, values: Any) -> list[Any]:
        """Return the tensors of all processes, which have one shape, by their ranks."""
        import torch
        from torch import distributed

        shares = [torch.empty_like(values) for _ in range(self.size)]
        distributed.all_gather(shares, values.contiguous())
        return shares

    def gather(self, rows: np.ndarray, counts: list[int]) -> list[np.ndarray]:
        """Return the rows of all processes, float32, on the leader; nothing on followers."""
        import torch
        from torch import distributed

        if not self.leads:
            if rows.size:
                distributed.send(torch.from_numpy(np.ascontiguousarray(rows)), 0)
            return []
        shares = [rows, *(np.empty((count, rows.shape[1]), np.float32) for count in counts[1:])]
        for rank, share in enumerate(shares):
            if rank and share.size:
                distributed.recv(torch.from_numpy(share), rank)
        return shares

    def joined(self, network: Any, some_unused: bool, averaged_apart: Sequence[Any] = ()) -> Any:
        """Wrap a module so that the processes average its gradients, except some weights'."""
        from torch.nn.parallel import DistributedDataParallel

        # The attribute that DistributedDataParallel reads. All processes start with the same weights.
        network._ddp_params_and_buffers_to_ignore = [
            name
            for name, weight in network.named_parameters()
            if any(weight is apart for apart in averaged_apart)
        ]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="`broadcast_buffers` is deprecated")
            return DistributedDataParallel(
                network,
                find_unused_parameters=some_unused,
                broadcast_buffers=False,
                gradient_as_bucket_view=True,
            )

    def average_rows(self, gradient: Any) -> None:
        """Average a gradient, of which few rows are not 0, over the processes: only those are sent.

        All processes add up in the same order, so they get the same sums.
        """
        from torch import distributed

        gradient /= self.size
        rows = gradient.any(1).nonzero()[:, 0]
        counts = [int(count) for count in self.everyone(rows.new_tensor([rows.numel()]))]
        most = max(counts)
        if self.size * most >= len(gradient):  # everything at once is less
            distributed.all_reduce(gradient)
            return
        numbers, values = rows.new_zeros(most), gradient.new_zeros(most, gradient.shape[1])
        numbers[: rows.numel()], values[: rows.numel()] = rows, gradient[rows]
        gradient[rows] = 0
        shares = zip(counts, self.everyone(numbers), self.everyone(values), strict=True)
        for count, own_numbers, own_values in shares:
            gradient.index_add_(0, own_numbers[:count], own_values[:count])

    def device(self, name: str) -> str:
        """The device of this process: with GPUs, the one of its number on its machine."""
        from torch import cuda

        if name.split(":")[0] not in ("auto", "cuda") or not cuda.is_available():
            return name
        if cuda.device_count() < self.local_size:
            raise TreetopError(
                f"{self.local_size} processes, but this machine has {cuda.device_count()} GPUs: start "
                "one process per GPU, or set device=cpu"
            )
        cuda.set_device(self.local_rank)
        return f"cuda:{self.local_rank}"

    def torch_threads(self, threads: int | None, in_order: bool) -> int | None:
        """Divide the threads of a machine among its processes."""
        return 1 if in_order else max(1, thread_count(threads) // self.local_size)


class ProcessTeam(GroupTeam):
    """A team whose followers wait for the work that the leader shares."""

    def __init__(self, place: Place, stall_seconds: float, listening: int | None = None) -> None:
        """Meet the others; `listening` is the leader's open socket, if torchrun does not listen."""
        from torch import cuda
        from torch.distributed import (  # type: ignore[attr-defined]
            PrefixStore,
            TCPStore,
            init_process_group,
        )

        super().__init__(place.rank, place.size, place.local_rank, place.local_size)
        self.place, self.count = place, 0
        if place.address == LOOPBACK and sys.platform == "linux":
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        store = TCPStore(
            place.address,
            place.port,
            is_master=place.rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True",
            timeout=timedelta(seconds=START_SECONDS),
            wait_for_workers=False,
            master_listen_fd=listening,
        )
        self.store = PrefixStore(f"treetop-{attempt}", store)
        init_process_group(
            "cpu:gloo,cuda:nccl" if cuda.is_available() else "gloo",
            store=self.store,
            rank=place.rank,
            world_size=place.size,
            timeout=timedelta(seconds=stall_seconds),
        )
        self.beats = Beats(place, attempt)

    def share(self, work: object) -> None:
        """Send work; large arrays are not copied for it."""
        import torch
        from torch import distributed

        buffers: list[pickle.PickleBuffer] = []
        body = pickle.dumps(work, 5, buffer_callback=buffers.append)
        parts = [memoryview(body), *(buffer.raw() for buffer in buffers)]
        self.store.set(f"work-{self.count}", " ".join(str(part.nbytes) for part in parts))
        self.count += 1
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The given buffer is not writable")
            for part in filter(len, parts):
                distributed.broadcast(torch.frombuffer(part, dtype=torch.uint8), 0)

    def receive(self) -> Any:
        """Wait, without computing, for what the leader shares."""
        import torch
        from torch import distributed

        key = f"work-{self.count}"
        self.store.wait([key], FOREVER)
        self.count += 1
        parts = [np.empty(int(size), np.uint8) for size in self.store.get(key).decode().split()]
        for part in parts:
            if part.size:
                distributed.broadcast(torch.from_numpy(part), 0)
        work = pickle.loads(parts[0].data, buffers=[part.data for part in parts[1:]])
        if work == DISMISSED:
            raise DismissedError
        return work

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Turn failures of another process into one line that names it."""
        from torch import distributed

        try:
            yield
        except RuntimeError as error:
            if not isinstance(error, distributed.DistError) and "gloo" not in str(error).lower():
                raise
            raise self.failure() from error

    def failure(self) -> TreetopError:
        """Return the error about the process that has failed: it has stopped giving signs of life."""
        silent = self.beats.silent()
        happened = f"{' and '.join(silent)} stopped or does not answer"
        if not silent:
            happened = (
                "a process did not answer in time, though all are alive (raise stall_minutes if one is "
                "slow)"
            )
        return TreetopError(
            f"{happened}: run again with --resume (resume=True) to continue from the last checkpoint"
        )

    def close(self, failed: bool = False) -> None:
        """Dismiss the followers and leave the group; those that are at work fail when it is gone."""
        from torch import distributed

        if self.leads and not failed:
            with suppress(RuntimeError):
                self.share(DISMISSED)
        self.beats.stop()
        with suppress(RuntimeError):
            distributed.destroy_process_group()
