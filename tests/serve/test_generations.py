"""New models are tried by processes of their own; workers that die or hang are replaced."""

import os
import signal
import threading
import time

import httpx
import pytest

from tests.serve.conftest import train
from tests.serve.test_server import predict, wait_until
from treetop.errors import TreetopError
from treetop.serve.board import Heartbeats, ReloadBoard
from treetop.serve.generation import LONGEST_DELAY, delay_after
from treetop.serve.signals import Signals
from treetop.serve.supervisor import Started, Supervisor

# A model does what the name of a file beside its folder says: `crash` or `hang` while it is loaded, or
# `crash_later`, when it answers its first text in a worker.
CODE = """
import os, signal, sys, time
from pathlib import Path
from treetop.serve import engine, leading, run, worker
from treetop.serve.options import ServiceOptions

folder, leader = Path({folder!r}), []

class Served(engine.Served):
    def __init__(self, *given):
        super().__init__(*given)
        leader.append(os.getpid())
        if folder.with_name("crash").exists():
            os.kill(os.getpid(), signal.SIGSEGV)
        if folder.with_name("hang").exists():
            time.sleep(1000)
        self.crashes = folder.with_name("crash_later").exists()

    def answer(self, *given):
        if self.crashes and os.getpid() != leader[-1]:
            os.kill(os.getpid(), signal.SIGSEGV)
        return super().answer(*given)

leading.Served = Served
options = ServiceOptions(
    folder, port=0, workers=2, reload_timeout={reload_timeout}, hang_seconds={hang}
)
raise SystemExit(run.serve(options))
"""


def server_of(serving, folder, reload_timeout=60.0, hang=60.0):
    code = CODE.format(folder=str(folder), reload_timeout=reload_timeout, hang=hang)
    return serving(folder, code=code)


class Load:
    """Requests of some clients, one after the other, until the end of the block."""

    def __init__(self, server, clients=3):
        self.server, self.stop, self.wrong, self.count = server, threading.Event(), [], 0
        self.crew = [threading.Thread(target=self.run, daemon=True) for _ in range(clients)]

    def run(self):
        with httpx.Client(base_url=self.server.address, timeout=60) as client:
            while not self.stop.is_set():
                try:
                    answer = client.post("/v1/predict", json={"text": "apple pear"})
                    if answer.status_code != 200:
                        self.wrong.append(answer.text)
                except httpx.HTTPError as error:
                    self.wrong.append(repr(error))
                self.count += 1

    def __enter__(self):
        for one in self.crew:
            one.start()
        return self

    def __exit__(self, *_):
        before = self.count
        wait_until(lambda: self.count > before + 20)
        self.stop.set()
        for one in self.crew:
            one.join()


@pytest.fixture(scope="module")
def patient(serving, tmp_path_factory):
    """A server and its model folder."""
    folder = train(tmp_path_factory.mktemp("patient") / "m")
    server = server_of(serving, folder)
    yield server, folder
    assert server.stop() == 0


@pytest.fixture(scope="module")
def impatient(serving, tmp_path_factory):
    """One that gives a new model 8 seconds."""
    folder = train(tmp_path_factory.mktemp("impatient") / "m")
    server = server_of(serving, folder, reload_timeout=8.0)
    yield server, folder
    assert server.stop() == 0


@pytest.fixture(scope="module")
def strict(serving, model_folder):
    """One that gives a silent worker 3 seconds; on a busy machine it may kill others too."""
    server = server_of(serving, model_folder, hang=3.0)
    yield server
    assert server.stop() == 0


def reload_in_vain(server, reason):
    """Reload under load a model that cannot be loaded; no request may be lost."""
    workers = server.workers()
    with Load(server) as load:
        answer = httpx.post(f"{server.address}/v1/reload", timeout=60)
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "not_reloaded")
    assert load.wrong == []
    wait_until(lambda: len(server.generations()) == 1)
    assert server.workers() == workers
    message = f"Reload failed, still serving the previous model: {reason}"
    wait_until(lambda: message in "".join(server.log))


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("crash", "the process that loaded the model ended (SIGSEGV)"),
        ("crash_later", "a worker ended while it was starting (SIGSEGV)"),
    ],
)
def test_a_model_that_crashes_does_no_harm(patient, file, reason):
    server, folder = patient
    train(folder, seed=1)
    folder.with_name(file).touch()
    reload_in_vain(server, reason)
    folder.with_name(file).unlink()


def test_a_model_that_hangs_does_no_harm(impatient):
    server, folder = impatient
    train(folder, seed=1)
    folder.with_name("hang").touch()
    reload_in_vain(server, "the model was not ready after 8 seconds")
    folder.with_name("hang").unlink()


def test_workers_are_replaced_while_the_folder_holds_a_broken_model(patient):
    server, folder = patient
    (folder / "config.json").write_text("{}")
    reload_in_vain(server, folder)
    killed = server.workers()[0]
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: len(set(server.workers()) - {killed}) == 2)
    server.wait_until_ready()
    assert predict(server.address).json()["results"][0]["labels"][0]["label"] == "fruit"


def test_a_worker_that_hangs_is_replaced(strict):
    server = strict
    stopped = server.workers()[0]
    os.kill(stopped, signal.SIGSTOP)
    wait_until(lambda: stopped not in server.workers() and len(server.workers()) == 2)
    server.wait_until_ready()
    wait_until(lambda: f"Worker [{stopped}] has not responded for " in "".join(server.log))


def test_a_generation_that_is_killed_is_replaced(impatient):
    server, _ = impatient
    killed = server.generations()[-1]
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: set(server.generations()) - {killed})
    wait_until(lambda: len(server.workers()) == 2)
    server.wait_until_ready()
    assert predict(server.address).status_code == 200


def test_a_model_that_crashes_at_the_start_is_an_error(tmp_path, monkeypatch):
    supervisor = Supervisor(
        [],
        lambda sockets, pipe: os.kill(os.getpid(), signal.SIGKILL),
        lambda: (0, 0),
        ReloadBoard(),
        reload_seconds=60,
        stop_seconds=60,
    )
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    monkeypatch.setattr(Signals, "__init__", quiet_signals)
    with pytest.raises(TreetopError, match=r"^the process that loaded the model ended \(SIGKILL\)$"):
        supervisor.run(print)
    assert {number: signal.getsignal(number) for number in handlers} == handlers


def quiet_signals(self):
    """Do not change the handlers of this process."""
    self.reader, self.writer = os.pipe()
    os.set_blocking(self.reader, False)


def test_workers_that_keep_dying_are_started_later_and_later():
    assert [delay_after(failures) for failures in range(6)] == [0, 0, 0.5, 1, 2, 4]
    assert delay_after(1000) == LONGEST_DELAY


def test_heartbeats_are_shared_with_children():
    heartbeats = Heartbeats(2)
    assert not heartbeats.has_begun(1)
    child = os.fork()
    if not child:
        heartbeats.beat(1)
        os._exit(0)
    os.waitpid(child, 0)
    assert heartbeats.has_begun(1)
    assert not heartbeats.has_begun(0)
    assert heartbeats.age(1) < 60
    heartbeats.clear(1)
    heartbeats.forgive(1)
    assert not heartbeats.has_begun(1)


def test_a_report_may_arrive_in_pieces():
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    started = Started(0, reader, None, time.monotonic())
    for piece in (b'{"labels": 3,', b' "workers": 2}\n'):
        assert started.report == {}
        os.write(writer, piece)
        started.read()
    assert started.report == {"labels": 3, "workers": 2}
    os.close(reader)
    os.close(writer)
