"""Sends requests at a constant rate, or as fast as they are answered; prints the answers as JSON.

python benchmarks/serve/steady.py http://127.0.0.1:8000 BODIES --rate 120 --seconds 60
python benchmarks/serve/steady.py http://127.0.0.1:8000 BODIES --clients 64 --seconds 60

Each answer is its status (0: none), its duration in seconds, and when it came, in seconds since the
beginning. A request that is due while all
connections are busy opens another one.
"""

import argparse
import asyncio
import json
import time
from pathlib import Path

MAX_CONNECTIONS = 4000


class Connection(asyncio.Protocol):
    """One keep-alive connection with at most one request."""

    def __init__(self, answered):
        self.answered, self.got, self.size = answered, b"", None
        self.started, self.open = None, True

    def connection_made(self, transport):
        self.transport = transport

    def send(self, raw):
        self.started, self.got, self.size = time.perf_counter(), b"", None
        self.transport.write(raw)

    def data_received(self, data):
        self.got += data
        if self.size is None:
            head, end, _ = self.got.partition(b"\r\n\r\n")
            if not end:
                return
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            self.status, self.size = int(head[9:12]), len(head) + 4 + int(length)
            self.open = b"connection: close" not in head.lower()
        if len(self.got) >= self.size:
            started, self.started = self.started, None
            self.answered(self, self.status, time.perf_counter() - started)

    def connection_lost(self, _):
        self.open = False
        if self.started is not None:
            self.answered(self, 0, time.perf_counter() - self.started)


class Load:
    """Requests in turn from a list of bodies."""

    def __init__(self, address, bodies):
        self.host, port = address.removeprefix("http://").split(":")
        self.port, self.seen, self.idle, self.busy, self.number = int(port), [], [], 0, 0
        head = "POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        self.requests = [
            f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body for body in bodies
        ]

    def next_request(self):
        self.number += 1
        return self.requests[self.number % len(self.requests)]

    async def ask(self):
        """Send a request on an idle connection, or on a new one."""
        self.busy += 1
        while self.idle:
            connection = self.idle.pop()
            if connection.open and not connection.transport.is_closing():
                connection.send(self.next_request())
                return
        started = time.perf_counter()
        try:
            loop = asyncio.get_running_loop()
            _, connection = await loop.create_connection(
                lambda: Connection(self.answered), self.host, self.port
            )
        except OSError:
            self.busy -= 1
            self.note(0, time.perf_counter() - started)
            return
        connection.send(self.next_request())

    def answered(self, connection, status, seconds):
        self.busy -= 1
        self.note(status, seconds)
        if connection.open:
            self.idle.append(connection)
        if self.clients and time.perf_counter() < self.until:
            self.tasks.add(asyncio.ensure_future(self.ask()))

    def note(self, status, seconds):
        self.seen.append((status, seconds, time.perf_counter() - self.begun))

    async def run(self, seconds, rate, clients):
        begun = self.begun = time.perf_counter()
        self.until, self.clients, self.tasks = begun + seconds, clients, set()
        for _ in range(clients or 0):
            await self.ask()
        sent = 0
        while time.perf_counter() < self.until:
            due = 0 if clients else int((time.perf_counter() - begun) * rate)
            for _ in range(sent, due):
                if self.idle:
                    await self.ask()
                elif self.busy < MAX_CONNECTIONS:
                    self.tasks.add(asyncio.ensure_future(self.ask()))
                else:
                    self.note(0, 0.0)
            sent = max(sent, due)
            await asyncio.sleep(0.001)
        deadline = time.perf_counter() + 40
        while self.busy and time.perf_counter() < deadline:
            await asyncio.sleep(0.01)
        return self.seen + [(0, 40.0, seconds + 40.0)] * self.busy


async def main(given):
    load = Load(given.address, given.bodies.read_bytes().splitlines())
    print(json.dumps(await load.run(given.seconds, given.rate, given.clients)))


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("bodies", type=Path)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--clients", type=int)
    given = parser.parse_args()
    if (given.rate is None) == (given.clients is None):
        parser.error("give either --rate or --clients")
    return given


if __name__ == "__main__":
    options = parse()
    try:
        from uvloop import new_event_loop
    except ImportError:
        new_event_loop = None
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(main(options))
