"""Connections that the server closes while the client is still sending."""

import asyncio
import socket
import threading
import time

import pytest

from treetop.serve import lingering
from treetop.serve.lingering import Lingering
from treetop.serve.options import ServiceOptions
from treetop.serve.protocol import guarded


def loops():
    """The event loops that servers run on."""
    yield pytest.param(asyncio.new_event_loop, id="asyncio")
    try:
        import uvloop
    except ImportError:
        return
    yield pytest.param(uvloop.new_event_loop, id="uvloop")


class Listener:
    """Our protocol in a thread, for an application that is never reached."""

    def __init__(self, new_loop, options):
        self.new_loop, self.options, self.ready = new_loop, options, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        assert self.ready.wait(20)

    def run(self):
        async def main():
            import uvicorn

            async def nothing(scope, receive, send):
                assert scope["type"] == "lifespan"

            config = uvicorn.Config(nothing, port=0, http=guarded(self.options), log_level="error")
            config.load()
            state = uvicorn.server.ServerState()
            self.loop, self.stop = asyncio.get_running_loop(), asyncio.Event()
            protocol = guarded(self.options)
            server = await self.loop.create_server(lambda: protocol(config, state, {}), "127.0.0.1", 0)
            self.port = server.sockets[0].getsockname()[1]
            self.ready.set()
            await self.stop.wait()
            server.close()

        with asyncio.Runner(loop_factory=self.new_loop) as runner:
            runner.run(main())

    def close(self):
        self.loop.call_soon_threadsafe(self.stop.set)
        self.thread.join(20)


@pytest.mark.parametrize("new_loop", list(loops()))
def test_a_server_that_was_stopped_for_a_while_does_not_reset_the_connection(
    model_folder, monkeypatch, new_loop
):
    """The time limit is over when the server wakes up, and the rest of the request is unread."""
    monkeypatch.setattr(lingering, "TICK_SECONDS", 0.01)
    lingers, sent, linger = threading.Event(), threading.Event(), Lingering.linger

    def linger_and_stall(self):
        linger(self)
        lingers.set()
        assert sent.wait(20)
        time.sleep(2 * lingering.IDLE_TICKS * lingering.TICK_SECONDS)  # longer than the limit

    monkeypatch.setattr(Lingering, "linger", linger_and_stall)
    listener = Listener(new_loop, ServiceOptions(model_folder))
    with socket.create_connection(("127.0.0.1", listener.port), timeout=20) as line:
        line.sendall(b"GET /" + b"a" * 50_000)
        assert lingers.wait(20)
        line.sendall(b"a" * 300_000)
        sent.set()
        got = b""
        while piece := line.recv(65536):
            got += piece
    assert got.startswith(b"HTTP/1.1 431 ")
    listener.close()


@pytest.mark.parametrize("limit", ["IDLE_TICKS", "MAX_TICKS"])
def test_a_client_that_stays_or_never_stops_sending_is_disconnected(model_folder, monkeypatch, limit):
    monkeypatch.setattr(lingering, "TICK_SECONDS", 0.01)
    monkeypatch.setattr(lingering, limit, 5)
    listener = Listener(asyncio.new_event_loop, ServiceOptions(model_folder))
    with socket.create_connection(("127.0.0.1", listener.port), timeout=20) as line:
        line.sendall(b"GET /" + b"a" * 50_000)
        while line.recv(65536):
            pass
        with pytest.raises(ConnectionError):
            send_until_refused(line, 0.002 if limit == "MAX_TICKS" else 0.3)
    listener.close()


def send_until_refused(line, pause, seconds=20):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(pause)
        line.sendall(b"a")
