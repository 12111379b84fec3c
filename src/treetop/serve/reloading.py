"""How a worker asks the supervisor to load a new model."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from dataclasses import dataclass

from treetop.serve.board import FAILED, LOADED, ReloadBoard
from treetop.serve.errors import RequestError

POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Reloader:
    """Asks the supervisor, and waits for the outcome."""

    supervisor: int  # its process id
    board: ReloadBoard
    timeout: float

    async def reload(self) -> bool:
        """Have the model in the folder loaded; False if it has not changed."""
        if self.board.running:
            raise RequestError(409, "reloading", "Model is already being reloaded")
        before, deadline = self.board.finished, time.monotonic() + self.timeout
        os.kill(self.supervisor, signal.SIGHUP)
        while self.board.finished == before:
            await asyncio.sleep(POLL_SECONDS)
            if time.monotonic() > deadline:
                message = f"Model is not ready after {self.timeout:g} seconds: loading continues"
                raise RequestError(503, "timeout", message, retry_after="5")
        if self.board.outcome == FAILED:
            message = "Reload failed: still serving the previous model, see the server's log"
            raise RequestError(409, "not_reloaded", message)
        return self.board.outcome == LOADED
