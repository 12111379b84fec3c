"""Sends requests at a constant rate; prints the status and duration of each as JSON.

python benchmarks/serve/steady.py http://127.0.0.1:8000 BODIES --rate 120 --seconds 60
"""

import argparse
import asyncio
import json
import time
from pathlib import Path


async def ask(host, port, idle, body, seen):
    """Send a request on an idle or a new connection."""
    started = time.perf_counter()
    try:
        reader, writer = idle.pop() if idle else await asyncio.open_connection(host, port)
        head = "POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(answer.split("content-length: ")[1].split("\r\n")[0])
        await reader.readexactly(length)
        status = int(answer.split(" ", 2)[1])
        idle.append((reader, writer))
    except (OSError, asyncio.IncompleteReadError):
        status = 0
    seen.append([status, time.perf_counter() - started])


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("bodies", type=Path)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--seconds", type=float, default=60)
    given = parser.parse_args()
    host, port = given.address.removeprefix("http://").split(":")
    bodies = given.bodies.read_bytes().splitlines()
    seen, idle, jobs = [], [], []
    begun = time.perf_counter()
    for number in range(int(given.rate * given.seconds)):
        await asyncio.sleep(max(0.0, begun + number / given.rate - time.perf_counter()))
        body = bodies[number % len(bodies)]
        jobs.append(asyncio.create_task(ask(host, int(port), idle, body, seen)))
    await asyncio.gather(*jobs)
    print(json.dumps(seen))


asyncio.run(main())
