"""What an overloaded server does: it refuses at once, cheaply, and keeps connections."""

import asyncio
import errno
import json
import random
import socket
import time
from functools import partialmethod

import pytest
import uvicorn

from tests.serve.conftest import run_async
from tests.serve.test_server import listening
from treetop.serve.accepting import Server
from treetop.serve.admission import REFUSALS_PER_SECOND, Admission
from treetop.serve.batching import Batcher, Caller
from treetop.serve.errors import busy
from treetop.serve.options import ServiceOptions
from treetop.serve.protocol import HAS_GONE, guarded

OPTIONS = ServiceOptions("model")
BODY = b'{"text": "apple"}'


class App:
    """Answers 200 with the number of bytes of the request's body; counts the requests."""

    def __init__(self):
        self.requests, self.scopes = 0, []

    async def __call__(self, scope, receive, send):
        assert scope["type"] == "http"
        self.requests += 1
        self.scopes.append(scope)
        size, more = 0, True
        while more:
            message = await receive()
            size, more = size + len(message.get("body", b"")), message.get("more_body", False)
        headers = [(b"content-length", b"%d" % len(str(size)))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": str(size).encode()})


def post(path=b"/v1/predict", body=BODY, *headers):
    lines = [
        b"POST %s HTTP/1.1" % path,
        b"Host: localhost",
        b"Content-Length: %d" % len(body),
        *headers,
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


async def read_answer(reader):
    """Status, headers and body of the next response."""
    head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)).decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in head[1:] if line)
    body = await asyncio.wait_for(reader.readexactly(int(headers["content-length"])), 60)
    return int(head[0].split()[1]), headers, body


class FullHouse(Admission):
    """Refuses every request while `state["busy"]`."""

    def __init__(self, options, state):
        super().__init__(options, Batcher(None, options, 64))
        self.state, self.refusals_left = state, 1000

    @property
    def is_open(self):
        return not self.state["busy"]

    def refusal(self, route):
        self.state["routes"].append(route)
        return busy(3) if self.state["busy"] else None


def talk_to(conversation, options=OPTIONS):
    """Run `conversation(reader, writer, state)` with a server that is busy while `state["busy"]`."""
    app, state = App(), {"busy": True, "routes": []}

    async def main():
        admission = state["admission"] = FullHouse(options, state)
        async with listening(app, options, guarded(options, admission)) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            await conversation(reader, writer, state)
            writer.close()

    run_async(main())
    return app, state


def test_refused_requests_do_not_reach_the_application_and_keep_the_connection():
    async def conversation(reader, writer, state):
        for _ in range(3):
            writer.write(post())
            status, headers, body = await read_answer(reader)
            assert status == 503
            assert headers["retry-after"] == "3"
            assert headers["x-content-type-options"] == "nosniff"
            assert "connection" not in headers
            assert json.loads(body)["error"]["code"] == "busy"
        state["busy"] = False
        writer.write(post())
        assert (await read_answer(reader))[::2] == (200, b"17")
        state["busy"] = True
        writer.write(post())
        assert (await read_answer(reader))[0] == 503

    app, state = talk_to(conversation)
    assert app.requests == 1
    assert state["admission"].take_refused() == {"/v1/predict": 4}
    assert not state["admission"].take_refused()


@pytest.mark.parametrize(
    ("path", "route"),
    [
        (b"/v1/predict", "/v1/predict"),
        (b"/v1/explain?x=1", "/v1/explain"),
        (b"/tags/v1/predict", "/v1/predict"),
        (b"/v1/projects/topics/suggest", "/v1/projects/{project_id}/suggest"),
        (b"/v1/projects/topics/suggest-batch", "/v1/projects/{project_id}/suggest-batch"),
        (b"/v1/feedback", None),
        (b"/v1/reload", None),
        (b"/?a=/v1/predict", None),
    ],
)
def test_only_requests_for_the_model_are_refused(path, route):
    async def conversation(reader, writer, state):
        writer.write(post(path))
        assert (await read_answer(reader))[0] == (503 if route else 200)
        writer.write(b"GET /v1/predict HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await read_answer(reader))[0] == 200

    assert set(talk_to(conversation)[1]["routes"]) == ({route} if route else set())


@pytest.mark.parametrize(
    "raw",
    [
        post(body=b"x" * 70_000),
        post(b"/v1/predict", BODY, b"Connection: close"),
        post(b"/v1/predict", b"", b"Expect: 100-continue").replace(b"Length: 0", b"Length: 9"),
        b"POST /v1/predict HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n",
        b"POST /v1/predict HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}",
    ],
    ids=["large", "close", "expect", "chunked", "HTTP/1.0"],
)
def test_a_body_that_is_not_worth_receiving_closes_the_connection(raw):
    async def conversation(reader, writer, state):
        writer.write(raw)
        status, headers, _ = await read_answer(reader)
        assert (status, headers["connection"]) == (503, "close")
        assert await asyncio.wait_for(reader.read(), 60) == b""

    assert talk_to(conversation)[0].requests == 0


def test_a_body_in_pieces_is_discarded():
    async def conversation(reader, writer, state):
        raw = post(body=b"x" * 5000) + post()
        for at in range(0, len(raw), 700):
            writer.write(raw[at : at + 700])
            await writer.drain()
            await asyncio.sleep(0.001)
        assert (await read_answer(reader))[0] == 503
        assert (await read_answer(reader))[0] == 503

    assert talk_to(conversation)[0].requests == 0


@pytest.mark.parametrize(
    "header", [b"Content-Length: 17", b"Content-Length: 2", b"Content-Length : 17", b"X\r\n y: z"]
)
def test_ambiguous_headers_are_left_to_the_parser(header):
    """A refusal that took another end of the request than the parser would shift all that follow."""

    async def conversation(reader, writer, state):
        writer.write(post(b"/v1/predict", BODY, header))
        assert (await read_answer(reader))[0] in (400, 503)
        rest = await asyncio.wait_for(reader.read(1), 0.2) if header.startswith(b"Content") else b""
        assert rest == b""

    talk_to(conversation)


def test_pipelined_requests_are_answered_in_order():
    async def conversation(reader, writer, state):
        get = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        writer.write(get + post() + get)  # the second arrives before the first has been answered
        assert [(await read_answer(reader))[0] for _ in range(3)] == [200, 200, 200]

    talk_to(conversation)


def test_other_websites_get_their_refusal_from_the_application():
    options = ServiceOptions("model", allow_origin=("https://example.org",))

    async def conversation(reader, writer, state):
        writer.write(post(b"/v1/predict", BODY, b"Origin: https://example.org"))
        assert (await read_answer(reader))[0] == 200
        writer.write(post())
        assert (await read_answer(reader))[0] == 503

    talk_to(conversation, options)


def test_a_request_knows_when_its_client_has_gone():
    scopes = []

    async def waiting(scope, receive, send):
        assert scope["type"] == "http"
        scopes.append(scope)
        while not scope[HAS_GONE]():
            await asyncio.sleep(0.01)

    async def main():
        async with listening(waiting, OPTIONS) as (_, port):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(post())
            async with asyncio.timeout(60):
                while not scopes:
                    await asyncio.sleep(0.01)
                assert not scopes[0][HAS_GONE]()
                writer.close()
                while not scopes[0][HAS_GONE]():
                    await asyncio.sleep(0.01)

    run_async(main())


class Door:
    """An application that answers when it is told to, a limited number of requests at a time."""

    def __init__(self, limit=1, **options):
        self.options = ServiceOptions("model", **options)
        self.admission = Admission(self.options, Batcher(None, self.options, 64))
        self.admission.limit = limit
        self.inside, self.order, self.answer = 0, [], asyncio.Event()

    async def __call__(self, scope, receive, send):
        assert scope["type"] == "http"
        self.inside += 1
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message["more_body"]
        self.order.append(json.loads(body)["text"])
        await self.answer.wait()
        self.inside -= 1
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]}
        )
        await send({"type": "http.response.body", "body": b""})


def with_door(conversation, **options):
    """Run `conversation(door, ask, server)`; `ask(text)` sends a request and returns its connection."""

    async def main():
        door, writers = Door(**options), []

        async with listening(door, door.options, guarded(door.options, door.admission)) as (
            server,
            port,
        ):

            async def ask(text):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(post(body=json.dumps({"text": text}).encode()))
                writers.append(writer)
                return reader, writer

            await conversation(door, ask, server)
            for writer in writers:
                writer.close()

    run_async(main())


async def until(condition):
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.005)


def test_requests_wait_for_their_turn_outside_the_application():
    async def conversation(door, ask, _):
        asked = []
        for number, text in enumerate("abcde"):
            asked.append(await ask(text))
            await until(lambda n=number: door.inside + len(door.admission.waiting) == n + 1)
        assert door.inside == 2
        assert door.order == ["a", "b"]
        door.answer.set()
        assert [(await read_answer(reader))[0] for reader, _ in asked] == [200] * 5
        assert door.order == ["a", "b", "c", "d", "e"]
        assert door.admission.inside == 0
        assert door.admission.interval > 0

    with_door(conversation, limit=2)


def test_a_request_that_has_waited_is_not_refused():
    async def conversation(door, ask, _):
        asked = [await ask("a")]
        await until(lambda: door.inside == 1)
        asked += [await ask("b"), await ask("c")]
        await until(lambda: len(door.admission.waiting) == 2)
        refused, _ = await ask("d")
        await until(lambda: door.admission.surplus)
        door.admission.refuse_surplus(0.1)
        status, headers, _ = await read_answer(refused)
        assert (status, headers["retry-after"]) == (503, "1")
        door.answer.set()
        assert [(await read_answer(reader))[0] for reader, _ in asked] == [200] * 3

    with_door(conversation, queue_texts=2)


def test_surplus_requests_are_refused_a_few_at_a_time_and_admitted_if_there_is_room():
    async def conversation(door, ask, _):
        first, _ = await ask("first")
        await until(lambda: door.inside == 1)
        waiting, _ = await ask("waiting")
        await until(lambda: door.admission.waiting)
        surplus = [await ask(str(number)) for number in range(5)]
        await until(lambda: len(door.admission.surplus) == 5)
        door.admission.refuse_surplus(2 / REFUSALS_PER_SECOND)
        assert [(await read_answer(reader))[0] for reader, _ in surplus[:2]] == [503, 503]
        assert len(door.admission.surplus) == 3
        assert door.admission.take_refused() == {"/v1/predict": 2}
        door.answer.set()
        for reader in (first, waiting, *(reader for reader, _ in surplus[2:])):
            assert (await read_answer(reader))[0] == 200
        assert sorted(door.order) == ["2", "3", "4", "first", "waiting"]
        # The refused ones can ask again on their connections.
        for _, writer in surplus[:2]:
            writer.write(post(body=b'{"text": "again"}'))
        assert [(await read_answer(reader))[0] for reader, _ in surplus[:2]] == [200, 200]

    with_door(conversation, queue_texts=1)


def test_a_client_that_leaves_while_it_waits_leaves_its_place():
    async def conversation(door, ask, _):
        first, _ = await ask("first")
        await until(lambda: door.inside == 1)
        _, gone = await ask("gone")
        await until(lambda: door.admission.waiting)
        gone.transport.abort()
        last, _ = await ask("last")
        await until(lambda: len(door.admission.waiting) == 2)
        door.answer.set()
        assert (await read_answer(first))[0] == 200
        assert (await read_answer(last))[0] == 200
        await until(lambda: door.admission.inside == 0)

    with_door(conversation)


def test_requests_that_wait_are_answered_before_the_server_stops():
    async def conversation(door, ask, server):
        first, _ = await ask("first")
        await until(lambda: door.inside == 1)
        waiting, _ = await ask("waiting")
        await until(lambda: door.admission.waiting)
        server.should_exit = True
        await until(lambda: door.inside == 2)
        door.answer.set()
        for reader in (first, waiting):
            status, headers, _ = await read_answer(reader)
            assert (status, headers["connection"]) == (200, "close")

    with_door(conversation)


def test_a_slow_sender_takes_nobodys_place():
    async def conversation(door, ask, _):
        head, _, body = post(body=b'{"text": "slow"}').partition(b"\r\n\r\n")
        slow, sender = await ask("first")
        await until(lambda: door.inside == 1)
        door.answer.set()
        assert (await read_answer(slow))[0] == 200
        sender.write(head + b"\r\n\r\n" + body[:3])
        await until(lambda: door.inside == 1)
        for text in "abc":
            other, _ = await ask(text)
            assert (await read_answer(other))[0] == 200
        assert door.admission.inside == 0
        sender.write(body[3:])
        assert (await read_answer(slow))[0] == 200
        assert door.order == ["first", "a", "b", "c", "slow"]
        await until(lambda: door.admission.inside == 0)

    with_door(conversation)


def test_a_request_that_has_its_labels_leaves_its_place_before_it_is_answered():
    options = ServiceOptions("model")

    async def main():
        batcher = Batcher(lambda pieces: [["labels"] for _ in pieces], options, 64)
        admission = Admission(options, batcher)
        task = asyncio.create_task(batcher.run())
        leave = admission.enter()
        assert admission.inside == 1
        assert await batcher.submit(["a"], None, Caller(time.monotonic() + 60, leave=leave)) == [
            "labels"
        ]
        assert admission.inside == 0
        leave()
        assert admission.inside == 0
        task.cancel()
        batcher.thread.shutdown()

    run_async(main())


def test_a_connection_is_closed_when_it_is_idle_after_a_refusal(monkeypatch):
    config = {"timeout_keep_alive": 2}
    monkeypatch.setattr(uvicorn.Config, "__init__", partialmethod(uvicorn.Config.__init__, **config))

    async def conversation(reader, writer, state):
        for _ in range(2):
            await asyncio.sleep(1.2)  # together longer than the limit
            writer.write(post())
            assert (await read_answer(reader))[0] == 503
        assert await asyncio.wait_for(reader.read(), 60) == b""

    talk_to(conversation)


def test_a_connection_that_is_being_accepted_when_the_server_stops_is_closed():
    async def main():
        listener = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(App(), http=guarded(OPTIONS), ws="none", lifespan="off")
        config.load()
        server = Server(config, listener, lambda: True, 2000)
        server.lifespan = config.lifespan_class(config)
        await server.startup()
        (acceptor,) = server.servers
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        acceptor.accept()
        async with asyncio.timeout(20):
            await server.shutdown()
            assert await reader.read() == b""
        writer.close()
        listener.close()

    run_async(main())


class Broken:
    """A socket of a process that has too many open files."""

    def __init__(self, listener):
        self.fileno = listener.fileno

    def accept(self):
        raise OSError(errno.EMFILE, "Too many open files")


def test_connections_are_accepted_many_at_a_time_and_after_errors(caplog):
    async def main():
        listener, opened = socket.create_server(("127.0.0.1", 0)), []
        config = uvicorn.Config(App(), http=guarded(OPTIONS), ws="none", lifespan="off")
        config.load()
        server = Server(config, listener, lambda: True, 2000)
        server.lifespan = config.lifespan_class(config)
        await server.startup()
        for _ in range(30):
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            opened.append((reader, writer))
        (acceptor,) = server.servers
        acceptor.listener = Broken(listener)
        acceptor.accept()
        acceptor.listener = listener
        for _, writer in opened:
            writer.write(post())
        assert [(await read_answer(reader))[0] for reader, _ in opened] == [200] * 30
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(post())
        assert (await read_answer(reader))[0] == 200  # after a second
        for _, one in (*opened, (reader, writer)):
            one.close()
        await server.shutdown()
        listener.close()

    run_async(main())
    assert "Cannot accept connections (Too many open files)" in caplog.text


def test_no_place_is_lost_to_clients_that_break_off():
    chance = random.Random(0)

    async def conversation(door, ask, _):
        door.answer.set()
        raw = post(body=b'{"text": "whole"}')

        async def break_off(writer):
            for _ in range(chance.randint(1, 3)):
                cut = chance.randint(1, len(raw))
                writer.write(raw[:cut] if chance.random() < 0.7 else raw)
                await asyncio.sleep(chance.choice([0, 0, 0.01]))
            writer.transport.abort()

        for _ in range(5):
            connections = [await ask("good") for _ in range(20)]
            await asyncio.gather(*(break_off(writer) for _, writer in connections[:15]))
            for reader, _ in connections[15:]:
                assert (await read_answer(reader))[0] == 200
        admission = door.admission
        await until(lambda: not (admission.inside or admission.waiting or admission.surplus))
        assert (await read_answer((await ask("last"))[0]))[0] == 200

    with_door(conversation, limit=2)
