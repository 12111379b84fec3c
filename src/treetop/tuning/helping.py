"""Further processes that search at the same time."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager

from treetop.tuning.search import SharedSearch, open_study, run_trials
from treetop.tuning.workspace import SplitDocuments, Workspace


@contextmanager
def helpers(search: SharedSearch, fingerprint: str, workspace: Workspace, jobs: int) -> Iterator[None]:
    """Further processes that try settings at the same time, until the block ends."""
    context = multiprocessing.get_context("spawn")
    arguments = [
        (search, fingerprint, workspace.documents, workspace.metric, workspace.threads, number)
        for number in range(1, jobs)
    ]
    processes = [context.Process(target=help_search, args=own, daemon=True) for own in arguments]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.join(max(0.0, search.until - time.time()) if search.trials else 1.0)
            process.terminate()
            process.join()


def help_search(
    search: SharedSearch,
    fingerprint: str,
    documents: SplitDocuments,
    metric: str,
    threads: int,
    number: int,
) -> None:
    """What a further process does."""
    workspace = Workspace(documents, metric, threads)
    run_trials(open_study(search, fingerprint, number), search, workspace, {})
