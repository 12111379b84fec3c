"""A small model, and a server process for it."""

import asyncio
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx
import numpy as np
import pytest

import treetop
from tests.processes import end, start

TOPICS = {
    "fruit": "apple pear cherry plum orchard",
    "sea": "boat wave harbour sail fish",
    "fire": "flame smoke ash ember torch",
    "sky": "cloud star moon wind rain",
    "<script>alert(1)</script>": "hack page code",
    "naïve café": "coffee cup espresso",
}


def run_async(coroutine):
    """Run a coroutine in a new thread: the browser of the page tests keeps a loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


def documents(count=240, seed=0):
    random = np.random.default_rng(seed)
    names = list(TOPICS)
    texts, labels = [], []
    for _ in range(count):
        chosen = random.choice(len(names), 2, replace=False)
        words = [word for topic in chosen for word in random.choice(TOPICS[names[topic]].split(), 3)]
        texts.append(" ".join(random.permutation(words)))
        labels.append([names[topic] for topic in chosen])
    return texts, labels


def train(folder, seed=0, **settings):
    model = treetop.XRLinear(seed=seed, keep_documents=True, **settings)
    model.fit(*documents(seed=seed)).save(folder)
    return folder


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory):
    """A model that shows its scores; see `calibrated_folder` for one that shows probabilities."""
    return train(tmp_path_factory.mktemp("served") / "topics", calibration=False)


@pytest.fixture(scope="session")
def calibrated_folder(tmp_path_factory):
    return train(tmp_path_factory.mktemp("calibrated") / "topics")


def children(process):
    """The child processes of a process, none if it has ended (Linux only)."""
    try:
        text = Path(f"/proc/{process}/task/{process}/children").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(number) for number in text.split()]


class Server:
    """A process that runs `treetop serve`."""

    def __init__(self, folder, *options, environment=None, code=None, trusted=True):
        command = ["-m", "treetop", "serve", str(folder), "--port", "0", *options]
        self.process = start(
            [sys.executable, *(command if code is None else ["-c", code])],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        self.log, self.trusted = [], trusted
        try:
            self.connect()
        except BaseException:
            end(self.process)
            raise

    def connect(self):
        """Read the address from the log, and wait until the server is ready."""
        for line in self.process.stderr:
            self.log.append(line)
            if match := re.search(r"at (https?://\S+|unix:)", line):
                self.address = match[1]
                break
        else:
            raise RuntimeError("".join(self.log))
        # A full pipe would block the server.
        threading.Thread(target=self.read_log, daemon=True).start()
        verify = (
            self.trusted if self.trusted is True else ssl.create_default_context(cafile=self.trusted)
        )
        self.client = httpx.Client(base_url=self.address, timeout=60, verify=verify)
        if self.address.startswith("http"):
            self.wait_until_ready()

    def read_log(self):
        with suppress(ValueError):  # the pipe is closed with the process
            self.log.extend(self.process.stderr)

    def wait_until_ready(self, seconds=60):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                if self.client.get("/readyz", timeout=10).status_code == 200:
                    return
            except httpx.HTTPError:
                pass
            time.sleep(0.05)
        raise RuntimeError("the server is not ready")

    def generations(self):
        """The processes that have loaded a model, the oldest first."""
        return children(self.process.pid)

    def workers(self):
        """The workers of the generation that was started last."""
        generations = self.generations()
        return children(generations[-1]) if generations else []

    def stop(self, how=signal.SIGTERM):
        """Send a signal, and return the exit code."""
        self.client.close()
        try:
            self.process.send_signal(how)
            return self.process.wait(60)
        finally:
            end(self.process)


@pytest.fixture(scope="session")
def serving():
    servers = []

    def serve(folder, *options, **more):
        servers.append(Server(folder, *options, **more))
        return servers[-1]

    yield serve
    codes = [server.stop() for server in servers if server.process.poll() is None]
    assert codes == [0] * len(codes)


@pytest.fixture(scope="session")
def server(serving, model_folder, tmp_path_factory):
    journal = tmp_path_factory.mktemp("journal") / "feedback.jsonl"
    options = ["--workers", "2", "--feedback", str(journal), "--max-body", "0.2"]
    # On a busy machine, requests wait longer than by default: the tests of 503 are in test_batching.py.
    server = serving(model_folder, *options, "--max-wait", "60", "--timeout", "60")
    server.journal = journal
    return server


@pytest.fixture(scope="session")
def tree_server(serving, tmp_path_factory):
    """A server of a forest, whose explanations have paths."""
    folder = train(tmp_path_factory.mktemp("served") / "forest", tree="3-L", trees=2)
    return serving(folder, "--workers", "1", "--max-wait", "60", "--timeout", "60")


@pytest.fixture(scope="session")
def token_server(serving, model_folder):
    """A server that requires the token ``secret``."""
    return serving(model_folder, "--workers", "1", "--token", "secret")


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    playwright.expect.set_options(timeout=30_000)  # the machine may be busy
    with playwright.sync_playwright() as driver:
        try:
            browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        except playwright.Error as error:
            pytest.skip(f"no browser: run tests/serve/install_browser.sh ({error})")
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser):
    """Opens the page of a server, which may call that server only and must not log any error."""
    contexts, hosts, messages = [], set(), []
    allowed = {""}  # of blob: and data: addresses

    def open_page(server, **options):
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 800}, **options})
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.goto(server.address)
        allowed.add(server.address.removeprefix("http://"))
        return page

    yield open_page
    assert hosts <= allowed
    assert [line for line in messages if "Failed to load resource" not in line] == []
    for context in contexts:
        context.close()


@pytest.fixture
def page(open_page, server):
    page = open_page(server)
    page.get_by_role("heading", name="topics").wait_for()
    return page
