"""Who may call the server: hosts, origins, tokens; and what a request may not smuggle in."""

import json
import shutil
import socket
import ssl
import subprocess
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest

import treetop
from tests.serve.conftest import documents
from tests.serve.test_api import client_of, error_of
from treetop.errors import TreetopError
from treetop.serve.hosts import authority, host_name
from treetop.serve.listening import bind_path
from treetop.serve.options import ServiceOptions
from treetop.serve.run import check_certificate, warn_if_open


@pytest.fixture(scope="module")
def client(model_folder, tmp_path_factory):
    journal = tmp_path_factory.mktemp("journal") / "feedback.jsonl"
    with client_of(model_folder, feedback=journal, root_path="/tags") as client:
        client.journal = journal
        yield client


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("evil.example", False),
        ("evil.example:8000", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example", False),
        ("LOCALHOST:8000", True),
        ("127.0.0.1:8000", True),
        ("[::1]:8000", True),
        ("192.168.1.4", True),
        ("app.localhost", True),
        (socket.gethostname(), True),
    ],
)
def test_a_website_cannot_pass_its_own_name_for_this_server(client, host, allowed):
    """DNS rebinding: the name of a website is made to point to this machine."""
    answer = client.get("/v1/model", headers={"host": host})
    assert answer.status_code == (200 if allowed else 403)
    if not allowed:
        name = host.partition(":")[0]
        assert answer.json()["error"] == {
            "code": "other_host",
            "message": f"Host {name} not allowed: the server can allow it with --allow-host {name}",
        }
    assert client.get("/healthz", headers={"host": host}).status_code == 200


def test_hosts_can_be_allowed_and_a_token_allows_all(model_folder):
    there = {"host": "tags.example.org", "authorization": "Bearer secret"}
    for options, status in (
        ({}, 403),
        ({"allow_host": ("Tags.example.org",)}, 200),
        ({"allow_host": ("*",)}, 200),
        ({"host": "tags.example.org"}, 200),
        ({"token": "secret"}, 200),
        ({"token": "secret", "allow_host": ("other.example.org",)}, 403),
    ):
        with client_of(model_folder, **options) as client:
            assert client.get("/v1/model", headers=there).status_code == status


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({}, True),  # not a browser
        ({"origin": "http://localhost"}, True),
        ({"origin": "http://localhost:80"}, True),
        ({"origin": "http://localhost:3000"}, False),
        ({"origin": "https://evil.example"}, False),
        ({"origin": "http://localhost.evil.example"}, False),
        ({"origin": "null"}, False),
        ({"origin": "null", "host": ""}, False),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"origin": "https://tags.example", "sec-fetch-site": "same-origin"}, True),  # behind a proxy
        ({"origin": "https://tags.example", "sec-fetch-site": "same-site"}, False),
    ],
)
def test_other_websites_cannot_reload_the_model(client, headers, allowed):
    answer = client.post("/v1/reload", headers=headers)
    if allowed:
        assert error_of(answer) == (409, "not_reloaded")  # allowed, but nobody can do it here
    else:
        assert error_of(answer) == (403, "other_site")


def test_names_and_ports_of_hosts():
    assert host_name("[::1]:80") == "::1"
    assert host_name("Example.org.:80") == "example.org"
    assert authority("a:443", "https") == "a"
    assert authority("a:80", "https") == "a:80"


def test_a_wrong_token_and_a_missing_one_have_messages_of_their_own(model_folder):
    with client_of(model_folder, token="secret") as client:
        for header, message in (
            ({}, "Missing token: send the header Authorization: Bearer TOKEN"),
            (
                {"authorization": "Basic abc"},
                "Missing token: send the header Authorization: Bearer TOKEN",
            ),
            (
                {"authorization": "Bearer no"},
                "Wrong token: send the header Authorization: Bearer TOKEN",
            ),
        ):
            answer = client.get("/v1/model", headers=header)
            assert error_of(answer) == (401, "unauthorized")
            assert answer.json()["error"]["message"] == message


@pytest.mark.parametrize("name", ["a\nb", "a\r\nb", "a\rb", "", " \t", "\ud800"])
def test_feedback_takes_no_labels_that_cannot_be_trained_on(client, name):
    def post(path, body):
        content = json.dumps(body).encode()
        return client.post(path, content=content, headers={"content-type": "application/json"})

    before = client.journal.read_bytes()
    for labels in ({"labels": [name]}, {"labels": [], "rejected": [name]}):
        answer = post("/v1/feedback", {"text": "apple", **labels})
        assert error_of(answer) == (422, "wrong_values")
        assert "label" in answer.json()["error"]["message"]
    answer = post("/v1/projects/topics/learn", [{"text": "apple", "subjects": [{"uri": name}]}])
    assert error_of(answer) == (422, "wrong_values")
    assert client.journal.read_bytes() == before


def test_a_proxy_may_publish_the_server_below_a_path(client):
    """It may keep the prefix or remove it."""
    for path in ("/tags/v1/model", "/v1/model", "/tags/", "/tags/page.js", "/tags/healthz"):
        assert client.get(path).status_code == 200, path
    answer = client.get("/tags", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (308, "/tags/")
    assert error_of(client.get("/tagsx/v1/model")) == (404, "not_found")
    assert client.get("/tags/openapi.json").json()["servers"] == [{"url": "/tags"}]


def test_a_path_is_no_way_around_the_token(model_folder):
    with client_of(model_folder, token="secret", root_path="/tags") as client:
        for path in ("/tags/v1/model", "/v1/model", "/tags/metrics"):
            assert client.get(path).status_code == 401


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"root_path": "tags"}, "root_path is 'tags': give a path such as /tags"),
        ({"root_path": "/tags/"}, "root_path is '/tags/': give a path such as /tags"),
        ({"tls_cert": "a.pem"}, "HTTPS needs both files: --tls-cert and --tls-key"),
    ],
)
def test_options_that_make_no_sense(tmp_path, options, message):
    with pytest.raises(TreetopError, match=f"^{message}$"):
        ServiceOptions(tmp_path, **options)


@pytest.mark.parametrize(
    ("options", "warns"),
    [
        ({"host": "0.0.0.0"}, True),
        ({"host": "::"}, True),
        ({"host": "example.org"}, True),
        ({"host": "0.0.0.0", "token": "secret"}, False),
        ({"host": "127.0.0.1"}, False),
        ({"host": "localhost"}, False),
        ({"host": "::1"}, False),
    ],
)
def test_a_server_that_is_open_to_others_warns(tmp_path, caplog, options, warns):
    warn_if_open(ServiceOptions(tmp_path, **options))
    expected = (
        f"No token is required: everybody who can connect to {options['host']} may use this server; "
        "set --token"
    )
    assert [record.getMessage() for record in caplog.records] == [expected] * warns


def test_a_unix_domain_socket(serving, model_folder, tmp_path):
    path = tmp_path / "s"
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(path))
    stale.close()  # as a server that was killed leaves it
    server = serving(model_folder, "--workers", "2", "--uds", str(path))
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(path))) as client:
        for _ in range(10):
            answer = client.post("http://localhost/v1/predict", json={"text": "apple pear", "k": 1})
            assert answer.json()["results"][0]["labels"][0]["label"] == "fruit"
    with pytest.raises(TreetopError, match=f"^cannot listen on {path} .*: choose another --uds$"):
        bind_path(path, 1)
    assert server.stop() == 0
    assert not path.exists()
    path.write_text("a file of the user")
    with pytest.raises(TreetopError, match="choose another --uds"):
        bind_path(path, 1)
    assert path.read_text() == "a file of the user"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("certificate")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
    command += " -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1"
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run([*command.split(), *files], check=True, capture_output=True)
    return folder


def test_https(serving, model_folder, certificate):
    files = ["--tls-cert", str(certificate / "cert.pem"), "--tls-key", str(certificate / "key.pem")]
    server = serving(model_folder, "--workers", "1", *files, trusted=certificate / "cert.pem")
    assert server.address.startswith("https://")
    answer = server.client.post("/v1/predict", json={"text": "apple pear", "k": 1})
    assert answer.json()["results"][0]["labels"][0]["label"] == "fruit"
    context = ssl.create_default_context(cafile=certificate / "cert.pem")
    port = int(server.address.rsplit(":", 1)[1])
    with (
        socket.create_connection(("127.0.0.1", port), timeout=20) as line,
        context.wrap_socket(line, server_hostname="localhost") as secured,
    ):
        secured.sendall(b"GET /" + b"a" * 100_000)
        assert secured.recv(65536).startswith(b"HTTP/1.1 431 ")
    assert server.stop() == 0


def test_files_that_are_no_certificate(tmp_path, certificate):
    cert, key = certificate / "cert.pem", certificate / "key.pem"
    missing, nonsense = tmp_path / "none.pem", tmp_path / "nonsense.pem"
    nonsense.write_text("nonsense")
    for files in ((missing, key), (nonsense, key), (cert, nonsense), (cert, cert)):
        options = ServiceOptions(tmp_path, tls_cert=files[0], tls_key=files[1])
        with pytest.raises(
            TreetopError, match=r"^cannot serve HTTPS with \S+ and \S+ \(.+\): give a PEM"
        ):
            check_certificate(options)


@pytest.fixture(scope="module")
def matrix_folder(tmp_path_factory):
    """A model trained on a matrix of five columns."""
    random = np.random.default_rng(0)
    X = np.abs(random.normal(size=(60, 5))).astype(np.float32)
    names = [["low", "high"][int(row[0] > 0.7)] for row in X]
    folder = tmp_path_factory.mktemp("matrix") / "m"
    treetop.XRLinear().fit(X, [[name] for name in names]).save(folder)
    return folder


def test_a_model_trained_on_a_matrix_is_served(matrix_folder):
    rows = [[0.1, 0, 2, 0, 1], {"indices": [4, 0], "values": [1.0, 3.0]}]
    dense = np.array([[0.1, 0, 2, 0, 1], [3, 0, 0, 0, 1]], np.float32)
    expected = treetop.load(str(matrix_folder)).predict(dense, 2)
    with client_of(matrix_folder) as client:
        assert client.get("/v1/model").json()["features"] == 5
        answer = client.post("/v1/predict", json={"features": rows, "k": 2, "explain": True}).json()
        for result, known in zip(answer["results"], expected, strict=True):
            got = [(one["label"], one["score"]) for one in result["labels"]]
            assert [name for name, _ in got] == [name for name, _ in known]
            assert [score for _, score in got] == pytest.approx([score for _, score in known], abs=1e-5)
        why = client.post("/v1/explain", json={"features": rows[1], "labels": ["low"]}).json()
        assert why["labels"][0]["label"] == "low"


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"text": "apple"}, 409, "This model takes features, not texts"),
        ({"features": [[1, 2]]}, 422, "features.0: 2 features, but the model has 5 features"),
        (
            {"features": [{"indices": [7], "values": [1]}]},
            422,
            "features.0: 1 indices up to 7 and 1 values, but the model has 5 features",
        ),
        (
            {"features": [{"indices": [0, 1], "values": [1]}]},
            422,
            "features.0: 2 indices up to 1 and 1 values, but the model has 5 features",
        ),
        ({"features": [[1e300, 0, 0, 0, 0]]}, 422, "features.0: a value is too large"),
        ({"features": [], "text": "a"}, 422, None),
        ({"features": [{"indices": [-1], "values": [1]}]}, 422, None),
        ({"features": [["a", 0, 0, 0, 0]]}, 422, None),
    ],
)
def test_features_that_the_model_cannot_take(matrix_folder, body, status, message):
    with client_of(matrix_folder) as client:
        answer = client.post("/v1/predict", json=body)
        assert answer.status_code == status
        assert message is None or answer.json()["error"]["message"] == message


def test_nan_is_no_feature(matrix_folder):
    with client_of(matrix_folder) as client:
        content = b'{"features": [[NaN, 0, 0, 0, 0]]}'
        answer = client.post(
            "/v1/predict", content=content, headers={"content-type": "application/json"}
        )
        assert answer.status_code == 422


def test_a_model_of_texts_takes_no_features(client):
    answer = client.post("/v1/predict", json={"features": [[1.0]]})
    assert error_of(answer) == (409, "wrong_input")


def test_labels_do_not_depend_on_what_other_requests_of_the_batch_ask_for(model_folder):
    """Requests for 1 to 6 labels at the same time, and each alone."""
    texts = documents(12, seed=5)[0]
    with client_of(model_folder, batch_wait=50) as client:

        def ask(job):
            text, k = job
            answer = client.post("/v1/predict", json={"text": text, "k": k}).json()
            return answer["results"][0]["labels"]

        jobs = [(text, k) for text in texts for k in (1, 2, 6)]
        alone = [ask(job) for job in jobs]
        with ThreadPoolExecutor(12) as crew:
            together = list(crew.map(ask, jobs))
    assert together == alone
    for at in range(0, len(jobs), 3):
        assert alone[at] == alone[at + 2][:1]
        assert alone[at + 1] == alone[at + 2][:2]


@pytest.fixture(scope="module")
def texts_and_features(tmp_path_factory):
    """A model of texts with three precomputed features each."""
    place = tmp_path_factory.mktemp("both")
    words = {"red": "1 0", "green": "0 1", "blue": "1 1"}
    (place / "vectors.txt").write_text("".join(f"{word} {row}\n" for word, row in words.items()))
    texts = [f"{word} thing" for word in words for _ in range(8)]
    X = np.repeat(np.eye(3, dtype=np.float32), 8, axis=0)
    labels = [[text.split()[0]] for text in texts]
    model = treetop.XRTransformer(encoder=str(place / "vectors.txt"), fine_tune=False)
    model.fit(texts, labels, features=X).save(place / "m")
    return place / "m"


def test_texts_with_features_are_served(texts_and_features):
    rows = [[1, 0, 0], {"indices": [2], "values": [1.0]}]
    model = treetop.load(texts_and_features)
    expected = model.predict(["red", "green"], 2, features=np.eye(3)[[0, 2]])
    with client_of(texts_and_features) as client:
        about = client.get("/v1/model").json()
        assert (about["features"], about["texts"]) == (3, True)
        body = {"texts": ["red", "green"], "features": rows, "k": 2, "explain": True}
        answer = client.post("/v1/predict", json=body).json()
        for result, known in zip(answer["results"], expected, strict=True):
            got = {one["label"]: one["score"] for one in result["labels"]}
            assert got == pytest.approx(dict(known), abs=1e-5)
        single = client.post("/v1/predict", json={"text": "red", "features": rows[:1], "k": 2}).json()
        assert single["results"][0]["labels"][0]["label"] == expected[0][0][0]
        why = client.post("/v1/explain", json={"text": "red", "features": rows[0], "labels": ["red"]})
        assert why.json()["labels"][0]["score"] == pytest.approx(dict(expected[0])["red"], abs=1e-5)
        wanted = "This model takes texts with features: send a row of 3 features with each text"
        for body, status, message in [
            ({"text": "red"}, 409, wanted),
            ({"features": rows}, 409, wanted),
            (
                {"text": "red", "features": rows},
                409,
                "1 texts, but 2 rows of features: give one per text",
            ),
            ({"text": "red", "features": [[1.0]]}, 422, "features.0: 1 features, but the model has 3"),
        ]:
            answer = client.post("/v1/predict", json=body)
            assert answer.status_code == status
            assert message in answer.json()["error"]["message"]


def test_a_model_of_texts_takes_no_features_beside_them(client):
    answer = client.post("/v1/predict", json={"text": "apple", "features": [[1.0]]})
    assert error_of(answer) == (409, "wrong_input")
