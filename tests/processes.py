"""Processes that tests start: each receives signals, and is ended with the test."""

import signal
import subprocess
from pathlib import Path


def receive_signals() -> None:
    """In a child before it begins: signals stop it, even if the tests' parent ignores them (nohup)."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def start(command, **options) -> subprocess.Popen:
    """A process that receives signals. Whoever starts it ends it: see the fixture `start_process`."""
    return subprocess.Popen(command, preexec_fn=receive_signals, **options)


def end(process: subprocess.Popen) -> None:
    """Kill a process that still runs, and close its pipes."""
    if process.poll() is None:
        process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def running_children() -> list[str]:
    """Number and command of each child process of this one that has not ended (Linux only).

    Without the trackers of multiprocessing and joblib, which end by themselves after this process.
    """
    found = []
    for task in Path("/proc/self/task").iterdir():
        for number in (task / "children").read_text().split():
            folder = Path("/proc", number)
            try:
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            except FileNotFoundError:
                continue
            if state != "Z" and "resource_tracker" not in command:
                found.append(f"{number}: {command.strip()}")
    return found
