"""What an overloaded server does: it refuses at once, cheaply, and keeps connections."""

import asyncio
import json

import pytest

from tests.serve.conftest import run_async
from tests.serve.test_server import listening
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


def talk_to(conversation, options=OPTIONS):
    """Run `conversation(reader, writer, state)` with a server that is busy while `state["busy"]`."""
    app, state = App(), {"busy": True, "routes": []}

    def overload(route):
        state["routes"].append(route)
        return busy(3) if state["busy"] else None

    async def main():
        async with listening(app, options, guarded(options, overload)) as (_, port):
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
    assert state["routes"] == ["/v1/predict"] * 5


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

    assert talk_to(conversation)[1]["routes"] == ([route] if route else [])


@pytest.mark.parametrize(
    "raw",
    [
        post(body=b"x" * 70_000),
        post(b"/v1/predict", BODY, b"Connection: close"),
        post(b"/v1/predict", b"", b"Expect: 100-continue").replace(b"Length: 0", b"Length: 9"),
        b"POST /v1/predict HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n",
    ],
    ids=["large", "close", "expect", "chunked"],
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
