"""The Dockerfile: its steps are run here, without a container engine.

`tests/dockerfile.py` says how this differs from a container. The slow test installs packages from the
network: it is skipped without one. It warns if it cannot switch to another user.
"""

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import warnings
from pathlib import Path

import pytest

from tests.dockerfile import Build, Step, parse

ROOT = Path(__file__).parent.parent
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
COMPOSE = (ROOT / "compose.yaml").read_text("utf-8")
NOBODY = "65534"
TOKEN = "secret"
TEXTS = ["red apple", "green pear", "red cherry", "green grass"] * 5
LABELS = [["red"], ["green"], ["red"], ["green"]] * 5


def test_the_parser_reads_every_kind_of_line():
    steps = parse(
        "# note\nFROM a AS b\nRUN one \\\n    # inner note\n  two\n"
        'COPY --from=b /x /y\nCMD ["a", "b c"]\n'
    )
    assert steps[:2] == [Step("FROM", {}, "a AS b"), Step("RUN", {}, "one    two")]
    assert steps[2] == Step("COPY", {"from": "b"}, "/x /y")
    assert steps[3].words == ["a", "b c"]
    with pytest.raises(AssertionError, match="unknown instruction: ADD x y"):
        parse("ADD x y")


def test_the_image_runs_as_a_numbered_user_without_a_shell():
    """Kubernetes checks `runAsNonRoot` by number; without a shell, SIGTERM reaches the server."""
    steps = {step.name: step for step in parse(DOCKERFILE)}
    assert steps["USER"].rest == "10001:10001"
    assert all(steps[name].rest.startswith("[") for name in ("ENTRYPOINT", "CMD"))


def test_what_is_copied_is_not_ignored():
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    kept = {line.removeprefix("!") for line in lines if line.startswith("!")}
    copies = [step for step in parse(DOCKERFILE) if step.name == "COPY" and not step.options]
    assert {name for step in copies for name in step.words[:-1]} == kept
    assert all((ROOT / name).exists() for name in kept)


def test_compose_has_the_port_the_health_check_and_the_models_of_the_dockerfile():
    yaml = pytest.importorskip("yaml")
    service = yaml.safe_load(COMPOSE)["services"]["treetop"]
    steps = {step.name: step for step in parse(DOCKERFILE)}
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["ports"] == [f"127.0.0.1:8000:{steps['EXPOSE'].rest}"]
    assert service["healthcheck"]["test"] == ["CMD", *json.loads(steps["HEALTHCHECK"].rest[4:])]
    mounted, mode = service["volumes"][0].split(":")[1:]
    assert mode == "ro"
    assert str(Path(steps["CMD"].words[1]).parent) == mounted


def world_accessible_python():
    """A Python that any user can run, with its version; this one, if no other can be found."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for name in (os.path.realpath(sys.executable), f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        folders = [Path(name), *Path(name).parents]
        if Path(name).exists() and all(path.stat().st_mode & stat.S_IXOTH for path in folders):
            return name
    return os.path.realpath(sys.executable)


def as_another_user(python):
    """The prefix of a command that runs it as `nobody`; empty, with a warning, if that fails."""
    switch = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    possible = os.getuid() == 0 and shutil.which("setpriv")
    if possible and subprocess.run([*switch, python, "-c", ""], capture_output=True).returncode == 0:
        return switch
    warnings.warn("the image's command runs as the user of the tests, not as another one", stacklevel=2)
    return []


def can_install():
    """Whether pip can download packages here."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", folder, "hatchling"]
        return subprocess.run(command, capture_output=True).returncode == 0


def make_read_only(folder):
    """Take away the permission to write from everyone; `/tmp` of the image stays as it is."""
    subprocess.run(["chmod", "-R", "a+rX,a-w", str(folder)], check=True)
    (folder / "tmp").chmod(0o1777)


def modified(folder):
    """Modification times of all files outside of `/tmp`."""
    files = (path for path in folder.rglob("*") if folder / "tmp" not in (path, *path.parents))
    return {path: path.lstat().st_mtime_ns for path in files}


def call(port, path, body=None, token=TOKEN):
    headers = {"content-type": "application/json", "authorization": f"Bearer {token}"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


@pytest.fixture(scope="module")
def place():
    """A folder that other users can enter, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="treetop-image-"))
    folder.chmod(0o755)
    yield folder
    subprocess.run(["chmod", "-R", "u+w", str(folder)], check=False)
    shutil.rmtree(folder)


@pytest.fixture
def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.mark.slow
def test_the_image_serves_as_another_user_on_a_read_only_tree(place, free_port, start_process):
    if not can_install():
        pytest.skip("pip cannot download packages here")
    import treetop

    python = world_accessible_python()
    caches = {"PIP_CACHE_DIR": os.environ.get("PIP_CACHE_DIR", str(Path.home() / ".cache" / "pip"))}
    passed_on = {key: value for key, value in os.environ.items() if key.startswith(("PIP_", "SSL_"))}
    host = {"HOME": str(Path.home()), "LANG": "C.UTF-8", **caches, **passed_on}
    build = Build(ROOT, place, python, host)
    image = build.build(DOCKERFILE)
    assert len(build.ran) == 5
    models = build.root / "models"
    treetop.XRLinear().fit(TEXTS, LABELS).save(models / "model")
    make_read_only(build.root)
    switch, before = as_another_user(python), modified(build.root)

    environment = {**build.environment(image), "TREETOP_TOKEN": TOKEN, "PYTHONPROFILEIMPORTTIME": "1"}
    command = [build.rewritten(word) for word in (*image.entrypoint, *image.command)]
    check = [word.replace(":8000/", f":{free_port}/") for word in image.healthcheck]
    options = {"cwd": build.path(image.workdir), "env": environment, "text": True}
    with (place / "log").open("w") as log:
        serve = [*switch, *command, "--port", str(free_port)]
        server = start_process(serve, stdout=log, stderr=log, **options)
    until = time.monotonic() + 60
    while subprocess.run([*switch, *check], capture_output=True, **options).returncode:
        running = server.poll() is None and time.monotonic() < until
        assert running, (place / "log").read_text()
        time.sleep(0.1)
    status = Path(f"/proc/{server.pid}/status").read_text()
    assert not switch or f"Uid:\t{NOBODY}\t" in status
    code, answer = call(free_port, "/v1/predict", {"text": "a red car", "k": 1})
    assert (code, answer["results"][0]["labels"][0]["label"]) == (200, "red")
    assert call(free_port, "/v1/predict", {"text": "a red car"}, "wrong")[0] == 401
    server.send_signal(signal.SIGTERM)
    assert server.wait(30) == 0
    # Every kernel was compiled when the image was built: nothing imported the compiler.
    imported = (place / "log").read_text()
    assert "treetop.kernels.search" in imported
    assert "numba" not in imported
    assert modified(build.root) == before
