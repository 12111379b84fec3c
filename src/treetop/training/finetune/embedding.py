"""Φ_dnn of many documents, computed by all processes of a team."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from treetop.features.encoders.devices import pick_device
from treetop.features.encoders.subwords import Ragged
from treetop.features.encoders.transformer import Documents, Encoder
from treetop.runtime.cluster import Cluster
from treetop.runtime.parallel import torch_threads
from treetop.runtime.team import Team

# Batches per task on a cluster: few enough that all processes have some until the end.
MOST_BATCHES_PER_TASK, TASKS_PER_WORKER = 16, 4


def embed_together(
    encoder: Encoder,
    tokens: Documents,
    team: Team,
    advance: Callable[[], object] | None = None,
) -> np.ndarray:
    """Compute Φ_dnn: float32, rows x width; on followers, only their share.

    The batches depend on the documents alone, so the vectors are the same on any number of processes.
    These take them in turn; successive batches take about equally long.
    """
    if team.cluster is not None:
        assert isinstance(tokens, Ragged)
        return embed_on_cluster(encoder, tokens, team.cluster, advance)
    if team.size == 1:
        return encoder.embed(tokens, advance)
    batches = list(encoder.rows_of_batches(tokens))
    shares = [
        np.concatenate([np.zeros(0, np.int64), *batches[rank :: team.size]])
        for rank in range(team.size)
    ]
    vectors = encoder.embed(tokens, advance, batches[team.rank :: team.size])
    parts = team.gather(vectors[shares[team.rank]], [rows.size for rows in shares])
    for rows, part in list(zip(shares, parts))[1:]:
        vectors[rows] = part
    return vectors


@dataclass(frozen=True)
class EncodingTasks:
    """The encoding of some batches of documents in a process of the cluster."""

    encoder: Encoder
    tokens: Ragged
    on_gpu: bool

    def __call__(self, batches: list[np.ndarray], _: np.ndarray) -> np.ndarray:
        """Compute Φ_dnn of the documents of the batches, in their order."""
        encoder = self.encoder.to("cuda") if self.on_gpu else self.encoder
        ends = np.cumsum([rows.size for rows in batches])
        places = np.split(np.arange(ends[-1]), ends[:-1])
        return np.asarray(encoder.embed(self.tokens.of_rows(np.concatenate(batches)), None, places))


def embed_on_cluster(
    encoder: Encoder, tokens: Ragged, cluster: Cluster, advance: Callable[[], object] | None
) -> np.ndarray:
    """Compute Φ_dnn of all documents; the batches are those of a single process."""
    batches = list(encoder.rows_of_batches(tokens))
    workers = cluster.gpus or cluster.cores
    size = max(1, min(MOST_BATCHES_PER_TASK, len(batches) // (TASKS_PER_WORKER * workers)))
    vectors = np.zeros((tokens.rows, encoder.width), np.float32)

    def keep(task: list[np.ndarray], embedded: np.ndarray) -> None:
        vectors[np.concatenate(task)] = embedded
        for _ in task if advance else ():
            advance()  # type: ignore[misc]

    home = next(encoder.parameters()).device
    work = EncodingTasks(encoder.cpu(), tokens, on_gpu=cluster.gpus > 0)
    tasks = [batches[start : start + size] for start in range(0, len(batches), size)]
    cluster.run("encoding", work, tasks, keep, lambda: None, gpus=min(1, cluster.gpus))
    encoder.to(home)
    return vectors


@dataclass(frozen=True)
class FrozenEncoding:
    """Encoding with an encoder that is not fine-tuned, as work to share."""

    encoder: Encoder
    tokens: Ragged
    device: str
    threads: int | None
    in_order: bool

    def lead(self, team: Team, advance: Callable[[], object]) -> np.ndarray:
        """Share the work and do the leader's part; returns Φ_dnn."""
        if team.size > 1:
            device = pick_device(team.device(self.device))
            self.encoder.cpu()  # as which it is sent
            team.share(self)
            self.encoder.to(device)
        return self.embed(team, advance)

    def follow(self, team: Team) -> None:
        """Do this process's part."""
        self.encoder.to(pick_device(team.device(self.device)))
        self.embed(team)

    def embed(self, team: Team, advance: Callable[[], object] | None = None) -> np.ndarray:
        """Embed this process's share; returns all vectors on the leader."""
        with torch_threads(team.torch_threads(self.threads, self.in_order)):
            return embed_together(self.encoder, self.tokens, team, advance)
