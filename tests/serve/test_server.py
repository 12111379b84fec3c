"""The server as a process: workers, signals, sockets."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from http.client import HTTPConnection
from pathlib import Path

import httpx
import pytest
import uvicorn

import treetop
from tests.serve.conftest import run_async, train
from treetop.serve.options import ServiceOptions
from treetop.serve.protocol import guarded

JSON = {"content-type": "application/json"}

RUNTIME = treetop.Runtime(threads=1)


def predict(address, text="apple pear", **more):
    return httpx.post(f"{address}/v1/predict", json={"text": text, **more}, timeout=60)


def talk(server, raw):
    """Send bytes, and read until the server closes the connection."""
    host, port = server.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as line:
        line.sendall(raw)
        got = b""
        while piece := line.recv(65536):
            got += piece
        return got


def wait_until(condition, seconds=60):
    """Wait for something that another process does, which may take long on a busy machine."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


@asynccontextmanager
async def listening(app, options, protocol=None):
    """Serve an application in this process with our protocol; yields the server and its port."""
    protocol = protocol or guarded(options)
    config = uvicorn.Config(app, port=0, http=protocol, ws="none", log_level="critical")
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield server, server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await task


def test_predictions_are_those_of_the_model(server, model_folder):
    expected = treetop.load(str(model_folder)).predict(["apple pear"], 3)[0]
    labels = predict(server.address, k=3).json()["results"][0]["labels"]
    assert [record["label"] for record in labels] == [name for name, _ in expected]


def test_many_clients_at_once_each_get_their_own_answer(server, model_folder):
    model = treetop.load(str(model_folder))
    texts = ["apple pear", "boat wave", "flame smoke", "cloud star"] * 50
    expected = [row[0][0] for row in model.predict(texts, 1)]
    connections = httpx.Limits(max_connections=16)
    with (
        httpx.Client(base_url=server.address, timeout=60, limits=connections) as client,
        ThreadPoolExecutor(16) as threads,
    ):

        def best_label(text):
            answer = client.post("/v1/predict", json={"text": text, "k": 1})
            assert answer.status_code == 200, answer.text
            return answer.json()["results"][0]["labels"][0]["label"]

        assert list(threads.map(best_label, texts)) == expected


def test_a_killed_worker_is_replaced(server):
    before = server.workers()
    os.kill(before[0], signal.SIGKILL)
    wait_until(lambda: len(set(server.workers()) - {before[0]}) == 2)
    server.wait_until_ready()
    for _ in range(20):
        assert predict(server.address).status_code == 200


def serves_only(server, labels):
    """Whether new connections, which are spread over the workers, all get a model of so many labels."""
    url = f"{server.address}/v1/model"
    return all(httpx.get(url, timeout=60).json()["labels"] == labels for _ in range(20))


def test_all_workers_reload_a_new_model_without_a_failed_request(serving, tmp_path):
    folder = train(tmp_path / "m")
    server = serving(folder, "--workers", "2")
    stop, wrong, count = threading.Event(), [], [0]

    def load():
        with httpx.Client(base_url=server.address, timeout=60) as client:
            while not stop.is_set():
                answer = client.post("/v1/predict", json={"text": "apple pear"})
                count[0] += 1
                if answer.status_code != 200:
                    wrong.append(answer.text)

    crew = [threading.Thread(target=load, daemon=True) for _ in range(4)]
    for one in crew:
        one.start()
    for count_of_labels in range(2, 6):
        names = [[f"label {n}"] for n in range(count_of_labels)]
        treetop.XRLinear().fit([f"word{n}" for n in range(count_of_labels)], names).save(folder)
        if count_of_labels % 2:
            server.process.send_signal(signal.SIGHUP)
        else:
            assert httpx.post(f"{server.address}/v1/reload", timeout=60).status_code == 200
        wait_until(lambda wanted=count_of_labels: serves_only(server, wanted))
    wait_until(lambda: count[0] > 50)
    stop.set()
    for one in crew:
        one.join()
    assert wrong == []
    killed = server.workers()[0]
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: len(set(server.workers()) - {killed}) == 2)
    server.wait_until_ready()
    assert serves_only(server, 5)
    assert server.stop() == 0


def test_shutting_down_answers_accepted_requests(serving, model_folder):
    server = serving(model_folder, "--workers", "1", "--max-wait", "60", "--timeout", "60")
    body = json.dumps({"texts": ["apple pear boat " * 2000] * 200})
    lines = [HTTPConnection(server.address.removeprefix("http://"), timeout=60) for _ in range(4)]
    with ThreadPoolExecutor(4) as crew:
        list(crew.map(lambda line: line.request("POST", "/v1/predict", body, JSON), lines))
    # The requests have been sent completely, so the server has accepted all four.
    server.process.send_signal(signal.SIGTERM)
    answers = [line.getresponse() for line in lines]
    assert [answer.status for answer in answers] == [200] * 4
    assert all(len(json.loads(answer.read())["results"]) == 200 for answer in answers)
    assert server.process.wait(60) == 0


def test_the_token_can_be_set_in_the_environment(serving, model_folder):
    server = serving(model_folder, "--workers", "1", environment={"TREETOP_TOKEN": "secret"})
    assert predict(server.address).status_code == 401
    headers = {"authorization": "Bearer secret"}
    answer = httpx.post(
        f"{server.address}/v1/predict", json={"text": "apple"}, headers=headers, timeout=60
    )
    assert answer.status_code == 200
    assert server.stop(signal.SIGINT) == 0


def test_serving_from_python(serving, model_folder):
    code = (
        "from treetop.serve.options import ServiceOptions\n"
        "from treetop.serve.run import serve\n"
        f"options = ServiceOptions({str(model_folder)!r}, port=0, workers=1, max_texts=2)\n"
        "raise SystemExit(serve(options))"
    )
    server = serving(model_folder, code=code)
    assert len(server.workers()) == 1
    for count, status in ((2, 200), (3, 413)):
        answer = httpx.post(
            f"{server.address}/v1/predict", json={"texts": ["apple"] * count}, timeout=60
        )
        assert answer.status_code == status
    assert server.stop() == 0


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"\x00\x01\x02 nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: [::]\r\nX: " + b"a" * 100_000 + b"\r\n\r\n", 431),
        (b"GET /" + b"a" * 100_000, 431),
        (b"POST /v1/predict HTTP/1.1\r\nHost: [::]\r\nContent-Length: 99999999\r\n\r\n", 413),
        (b"POST /v1/predict HTTP/1.1\r\nHost: [::]\r\nContent-Length: -5\r\n\r\n{}", 400),
        (
            b"POST /v1/predict HTTP/1.1\r\nHost: [::]\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            400,
        ),
    ],
)
def test_invalid_http_gets_an_error_and_the_connection_is_closed(server, raw, status):
    head, _, body = talk(server, raw).partition(b"\r\n\r\n")
    assert int(head.split()[1]) == status
    assert set(json.loads(body)["error"]) == {"code", "message"}
    assert predict(server.address).status_code == 200


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: [::]\r\nX: ", 431),
        (b"POST /v1/predict HTTP/1.1\r\nHost: [::]\r\nContent-Length: 99999999\r\n\r\n", 413),
        (b"POST /v1/predict HTTP/1.1\r\nHost: [::]\r\nContent-Length: -5\r\n\r\n", 400),
    ],
)
def test_a_client_that_is_still_sending_can_read_the_error(server, head, status):
    """A connection closed with bytes unread is reset, and the client loses the answer."""
    host, port = server.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as line:
        for piece in (head, *[b"a" * 50_000] * 8):
            line.sendall(piece)
            time.sleep(0.03)
        got = b""
        while piece := line.recv(65536):
            got += piece
    assert int(got.split()[1]) == status
    assert got.count(b"HTTP/1.1") == 1
    assert json.loads(got.partition(b"\r\n\r\n")[2])["error"]["message"]


def test_slow_clients_are_disconnected(model_folder):
    """Headers and bodies that never end, with short limits."""
    from treetop.serve.api import make_app
    from treetop.serve.engine import Served
    from treetop.serve.worker import Worker

    options = ServiceOptions(model_folder, head_seconds=1, body_seconds=1)

    async def main():
        worker = Worker(options, Served(model_folder, RUNTIME), RUNTIME)
        async with listening(make_app(worker), options) as (_, port):

            async def drip(pieces):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                answer = asyncio.create_task(reader.read())
                for piece in pieces:
                    if not answer.done():
                        writer.write(piece)
                        await asyncio.sleep(0.02)  # well within the limit
                answers = await asyncio.gather(asyncio.wait_for(answer, 60), return_exceptions=True)
                writer.close()
                return b"" if isinstance(answers[0], ConnectionError) else answers[0]

            post = b"POST /v1/predict HTTP/1.1\r\nHost: [::]\r\nContent-Length: 100\r\n\r\n"
            return await asyncio.gather(
                drip([]),
                drip([b"GET /healthz HTTP/1.1\r\n"] + [b"X: y\r\n"] * 3),
                drip([post] + [b"{"] * 3),
                drip([b"GET /healthz HTTP/1.1\r\nHost: [::]\r\nConnection: close\r\n\r\n"]),
            )

    silent, head, body, good = run_async(main())
    assert silent == b""
    assert head.startswith(b"HTTP/1.1 408")
    assert body.startswith(b"HTTP/1.1 408")
    assert good.startswith(b"HTTP/1.1 200")


def test_too_many_pipelined_requests_are_refused(server):
    got = talk(server, b"GET /healthz HTTP/1.1\r\nHost: [::]\r\n\r\n" * 2000)
    assert got.startswith(b"HTTP/1.1 400 ")
    assert got.count(b"HTTP/1.1") == 1
    message = json.loads(got.partition(b"\r\n\r\n")[2])["error"]["message"]
    assert message == "Too many pipelined requests"
    get = b"GET /healthz HTTP/1.1\r\nHost: [::]\r\n"
    allowed = talk(server, (get + b"\r\n") * 2 + get + b"Connection: close\r\n\r\n")
    assert allowed.count(b"HTTP/1.1 200") == 3


def test_a_large_body_gets_one_response_only(server):
    head = b"POST /v1/predict HTTP/1.1\r\nHost: [::]\r\nContent-Length: 9999999\r\n\r\n"
    got = talk(server, head + b"x" * 100_000)
    assert got.startswith(b"HTTP/1.1 413 ")
    assert got.count(b"HTTP/1.1") == 1
    message = json.loads(got.partition(b"\r\n\r\n")[2])["error"]["message"]
    assert message == "Request body exceeds the limit of 200,000 bytes"


def test_a_request_that_offers_http_2_keeps_its_body(server):
    body = b'{"text": "apple"}'
    raw = (
        b"POST /v1/predict HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nHost: [::]\r\n"
        b"HTTP2-Settings: AAEAAEAAAAIAAAAB\r\nUpgrade: h2c\r\nContent-Type: application/json\r\n"
        b"Content-Length: 17\r\n\r\n"
    )
    last = b"GET /healthz HTTP/1.1\r\nHost: [::]\r\nConnection: close\r\n\r\n"
    got = talk(server, raw + body + last)
    assert got.startswith(b"HTTP/1.1 200")
    assert b'"results"' in got
    assert got.count(b"HTTP/1.1 200") == got.count(b"HTTP/1.1") == 2


def test_a_client_that_does_not_read_is_disconnected(model_folder):

    async def much(scope, receive, send):
        assert scope["type"] == "http"
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x" * 50_000_000})

    async def main():
        async with listening(much, ServiceOptions(model_folder, timeout=0.3)) as (server, port):
            line = socket.create_connection(("127.0.0.1", port))
            line.sendall(b"GET / HTTP/1.1\r\nHost: [::]\r\n\r\n")
            for count in (1, 0):
                async with asyncio.timeout(60):
                    while len(server.server_state.connections) != count:
                        await asyncio.sleep(0.01)
            line.close()

    run_async(main())


def test_a_port_in_use_is_an_error_with_several_workers(server, model_folder):
    port = server.address.rsplit(":", 1)[1]
    command = [sys.executable, "-m", "treetop", "serve", str(model_folder), "--port", port]
    finished = subprocess.run([*command, "--workers", "2"], capture_output=True, text=True, timeout=300)
    assert finished.returncode == 2
    assert "cannot listen" in finished.stderr


def test_incomplete_requests_leave_nothing_behind(server):
    host, port = server.address.removeprefix("http://").split(":")
    for _ in range(50):
        line = socket.create_connection((host, int(port)))
        line.sendall(b'POST /v1/predict HTTP/1.1\r\nHost: [::]\r\nContent-Length: 50\r\n\r\n{"text"')
        line.close()
    assert predict(server.address).status_code == 200
    assert httpx.get(f"{server.address}/readyz", timeout=60).status_code == 200


def test_workers_exit_with_their_supervisor(serving, model_folder):
    server = serving(model_folder, "--workers", "2")
    workers = server.workers()
    server.stop(signal.SIGKILL)
    wait_until(lambda: not any(os.path.exists(f"/proc/{one}/cmdline") for one in workers))


def test_too_many_connections_get_503(model_folder):
    """With a limit of two connections."""

    async def nothing(scope, receive, send):
        assert scope["type"] == "http"
        await receive()

    async def main():
        async with listening(nothing, ServiceOptions(model_folder, connections=2)) as (_, port):
            lines = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
            answer = await asyncio.wait_for(lines[2][0].read(), 60)
            for _, writer in lines:
                writer.close()
        return answer

    answer = run_async(main())
    assert answer.startswith(b"HTTP/1.1 503")
    assert b"retry-after: 1" in answer


def test_metrics_are_sums_over_all_workers(server):
    def texts():
        shown = httpx.get(f"{server.address}/metrics", timeout=60).text
        line = next(one for one in shown.splitlines() if one.startswith("treetop_texts_total"))
        return float(line.split()[1])

    before = texts()
    for _ in range(30):
        predict(server.address)
    assert texts() == before + 30


def test_errors_of_the_command_are_one_line(model_folder, tmp_path):
    taken = socket.create_server(("127.0.0.1", 0))
    port = str(taken.getsockname()[1])
    for options, message in [
        ([str(tmp_path / "none")], "no such model folder"),
        (
            [str(model_folder), "--port", port, "--workers", "1"],
            f"cannot listen on 127.0.0.1:{port} (Address already in use): choose another --port",
        ),
        ([str(model_folder), "--feedback", str(tmp_path / "no" / "f")], "cannot be written"),
        (
            [str(model_folder), "--token", "naïve"],
            "the token must not be empty and must consist of ASCII",
        ),
        ([str(model_folder), "--port", "65536"], "port is 65536: it must be below 65536"),
        ([str(model_folder), "--max-body", "0"], "max_body is 0.0: it must be at least 0.001"),
    ]:
        command = [sys.executable, "-m", "treetop", "serve", *options]
        finished = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert finished.returncode == 2, finished.stderr
        assert message in finished.stderr
        assert len(finished.stderr.strip().splitlines()) == 1
    taken.close()


def test_requests_made_from_the_openapi_schema(server, tmp_path):
    """Valid and invalid requests made by schemathesis: every response conforms to the schema."""
    command = [
        str(Path(sys.executable).with_name("schemathesis")),
        "run",
        f"{server.address}/openapi.json",
        "--max-examples",
        "10",
        "--seed",
        "1",
        "--no-color",
        "--phases",
        "examples,coverage,fuzzing",
    ]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=tmp_path)
    assert finished.returncode == 0, finished.stdout
    assert predict(server.address).status_code == 200
