"""Cancelling of work on several threads, such as by Ctrl-C, with the work that it contains."""

from __future__ import annotations

import threading

import numpy as np


class CancelledError(BaseException):
    """A run that contains this one has been interrupted or has failed; nobody needs the results."""


class Cancel:
    """The cancel flag of a run. To set it also cancels the runs that its tasks have started.

    An interrupt reaches only one thread but must stop all nested runs, and no others: threads of the
    same program may train models of their own.
    """

    def __init__(self, outer: Cancel | None) -> None:
        self.flag = np.zeros(1, np.uint8)
        self.outer, self.inner = outer, set[Cancel]()
        if outer is not None:
            outer.inner.add(self)
            if outer.flag[0]:  # set before this run was known
                self.set()

    def set(self) -> None:
        """Cancel the run and those within it."""
        self.flag[0] = 1
        for cancel in tuple(self.inner):
            cancel.set()

    def end(self) -> None:
        """Forget the run."""
        if self.outer is not None:
            self.outer.inner.discard(self)

    def check(self) -> None:
        """Raise `CancelledError` if the run may be incomplete."""
        if self.flag[0]:
            raise CancelledError


class Current(threading.local):
    """The run of which this thread does a task."""

    cancel: Cancel | None = None


current = Current()
