"""The HTTP API, called in this process."""

import json
import os
import signal

import pytest
from starlette.testclient import TestClient

import treetop
from treetop.serve.api import make_app
from treetop.serve.board import FAILED, LOADED, UNCHANGED, ReloadBoard
from treetop.serve.engine import Served
from treetop.serve.options import ServiceOptions
from treetop.serve.reloading import Reloader
from treetop.serve.worker import Worker

RUNTIME = treetop.Runtime(threads=1)


def client_of(folder, **options):
    worker = Worker(ServiceOptions(folder, **options), Served(folder, RUNTIME), RUNTIME)
    return TestClient(make_app(worker), "http://localhost", raise_server_exceptions=False)


@pytest.fixture(scope="module")
def client(model_folder, tmp_path_factory):
    journal = tmp_path_factory.mktemp("journal") / "feedback.jsonl"
    limits = {"max_body": 0.1, "max_characters": 2000, "max_texts": 20}
    with client_of(model_folder, feedback=journal, **limits) as client:
        client.journal = journal
        yield client


def error_of(answer):
    assert answer.headers["content-type"] == "application/json"
    return answer.status_code, answer.json()["error"]["code"]


def test_predictions_are_those_of_the_model(client, model_folder):
    texts = ["apple and pear", "a boat in the harbour", ""]
    answer = client.post("/v1/predict", json={"texts": texts, "k": 3})
    expected = treetop.load(str(model_folder)).predict(texts, 3)
    got = [[(one["label"], one["score"]) for one in row["labels"]] for row in answer.json()["results"]]
    for answered, known in zip(got, expected, strict=True):
        assert [name for name, _ in answered] == [name for name, _ in known]
        assert [score for _, score in answered] == pytest.approx(
            [score for _, score in known], abs=1e-5
        )


def test_one_text_k_threshold_and_allow_list(client):
    def labels(**more):
        answer = client.post("/v1/predict", json={"text": "apple boat", "k": 6, **more}).json()
        return answer["results"][0]["labels"]

    best = labels()
    assert len(best) == 6
    assert labels(threshold=best[2]["score"] - 1e-6) == best[:3]
    assert {record["label"] for record in labels(allow=["fire", "sky"])} == {"fire", "sky"}


def test_labels_that_are_numbers_are_strings_in_the_api(tmp_path):
    texts = ["red apple", "blue sky", "green grass"] * 8
    model = treetop.XRLinear(keep_documents=True).fit(texts, [7, 3, 5] * 8)
    model.save(tmp_path / "m")
    with client_of(tmp_path / "m") as client:
        best = client.post("/v1/predict", json={"text": "red apple", "k": 1}).json()
        assert best["results"][0]["labels"][0]["label"] == "7"
        why = client.post("/v1/explain", json={"text": "red apple", "labels": ["7"]}).json()["labels"][
            0
        ]
        assert why["label"] == "7"
        assert why["neighbours"][0]["labels"] == ["7"]
        assert why["paths"][0]["nodes"][-1]["labels"] == ["7"]
    name, score = model.predict(["red apple"], 1)[0][0]
    exact = {"text": "red apple", "threshold": float(f"{score:.9g}")}  # a float32 in decimals
    with client_of(tmp_path / "m") as client:
        labels = client.post("/v1/predict", json=exact).json()["results"][0]["labels"]
        assert [one["label"] for one in labels] == [str(name)]


def test_requests_with_different_allow_lists_share_a_batch(model_folder):
    from treetop.serve.batching import Piece
    from treetop.serve.engine import PredictQuery

    served = Served(model_folder, RUNTIME)
    pieces = [
        Piece(["apple", "boat"], PredictQuery(2)),
        Piece(["apple"], PredictQuery(1, None, ("fire",))),
        Piece(["star"], PredictQuery(3)),
    ]
    answers = served.answer(pieces, RUNTIME)
    assert [len(rows) for rows in answers] == [2, 1, 1]
    assert [len(rows[0]) for rows in answers] == [2, 1, 3]
    assert answers[1][0][0][0] == "fire"
    assert answers[0] == [
        served.answer([Piece([t], PredictQuery(2))], RUNTIME)[0][0] for t in ("apple", "boat")
    ]


def test_explanations(client):
    body = {"text": "apple pear", "k": 2, "explain": True, "words": 3}
    first = client.post("/v1/predict", json=body).json()["results"][0]["labels"][0]
    assert first["label"] == "fruit"
    assert {word["name"] for word in first["why"]["words"]} == {"apple", "pear", "apple pear"}
    why = first["why"]
    parts = sum(word["value"] for word in why["words"]) + why["other_words"]
    assert parts + why["encoder"] + why["bias"] == pytest.approx(why["raw_score"], abs=1e-6)
    neighbours = why["neighbours"]
    assert [one["has_label"] for one in neighbours] == [True] * len(neighbours)
    assert set(neighbours[0]["text"].split()) >= {"apple", "pear"}
    other = client.post("/v1/explain", json={"text": "apple pear", "labels": ["sky"]}).json()
    assert other["labels"][0]["label"] == "sky"
    assert error_of(client.post("/v1/explain", json={"text": "a", "labels": ["no"]})) == (
        404,
        "unknown_label",
    )


def test_search_and_model(client):
    matches = client.get("/v1/labels", params={"q": "caf"}).json()["labels"]
    assert matches[0]["label"] == "naïve café"
    about = client.get("/v1/model").json()
    assert (about["name"], about["labels"], about["kind"]) == ("topics", 6, "xr-linear")


@pytest.mark.parametrize(
    ("transform", "name", "minimum", "maximum"),
    [
        ("sigmoid", "score", 0, 1),
        ("identity", "raw score", None, None),
        ("log-sigmoid", "log score", None, 0),
    ],
)
def test_the_model_says_what_its_scores_are(tmp_path, transform, name, minimum, maximum):
    model = treetop.XRLinear(score_transform=transform)
    model.fit(["one two", "three four"], [["new"], ["old"]]).save(tmp_path / "m")
    with client_of(tmp_path / "m") as client:
        scores = client.get("/v1/model").json()["scores"]
        assert (scores["name"], scores["minimum"], scores["maximum"]) == (name, minimum, maximum)
        labels = client.post("/v1/predict", json={"text": "one two"}).json()["results"][0]["labels"]
        assert all((maximum is None or record["score"] <= maximum) for record in labels)


def test_an_ensemble_says_what_its_scores_are(model_folder):
    from treetop.model.ensemble import EnsembleModel
    from treetop.serve.score_info import score_info

    member = Served(model_folder, RUNTIME).model
    mean = score_info(EnsembleModel((member, member), "average", (1.0, 1.0)))
    assert (
        mean["description"] == "From 0 to 1 (sigmoid of the raw scores). Not a calibrated probability."
    )
    rank = score_info(EnsembleModel((member, member), "rank", (1.0, 1.0)))
    assert rank["description"].startswith("Weighted mean of 1 / rank")


def test_the_openapi_schema_has_conventional_names(client):
    schema = client.get("/openapi.json").json()
    assert set(schema["components"]["schemas"]) >= {
        "PredictRequest",
        "PredictResponse",
        "ExplainRequest",
        "ExplainResponse",
        "LabelExplanation",
        "FeedbackRequest",
        "ErrorResponse",
        "ModelInfo",
        "ScoreInfo",
    }
    operations = {
        f"{method.upper()} {path}": operation
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    }
    summaries = {name: operation["summary"] for name, operation in operations.items()}
    assert summaries["POST /v1/predict"] == "Label texts"
    assert summaries["POST /v1/explain"] == "Explain labels"
    assert summaries["GET /v1/labels"] == "Search labels"
    assert operations["POST /v1/predict"]["operationId"] == "predict"
    declared = {tag["name"] for tag in schema["tags"]}
    assert {tag for operation in operations.values() for tag in operation["tags"]} == declared
    errors = operations["POST /v1/predict"]["responses"]
    assert errors["401"]["description"] == "Missing or invalid token"
    assert errors["500"]["description"] == "Internal server error"


def test_an_explanation_matches_its_schema(client, model_folder):
    from treetop.serve.responses import ExplainResponse

    answer = client.post("/v1/explain", json={"text": "apple pear boat", "labels": ["fruit", "sky"]})
    model = treetop.load(str(model_folder))
    explanation = model.explain("apple pear boat", ["fruit", "sky"])
    assert [set(one) for one in answer.json()["labels"]] == [set(one.to_dict()) for one in explanation]
    assert len(ExplainResponse(**answer.json()).labels) == 2


def test_feedback_is_saved_in_a_format_that_train_reads(client, tmp_path):
    from treetop.data import open_data

    sent = {"text": "new apple\nsecond line", "labels": ["fruit", "brand new"], "rejected": ["sea"]}
    assert client.post("/v1/feedback", json=sent).json() == {"done": True}
    split = open_data(client.journal, None, None).split("train")
    assert split.texts[-1] == sent["text"]
    assert split.labels[-1] == sent["labels"]
    assert json.loads(client.journal.read_text().splitlines()[-1])["rejected"] == ["sea"]


def test_feedback_is_off_by_default(model_folder):
    with client_of(model_folder) as client:
        answer = client.post("/v1/feedback", json={"text": "a", "labels": []})
        assert error_of(answer) == (409, "no_feedback")


def test_annif_routes(client):
    listed = client.get("/v1/projects").json()["projects"]
    assert [one["project_id"] for one in listed] == ["topics"]
    assert client.get("/v1/projects/topics").json()["is_trained"] is True
    answer = client.post("/v1/projects/topics/suggest", data={"text": "apple pear", "limit": "2"})
    assert answer.json()["results"][0]["label"] == "fruit"
    assert set(answer.json()["results"][0]) == {"uri", "label", "notation", "score"}
    batch = {"documents": [{"text": "boat", "document_id": "x"}, {"text": "star"}]}
    answer = client.post("/v1/projects/topics/suggest-batch?limit=1", json=batch)
    assert [one["document_id"] for one in answer.json()] == ["x", None]
    assert answer.json()[0]["results"][0]["uri"] == "sea"
    taught = [{"text": "plum", "subjects": [{"uri": "fruit", "label": "fruit"}]}]
    assert client.post("/v1/projects/topics/learn", json=taught).status_code == 204
    assert error_of(client.post("/v1/projects/other/suggest", data={"text": "a"})) == (404, "not_found")
    assert error_of(client.post("/v1/projects/topics/suggest", data={"limit": "2"})) == (400, "no_text")
    wrong = {"text": "a", "limit": "many"}
    assert error_of(client.post("/v1/projects/topics/suggest", data=wrong)) == (400, "wrong_values")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "give either text or texts, or features"),
        ({"text": "a", "texts": ["b"]}, "give either text or texts, or features"),
        ({"text": 7}, "text: Input should be a valid string"),
        ({"text": "a", "k": 0}, "k: Input should be greater than or equal to 1"),
        ({"text": "a", "k": "3"}, "Input should be a valid integer"),
        ({"text": "a", "threshold": "high"}, "threshold: Input should be a valid number"),
        ({"text": "a", "nonsense": 1}, "nonsense: Extra inputs are not permitted"),
        ({"texts": []}, "texts: List should have at least 1 item"),
    ],
)
def test_validation_errors_name_the_field(client, body, message):
    answer = client.post("/v1/predict", json=body)
    assert answer.status_code == 422
    assert message in answer.json()["error"]["message"]


def test_an_unknown_label_is_named(client):
    answer = client.post("/v1/predict", json={"text": "a", "allow": ["no such"]})
    assert error_of(answer) == (404, "unknown_label")
    assert answer.json()["error"]["message"] == "Label 'no such' not found in the model"


def test_invalid_json_is_refused(client):
    for body in (b"{", b"\xff\xfe", b"[1]", b""):
        answer = client.post("/v1/predict", content=body, headers={"content-type": "application/json"})
        assert error_of(answer)[0] in (400, 422), body
    half = b'{"text": "apple \\ud800"}'
    answer = client.post("/v1/predict", content=half, headers={"content-type": "application/json"})
    assert answer.status_code == 200


def test_limits(client):
    assert error_of(client.post("/v1/predict", json={"text": "x" * 2001})) == (413, "text_too_long")
    assert error_of(client.post("/v1/predict", json={"texts": ["a"] * 21})) == (413, "too_many_texts")
    assert error_of(client.post("/v1/predict", json={"text": "x" * 200_000})) == (413, "too_large")

    def endless():
        for _ in range(100):
            yield b"x" * 10_000

    answer = client.post("/v1/predict", content=endless())
    assert error_of(answer) == (413, "too_large")
    assert client.post("/v1/predict", json={"text": "apple"}).status_code == 200


def test_the_number_of_explanations_is_limited(client):
    answer = client.post("/v1/predict", json={"texts": ["apple boat"] * 11, "k": 6, "explain": True})
    records = [one for row in answer.json()["results"] for one in row["labels"]]
    assert [("why" in one) for one in records] == [True] * 50 + [False] * 16


def test_the_memory_for_bodies_is_limited(model_folder):
    with client_of(model_folder, max_body=0.001, held_bytes=1000) as client:
        client.app.held = 900
        answer = client.post("/v1/predict", json={"text": "x" * 200})
        assert error_of(answer) == (503, "busy")
        assert answer.headers["retry-after"] == "1"
        client.app.held = 0
        assert client.post("/v1/predict", json={"text": "x" * 200}).status_code == 200
        assert client.app.held == 0


def test_other_websites_may_not_post(client):
    for path, body in (("/v1/reload", None), ("/v1/feedback", {"text": "a", "labels": []})):
        answer = client.post(path, json=body, headers={"sec-fetch-site": "cross-site"})
        assert error_of(answer) == (403, "other_site")


def test_every_response_has_security_headers(client):
    for answer in (
        client.get("/"),
        client.get("/v1/model"),
        client.get("/none"),
        client.post("/v1/predict"),
    ):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in answer.headers


def test_unknown_paths_and_methods(client):
    assert error_of(client.get("/nothing")) == (404, "not_found")
    assert error_of(client.get("/v1/predict")) == (405, "method_not_allowed")


def test_responses_contain_no_path_of_the_server(client, model_folder):
    answers = [
        client.get("/v1/model"),
        client.get("/v1/projects"),
        client.get("/metrics"),
        client.post("/v1/predict", json={"text": "apple", "explain": True}),
        client.post("/v1/predict", json={"text": "a", "allow": ["x"]}),
        client.get("/openapi.json"),
    ]
    for answer in answers:
        assert str(model_folder.parent) not in answer.text


def test_an_internal_error_has_no_details(model_folder, monkeypatch):
    served = Served(model_folder, RUNTIME)
    worker = Worker(ServiceOptions(model_folder), served, RUNTIME)
    with TestClient(make_app(worker), "http://localhost", raise_server_exceptions=False) as client:

        def fail(*_):
            raise RuntimeError(f"secret {model_folder}")

        monkeypatch.setattr(served, "answer", fail)
        answer = client.post("/v1/predict", json={"text": "a"})
        assert error_of(answer) == (500, "internal")
        assert answer.json()["error"]["message"] == "Internal server error"


def test_the_api_requires_the_token_and_the_page_does_not(model_folder):
    with client_of(model_folder, token="secret") as client:
        assert client.get("/").status_code == 200
        assert client.get("/healthz").status_code == 200
        for path in ("/v1/model", "/metrics", "/openapi.json", "/v1/projects"):
            answer = client.get(path)
            assert error_of(answer) == (401, "unauthorized")
            assert answer.json()["error"]["message"].startswith("Missing token")
            assert answer.headers["www-authenticate"] == "Bearer"
            assert client.get(path, headers={"authorization": "Bearer wrong"}).status_code == 401
            assert client.get(path, headers={"authorization": "Bearer secret"}).status_code == 200


def test_only_allowed_origins_may_call(model_folder):
    preflight = {"origin": "https://library.example", "access-control-request-method": "POST"}
    with client_of(model_folder, allow_origin=("https://library.example",)) as client:
        answer = client.options("/v1/predict", headers=preflight)
        assert answer.headers["access-control-allow-origin"] == "https://library.example"
        other = client.options("/v1/predict", headers={**preflight, "origin": "https://evil.example"})
        assert "access-control-allow-origin" not in other.headers
    with client_of(model_folder, allow_origin=("https://library.example",), token="secret") as client:
        assert client.options("/v1/predict", headers=preflight).status_code == 200
        refused = client.post(
            "/v1/predict", json={"text": "a"}, headers={"origin": preflight["origin"]}
        )
        assert refused.status_code == 401
        assert refused.headers["access-control-allow-origin"] == preflight["origin"]


def test_metrics_count_requests(client):
    client.post("/v1/predict", json={"text": "apple"})
    page = client.get("/metrics").text
    assert 'treetop_requests_total{path="/v1/predict",status="200"}' in page
    assert "treetop_batch_texts_bucket" in page


@pytest.mark.parametrize(
    ("running", "outcome", "expected"),
    [
        (False, UNCHANGED, {"done": False}),
        (False, LOADED, {"done": True}),
        (False, FAILED, (409, "not_reloaded")),
        (True, LOADED, (409, "reloading")),
        (False, None, (503, "timeout")),
    ],
)
def test_reload_asks_the_supervisor_and_waits(model_folder, monkeypatch, running, outcome, expected):
    board = ReloadBoard()
    if running:
        board.begin()

    def signal_supervisor(process, number):
        assert (process, number) == (4711, signal.SIGHUP)
        if outcome is not None:
            board.finish(outcome)

    worker = Worker(ServiceOptions(model_folder), Served(model_folder, RUNTIME), RUNTIME)
    worker.reloader = Reloader(4711, board, timeout=0.1)
    with TestClient(make_app(worker), "http://localhost") as client:
        monkeypatch.setattr(os, "kill", signal_supervisor)
        answer = client.post("/v1/reload")
    assert (answer.json() if answer.status_code == 200 else error_of(answer)) == expected


def test_ensembles_are_served(model_folder, tmp_path):
    model = treetop.load(str(model_folder))
    both = treetop.Ensemble([model, model])
    both.save(tmp_path / "both")
    with client_of(tmp_path / "both") as client:
        answer = client.post(
            "/v1/predict", json={"texts": ["apple", "boat star"], "k": 2, "explain": True}
        )
        labels = [[record["label"] for record in row["labels"]] for row in answer.json()["results"]]
        assert labels == [[name for name, _ in row] for row in both.predict(["apple", "boat star"], 2)]


def test_an_encoder_is_served(tmp_path):
    from tests.serve.conftest import documents
    from tests.tiny import save_encoder

    model = treetop.XRTransformer(encoder=save_encoder(tmp_path / "e"), fine_tune=False)
    model.fit(*documents(60)).save(tmp_path / "m")
    with client_of(tmp_path / "m", device="cpu") as client:
        answer = client.post("/v1/predict", json={"text": "apple pear", "k": 1, "explain": True}).json()
        assert answer["results"][0]["labels"][0]["why"]["encoder"] != 0
        assert client.get("/v1/model").json()["encoder"] is True


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory):
    """A client of a model that training has calibrated, and the model."""
    words = ["red", "green", "blue", "sky"]
    texts = [f"{words[n % 4]} {words[n // 7 % 4]} {n}" for n in range(240)]
    model = treetop.XRLinear().fit(texts, [text.split()[:2] for text in texts])
    folder = tmp_path_factory.mktemp("calibrated") / "model"
    model.save(folder)
    with client_of(folder) as client:
        yield client, model


def test_probabilities_join_scores_and_choose_labels(calibrated):
    server, model = calibrated
    asked = {"text": "a red sky", "k": 4}
    labels = server.post("/v1/predict", json=asked).json()["results"][0]["labels"]
    expected = model.predict(["a red sky"], 4, probability=True)[0]
    assert [(one["label"], one["probability"]) for one in labels] == [
        (name, pytest.approx(probability, abs=1e-5)) for name, probability in expected
    ]
    assert [one["score"] for one in labels] == sorted((one["score"] for one in labels), reverse=True)
    least = {**asked, "probability": labels[1]["probability"] - 1e-5}
    chosen = server.post("/v1/predict", json=least).json()["results"][0]["labels"]
    assert chosen == [one for one in labels if one["probability"] >= least["probability"]]
    promised = server.post("/v1/predict", json={**asked, "precision": 0.8}).json()["results"][0]
    names = [name for name, _ in model.predict(["a red sky"], 4, precision=0.8)[0]]
    assert [one["label"] for one in promised["labels"]] == names
    info = server.get("/v1/model").json()
    assert info["calibrated"]
    assert info["thresholds"] == model.model_.thresholds.describe()


def test_explanations_and_annif_routes_show_probabilities(calibrated):
    server, model = calibrated
    expected = dict(model.predict(["a red sky"], 4, probability=True)[0])
    body = {"text": "a red sky", "labels": list(expected)}
    for why in server.post("/v1/explain", json=body).json()["labels"]:
        assert why["probability"] == pytest.approx(expected[why["label"]], abs=1e-6)
    form = {"text": "a red sky", "limit": "4", "threshold": "0.3"}
    project = server.get("/v1/projects").json()["projects"][0]["project_id"]
    subjects = server.post(f"/v1/projects/{project}/suggest", data=form).json()["results"]
    assert {one["label"]: one["score"] for one in subjects} == pytest.approx(
        {name: value for name, value in expected.items() if value >= 0.3}, abs=1e-5
    )


def test_a_model_that_is_not_calibrated_keeps_no_promise(tmp_path):
    treetop.XRLinear().fit(["red", "blue"] * 5, [["red"], ["blue"]] * 5).save(tmp_path / "model")
    with client_of(tmp_path / "model") as client:
        for choice in ({"precision": 0.9}, {"probability": 0.5}):
            answer = client.post("/v1/predict", json={"text": "red", **choice})
            assert error_of(answer) == (409, "not_calibrated")
        labels = client.post("/v1/predict", json={"text": "red"}).json()["results"][0]["labels"]
        assert set(labels[0]) == {"label", "score"}
