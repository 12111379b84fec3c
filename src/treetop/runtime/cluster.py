"""Tasks on a Ray cluster, which is the extra `cluster`; it is used only where a runtime names one.

Ray schedules the tasks, sends their inputs to each machine once, and repeats those of a process or
machine that has failed. Results are consumed as they arrive, and only so many tasks are under way that
results which nobody has consumed yet cannot pile up.
"""

from __future__ import annotations

import logging
import os
import socket
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, TypeVar

from treetop.errors import TreetopError
from treetop.runtime.calls import Call, Remote, call, growing_groups
from treetop.runtime.extras import require
from treetop.runtime.runtime import Runtime
from treetop.runtime.whereabouts import Whereabouts, pinned_here, places_listed

Item = TypeVar("Item")
Result = TypeVar("Result")
# Tasks per core that are under way: while one is computed, the next is on its way.
TASKS_PER_CORE = 2
SECONDS_BETWEEN_LOOKS = 1.0
RETRIES = 3
LOCAL, AUTO, LOOPBACK = "local", "auto", "127."
SECONDS_TO_ANSWER = 10


class Cluster:
    """A connection to a Ray cluster."""

    def __init__(self, runtime: Runtime) -> None:
        """Connect to ``runtime.cluster``: an address, auto, or local, which starts Ray here."""
        self.ray = require("clusters", "cluster", "ray")
        self.runtime, self.reporter = runtime, runtime.reporter
        self.stall_seconds = 60 * runtime.stall_minutes
        self.connected_here = not self.ray.is_initialized()
        if self.connected_here:
            check_answers(str(runtime.cluster))
            self.reporter.step("connecting to the cluster")
            self.connect(str(runtime.cluster))
        self.whereabouts: Any = None  # an actor, from the first tasks on
        self.failures: Any = None  # reference to what it will answer
        self.watched_at = 0.0
        self.runs = 0
        self.known = self.living_nodes()
        self.stored: dict[int, Any] = {}  # references to what is stored, by the identity of the object
        for kind in _sent_once:
            self.ray.util.register_serializer(kind, serializer=self.store, deserializer=fetched)
        self.call = self.ray.remote(num_cpus=1, max_retries=RETRIES)(call)

    def connect(self, address: str) -> None:
        """Connect this process, whose standard error stays free of what Ray logs."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if address == LOCAL:
            options |= {"num_cpus": self.runtime.thread_count, "include_dashboard": False}
            options["_node_ip_address"] = "127.0.0.1"
        if address.startswith(LOOPBACK):  # Ray would look for the machine's outer address
            options["_node_ip_address"] = address.partition(":")[0]
        try:
            self.ray.init(address=address, **options)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise no_cluster(address, str(error).strip().splitlines()[0]) from None

    def close(self) -> None:
        """Disconnect, unless the program was connected before."""
        if self.whereabouts is not None:
            self.note_failed_tasks()
        if self.connected_here:
            self.ray.shutdown()
        elif self.whereabouts is not None:
            self.ray.kill(self.whereabouts)

    @property
    def cores(self) -> int:
        """Number of CPU cores of all machines."""
        return max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    @property
    def gpus(self) -> int:
        """Number of GPUs of all machines."""
        return int(self.ray.cluster_resources().get("GPU", 0))

    def living_nodes(self) -> dict[str, str]:
        """Return the names of the machines by their numbers in Ray."""
        return {
            node["NodeID"]: f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})"
            for node in self.ray.nodes()
            if node["Alive"]
        }

    def note_lost_nodes(self) -> None:
        """Report machines that have left the cluster."""
        living = self.living_nodes()
        for number in self.known.keys() - living.keys():
            self.reporter.note(
                f"machine {self.known[number]} has failed or left the cluster: its tasks are repeated"
            )
        self.known = living

    def store(self, value: Any) -> Any:
        """Return a reference to an object in Ray's store, in which it stays as long as it exists."""
        key = id(value)
        if key not in self.stored:
            content = {field.name: getattr(value, field.name) for field in fields(value)}
            self.stored[key] = self.ray.put((type(value), content))
            weakref.finalize(value, self.stored.pop, key, None)
        return self.stored[key]

    def run(
        self,
        stage: str,
        work: Remote[Item, Result],
        tasks: Sequence[Item],
        consume: Callable[[Item, Result], object],
        advance: Callable[[], object],
        gpus: int = 0,
    ) -> None:
        """Call ``consume(task, work(task, cancel))`` for each task, in the order in which they end.

        `work` is pickled; it is sent to each machine once. Its arrays arrive read-only. `stage` names
        the tasks in messages.
        """
        if self.whereabouts is None:
            self.whereabouts = pinned_here(self.ray, Whereabouts)
            self.failures = self.whereabouts.failures.remote()
        self.runs += 1
        shared = self.ray.put(work)
        workers = (gpus and self.gpus) or self.cores
        groups = growing_groups(tasks, workers)
        remaining = iter(range(len(groups)))
        pending: dict[Any, Call] = {}
        limit = TASKS_PER_CORE * workers
        remote = self.call.options(num_gpus=gpus)

        def start(number: int, attempt: int = 1) -> None:
            call = Call(stage, self.runs, number, attempt)
            # Within a list, a reference is passed on as it is.
            pending[remote.remote([shared], groups[number], call, self.whereabouts)] = call

        while True:
            while len(pending) < limit and (number := next(remaining, None)) is not None:
                start(number)
            if not pending:
                self.watch(at_once=True)
                return
            ready, _ = self.ray.wait(list(pending), timeout=self.stall_seconds)
            self.watch()
            if not ready:
                for call in self.stalled(pending):
                    start(call.number, call.attempt + 1)
            for reference in ready:
                group = groups[pending.pop(reference).number]
                for task, result in zip(group, self.results(reference, stage), strict=True):
                    consume(task, result)
                    advance()

    def watch(self, at_once: bool = False) -> None:
        """Report what has failed, about once per second."""
        if at_once or time.monotonic() - self.watched_at > SECONDS_BETWEEN_LOOKS:
            self.watched_at = time.monotonic()
            self.note_lost_nodes()
            self.note_failed_tasks()

    def note_failed_tasks(self) -> None:
        """Report tasks that were started again, as far as the actor has answered."""
        while self.ray.wait([self.failures], timeout=0)[0]:
            failed = self.ray.get(self.failures)
            self.failures = self.whereabouts.failures.remote()
            for stage, place in failed:
                self.reporter.note(f"{place} has failed during {stage}: its task was repeated")
            if not failed:
                return

    def stalled(self, pending: dict[Any, Call]) -> list[Call]:
        """Cancel tasks of which none has ended in a long time: their processes do not answer."""
        calls = list(pending.values())
        places = self.ray.get(self.whereabouts.of.remote([call.name for call in calls]))
        if any(call.attempt > RETRIES for call in calls):
            raise TreetopError(
                f"a task of {calls[0].stage} on {places_listed(places)} did not end in "
                f"{self.stall_seconds / 60:.3g} minutes, {RETRIES + 1} times: "
                "raise stall_minutes, or see `ray list tasks`"
            )
        for reference in pending:
            self.ray.cancel(reference, force=True)
        pending.clear()
        self.reporter.note(
            f"tasks of {calls[0].stage} on {places_listed(places)} do not answer: they are repeated"
        )
        return calls

    def results(self, reference: Any, stage: str) -> list[Any]:
        """Return the results of a call, or raise its error as if it had occurred here."""
        try:
            results: list[Any] = self.ray.get(reference)
            return results
        except self.ray.exceptions.RayTaskError as error:
            raise (error.cause or error) from None
        except self.ray.exceptions.RayError as error:
            reason = str(error).strip().splitlines()[0]
            raise TreetopError(
                f"a task of {stage} on the cluster failed {RETRIES + 1} times: {reason}"
            ) from None


# Classes of objects that go to a machine once, however many tasks they are part of.
_sent_once: list[type] = []


def sent_once(kind: type[Item]) -> type[Item]:
    """Decorate a dataclass of large objects."""
    _sent_once.append(kind)
    return kind


def fetched(reference: Any) -> Any:
    """Return an object from Ray's store; its arrays are read-only and not copied."""
    import ray

    kind, content = ray.get(reference)
    return kind(**content)


def check_answers(address: str) -> None:
    """Raise unless something listens at HOST:PORT; Ray would try for minutes."""
    if address in (LOCAL, AUTO):
        return
    if "://" in address:
        raise TreetopError(
            f"cluster {address!r} is used from outside, which treetop cannot: run on one of its "
            "machines with cluster=auto (--cluster auto), for instance by `ray job submit`"
        )
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise TreetopError(f"cluster {address!r} is not an address: use HOST:PORT, auto or local")
    try:
        socket.create_connection((host, int(port)), timeout=SECONDS_TO_ANSWER).close()
    except OSError as error:
        raise no_cluster(address, error.strerror or str(error)) from None


def no_cluster(address: str, reason: str) -> TreetopError:
    """Return the error to raise if there is no cluster at an address."""
    return TreetopError(
        f"no Ray cluster at {address!r} ({reason}): start one (ray start --head), or use cluster=local "
        "(--cluster local)"
    )
