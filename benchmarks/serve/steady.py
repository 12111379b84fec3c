"""Sends requests at a constant rate, or as fast as they are answered; prints the answers as JSON.

    python benchmarks/serve/steady.py http://127.0.0.1:8000 BODIES --rate 120 --seconds 60
    python benchmarks/serve/steady.py http://127.0.0.1:8000 BODIES --clients 64 --seconds 60

With `--rate`, a request that is due while all connections are busy opens another one; while
`--connections` are busy, it waits. With `--clients`, each client sends its next request when the one
before has been answered.

Prints `answers`, each of them a status (0: none), seconds since the request was due, and when it came,
in seconds since the beginning (`begun`, by the clock of the machine); `unsent`, the requests for which
no connection was free; `failures`, the errors of connections; and `processor_seconds` of this program
until the last request was due. It uses epoll and bytes that are made in advance, because it takes
processor time from the server that it measures, unless they have cores of their own.
"""

import argparse
import errno
import json
import select
import socket
import time
from collections import Counter, deque
from pathlib import Path

MAX_CONNECTIONS = 4000
PATIENCE = 40  # seconds to wait for the last answers
RECEIVED = 1 << 16


class Connection:
    """One keep-alive connection with at most one request."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        failed = self.socket.connect_ex(address)
        self.connecting = failed == errno.EINPROGRESS
        self.due, self.unsent, self.received = None, b"", b""


class Load:
    """Sends requests, made of a list of bodies in turn."""

    def __init__(self, address, bodies, connections):
        host, port = address.removeprefix("http://").split(":")
        self.address, self.limit = (host, int(port)), connections
        head = "POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        self.requests = [
            f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body for body in bodies
        ]
        self.number, self.answers, self.failures = 0, [], Counter()
        self.poll, self.open, self.idle = select.epoll(), {}, deque()
        self.waiting = deque()  # when the requests were due that no connection is free for

    def request(self, due):
        """Send a request on an idle connection, or on a new one; or let it wait."""
        while self.idle and self.idle[-1].socket.fileno() < 0:
            self.idle.pop()  # the server has closed it
        if self.idle:
            connection = self.idle.pop()
        elif len(self.open) < self.limit:
            connection = Connection(self.address)
            self.open[connection.socket.fileno()] = connection
            self.poll.register(connection.socket, select.EPOLLIN)
        else:
            self.waiting.append(due)
            return
        connection.due = due
        self.number += 1
        self.send(connection, self.requests[self.number % len(self.requests)])

    def send(self, connection, rest):
        """Send the rest of a request, as far as the connection takes it now."""
        if not connection.connecting:
            try:
                rest = rest[connection.socket.send(rest) :]
            except BlockingIOError:
                pass
            except OSError as error:
                self.failures[str(error.strerror)] += 1
                self.close(connection)
                return
        if rest:
            self.poll.modify(connection.socket, select.EPOLLIN | select.EPOLLOUT)
        elif connection.unsent:
            self.poll.modify(connection.socket, select.EPOLLIN)
        connection.unsent = rest

    def receive(self, connection):
        """Read an answer; returns whether it is complete and the connection idle again."""
        try:
            data = connection.socket.recv(RECEIVED)
        except BlockingIOError:
            return False
        except OSError as error:
            data = b""
            self.failures[str(error.strerror)] += 1
        if not data:
            self.close(connection)
            return False
        data = connection.received = connection.received + data
        end = data.find(b"\r\n\r\n")
        if end < 0:
            return False
        head = data[:end].lower()
        at = head.find(b"content-length: ") + 16
        stop = head.find(b"\r\n", at)
        if len(data) < end + 4 + int(head[at : stop if stop > 0 else end]):
            return False
        due, connection.due, connection.received = connection.due, None, b""
        self.note(int(data[9:12]), due)
        if b"connection: close" in head:
            self.close(connection)
            return False
        return True

    def close(self, connection):
        """Close a connection; a request that it had gets no answer."""
        self.open.pop(connection.socket.fileno(), None)
        connection.socket.close()
        if connection.due is not None:
            self.note(0, connection.due)

    def note(self, status, due):
        now = time.perf_counter()
        self.answers.append((status, now - due, now - self.begun))
        if self.again and now < self.until:
            self.waiting.append(now)

    def step(self, seconds):
        """Handle what has arrived, within some seconds."""
        for number, events in self.poll.poll(seconds):
            connection = self.open.get(number)
            if connection is None:
                continue
            if events & select.EPOLLOUT:
                connection.connecting = False
                self.send(connection, connection.unsent)
            if events & ~select.EPOLLOUT and self.receive(connection):
                self.idle.append(connection)
        while self.waiting and (self.idle or len(self.open) < self.limit):
            self.request(self.waiting.popleft())

    def run(self, seconds, rate, clients):
        """Send requests for some seconds, and wait for the answers."""
        begun = self.begun = time.perf_counter()
        worked, self.until, self.again = time.process_time(), begun + seconds, bool(clients)
        for _ in range(clients or 0):
            self.request(begun)
        sent = 0
        while (now := time.perf_counter()) < self.until:
            if rate:
                for number in range(sent, int((now - begun) * rate)):
                    self.request(begun + number / rate)
                sent = int((now - begun) * rate)
            self.step(0.0005 if rate else 0.1)
        worked = time.process_time() - worked
        unsent, self.waiting, self.again = len(self.waiting), deque(), False
        while any(one.due is not None for one in self.open.values()):
            if time.perf_counter() > self.until + PATIENCE:
                break
            self.step(0.05)
        lost = unsent + sum(one.due is not None for one in self.open.values())
        self.answers += [(0, float(PATIENCE), seconds + PATIENCE)] * lost
        return {
            "answers": self.answers,
            "unsent": unsent,
            "failures": self.failures,
            "begun": begun,
            "processor_seconds": worked,
        }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("bodies", type=Path)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--clients", type=int)
    parser.add_argument("--connections", type=int, default=MAX_CONNECTIONS)
    given = parser.parse_args()
    if (given.rate is None) == (given.clients is None):
        parser.error("give either --rate or --clients")
    load = Load(given.address, given.bodies.read_bytes().splitlines(), given.connections)
    print(json.dumps(load.run(given.seconds, given.rate, given.clients)))


if __name__ == "__main__":
    main()
