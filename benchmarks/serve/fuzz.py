"""Sends malformed, oversized, slow or truncated requests; prints the responses by kind, as JSON.

python benchmarks/serve/fuzz.py http://127.0.0.1:8000 --count 100000
"""

import argparse
import asyncio
import json
import random
from collections import Counter

PLACES = ("/v1/predict", "/v1/explain", "/v1/labels?q=", "/v1/feedback", "/", "/v1/projects/x/suggest")
AT_ONCE = 100


def noise(chance, most):
    return bytes(chance.getrandbits(8) for _ in range(chance.randint(1, most)))


def whole(method, place, body, *headers):
    lines = [f"{method} {place} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def wrong_json(chance):
    """Return valid JSON with invalid values, in half of the cases with a byte changed."""
    value = chance.choice(
        [None, True, -1, 1e308, "", [], {}, "x" * 500, ["a"] * 300, {"text": {}}, [[]], "\ud800"]
    )
    key = chance.choice(["text", "texts", "k", "threshold", "allow", "explain", "labels", "new"])
    body = bytearray(json.dumps({"text": "apple", key: value}).encode())
    if chance.random() < 0.5:
        body[chance.randrange(len(body))] = chance.getrandbits(8)
    return bytes(body)


def attack(chance):
    """Return the kind of a request, its pieces, and the pause between them in seconds."""
    place = chance.choice(PLACES)
    kind = chance.choice(["noise", "json", "json", "cut", "long", "head", "slow", "method", "chunks"])
    json_type = "Content-Type: application/json"
    if kind == "noise":
        return kind, [noise(chance, 300)], 0
    if kind == "json":
        return kind, [whole("POST", place, wrong_json(chance), json_type)], 0
    if kind == "cut":
        raw = whole("POST", place, wrong_json(chance) * 3, json_type)
        return kind, [raw[: chance.randrange(len(raw))]], 0
    if kind == "long":
        return kind, [whole("POST", place, b"x" * chance.choice([1000, 250_000]), json_type)], 0
    if kind == "head":
        return kind, [whole("GET", place, b"", "X-Long: " + "y" * chance.choice([100, 40_000]))], 0
    if kind == "slow":
        raw = whole("POST", place, wrong_json(chance), json_type)
        middle = len(raw) // 2
        return kind, [raw[:middle], raw[middle:]], 0.05
    if kind == "method":
        method = chance.choice(["PUT", "DELETE", "PATCH", "OPTIONS", "BREW", "get"])
        return kind, [whole(method, place, b"")], 0
    sizes = b"%x\r\n" % chance.choice([5, 0xFFFFFFFF])
    head = f"POST {place} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    return kind, [head + sizes + b"apple\r\n" + noise(chance, 20)], 0


async def send(host, port, chance, seen):
    kind, pieces, pause = attack(chance)
    try:
        reader, writer = await asyncio.open_connection(host, port)
    except OSError:
        seen["not connected"] += 1
        return
    try:
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(pause)
        if kind in ("cut", "chunks"):
            await asyncio.sleep(0)
            seen[f"{kind} closed by us"] += 1
            return
        head = await asyncio.wait_for(reader.read(200), 5)
        status = head.split(b" ", 2)[1].decode() if head.startswith(b"HTTP/") else "nothing"
        seen[f"{kind} {status}"] += 1
    except TimeoutError:
        seen[f"{kind} waited"] += 1
    except OSError:
        seen[f"{kind} ended"] += 1
    finally:
        writer.close()


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    host, port = given.address.removeprefix("http://").split(":")
    chance, seen = random.Random(given.seed), Counter()
    left = given.count

    async def attacker():
        nonlocal left
        while left > 0:
            left -= 1
            await send(host, int(port), chance, seen)

    await asyncio.gather(*(attacker() for _ in range(AT_ONCE)))
    print(json.dumps(dict(sorted(seen.items()))))


asyncio.run(main())
