"""The routes of the HTTP API."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import FastAPI, Query
from fastapi import Request as HttpRequest
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

import treetop
from treetop.model.predictor import Predictor
from treetop.serve import pages
from treetop.serve.annif_api import add_annif_routes
from treetop.serve.batching import Caller
from treetop.serve.errors import MAX_EXPLAINED, MAX_LABELS, RequestError, internal_error
from treetop.serve.guard import Guard
from treetop.serve.requests import ExplainRequest, FeedbackRequest, PredictRequest
from treetop.serve.responses import (
    DoneResponse,
    ErrorResponse,
    ExplainResponse,
    LabelsResponse,
    ModelInfo,
    PredictResponse,
)
from treetop.serve.score_info import score_info
from treetop.serve.worker import Worker

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse, "description": description}
    for status, description in {
        400: "Malformed request",
        401: "Missing or invalid token",
        403: "Host or origin not allowed",
        404: "Not found",
        408: "Request timed out while it was being received",
        409: "Conflict with the state of the server",
        413: "Request, text or number of texts too large",
        422: "Validation error",
        431: "Request headers too large",
        500: "Internal server error",
        503: "Server busy or shutting down, or request timed out: retry later",
        507: "Insufficient storage",
    }.items()
}
TAGS = [
    {"name": "Labels", "description": "Label texts, explain and search labels, send feedback."},
    {"name": "Model", "description": "Describe and reload the model."},
    {"name": "Operations", "description": "Health checks and metrics."},
    {"name": "Annif", "description": "The routes of Annif's REST API, for existing clients of it."},
]


def make_app(worker: Worker) -> Any:
    """The ASGI application of a worker."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await worker.start()
        yield
        await worker.stop()

    app = FastAPI(
        title="treetop",
        version=treetop.__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        description="Extreme multi-label text classification: send texts, get label names.",
        servers=[{"url": worker.options.root_path}] if worker.options.root_path else None,
        openapi_tags=TAGS,
        generate_unique_id_function=lambda route: route.name,
    )
    add_error_handlers(app)
    add_label_routes(app, worker)
    add_model_routes(app, worker)
    add_operations_routes(app, worker)
    add_annif_routes(app, worker, ERRORS)
    pages.add_page(app)
    guard, origins = (
        Guard(app, worker.options, worker.metrics.observe_request),
        worker.options.allow_origin,
    )
    if not origins:
        return guard
    from starlette.middleware.cors import CORSMiddleware

    return CORSMiddleware(
        guard,
        allow_origins=list(origins),
        allow_methods=["GET", "POST"],
        allow_headers=["authorization", "content-type"],
        expose_headers=["retry-after"],
    )


def add_error_handlers(app: FastAPI) -> None:
    """Answer every error with an `ErrorResponse`."""

    @app.exception_handler(RequestError)
    async def request_error(_: HttpRequest, error: RequestError) -> Response:
        return JSONResponse(error.body, error.status, error.headers)

    @app.exception_handler(Exception)
    async def unexpected_error(_: HttpRequest, error: Exception) -> Response:
        return JSONResponse(internal_error().body, 500)

    @app.exception_handler(HTTPException)
    async def http_error(_: HttpRequest, error: HTTPException) -> Response:
        code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "refused")
        body = RequestError(error.status_code, code, str(error.detail)).body
        return JSONResponse(body, error.status_code, error.headers)

    @app.exception_handler(RequestValidationError)
    async def validation_error(_: HttpRequest, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"] if part != "body")
        message = f"{field}: {first['msg']}" if field else str(first["msg"])
        return JSONResponse(RequestError(422, "wrong_values", message).body, 422)


def described_thresholds(model: Predictor) -> dict[str, float | int] | None:
    """The thresholds of a calibrated model."""
    return None if model.thresholds is None else model.thresholds.describe()


def scored_label(name: str, score: float, probability: float | None) -> dict[str, Any]:
    """A label as JSON; a model that is not calibrated has no probabilities."""
    label = {"label": name, "score": round(score, 6)}
    return label if probability is None else {**label, "probability": round(probability, 6)}


def add_label_routes(app: FastAPI, worker: Worker) -> None:
    """Add prediction, explanation, label search and feedback."""
    common: dict[str, Any] = {"responses": ERRORS, "tags": ["Labels"]}

    @app.post("/v1/predict", response_model=PredictResponse, summary="Label texts", **common)
    async def predict(body: PredictRequest, request: HttpRequest) -> Response:
        """Return the best labels of one or several texts, best first."""
        caller = worker.caller(request.scope)
        predictions = await worker.predict(caller, body)
        results = [
            {"labels": [scored_label(*label) for label in prediction]} for prediction in predictions
        ]
        if body.explain:
            await add_explanations(worker, caller, body, results)
        # Not through FastAPI: validating the response takes longer than making it.
        content = json.dumps({"model": worker.served.name, "results": results})
        return Response(content, media_type="application/json")

    @app.post("/v1/explain", response_model=ExplainResponse, summary="Explain labels", **common)
    async def explain(body: ExplainRequest, request: HttpRequest) -> Response:
        """Explain why a text has these labels, or why it does not.

        Each explanation lists the contributions of words, text encoder and bias, which add up to the
        raw score, the paths through the label trees, and similar training documents.
        """
        caller = worker.caller(request.scope)
        explanations = await worker.explain(caller, body.document, body.labels, body.words)
        return Response(json.dumps({"labels": explanations}), media_type="application/json")

    @app.get("/v1/labels", response_model=LabelsResponse, summary="Search labels", **common)
    async def search_labels(
        q: Annotated[str, Query(max_length=200, description="Part of a label name.")] = "",
        limit: Annotated[int, Query(ge=1, le=MAX_LABELS, description="Maximum number.")] = 20,
    ) -> Any:
        """Return labels whose names contain `q`, or the most frequent labels if it is empty."""
        matches = await worker.find_labels(q, limit)
        return {"labels": [{"label": name, "documents": count} for name, count in matches]}

    @app.post("/v1/feedback", response_model=DoneResponse, summary="Save feedback", **common)
    async def feedback(body: FeedbackRequest) -> Any:
        """Save the labels that a person accepted and rejected, to train on later."""
        worker.save_feedback([(body.text, body.labels, body.rejected)])
        return {"done": True}


async def add_explanations(
    worker: Worker, caller: Caller, body: PredictRequest, results: list[Any]
) -> None:
    """Add `why` to the first `MAX_EXPLAINED` labels, text by text."""
    left = MAX_EXPLAINED
    for document, result in zip(body.documents, results, strict=True):
        records = result["labels"][:left]
        left -= len(records)
        if records:
            names = [record["label"] for record in records]
            explanations = await worker.explain(caller, document, names, body.words)
            for record, explanation in zip(records, explanations, strict=True):
                record["why"] = explanation


def add_model_routes(app: FastAPI, worker: Worker) -> None:
    """Add the description of the model and the reload."""
    common: dict[str, Any] = {"responses": ERRORS, "tags": ["Model"]}

    @app.get("/v1/model", response_model=ModelInfo, summary="Describe the model", **common)
    async def model() -> Any:
        """Return name, size, settings and metrics of the model, and what its scores mean."""
        served = worker.served
        settings = served.model.describe().get("settings", {})
        return {
            "name": served.name,
            "kind": served.model.kind,
            "labels": len(served.model.classes),
            "train_documents": served.model.train_documents,
            "encoder": served.model.has_encoder,
            "features": served.columns,
            "texts": served.model.reads_texts,
            "feedback": worker.journal is not None,
            "loaded": served.loaded,
            "scores": score_info(served.model),
            "calibrated": served.model.calibrated,
            "thresholds": described_thresholds(served.model),
            "metrics": served.config.get("metrics", {}),
            # The encoder may be a path on this machine.
            "settings": {name: value for name, value in settings.items() if name != "encoder"},
        }

    @app.post("/v1/reload", response_model=DoneResponse, summary="Reload the model", **common)
    async def reload() -> Any:
        """Load the model again if its folder has changed.

        The new model is loaded by new processes. Requests are answered by the old one until they are
        ready, and longer if they cannot load it; none is dropped.
        """
        return {"done": await worker.reload()}


def add_operations_routes(app: FastAPI, worker: Worker) -> None:
    """Add health checks and metrics."""
    common: dict[str, Any] = {"tags": ["Operations"]}

    @app.get("/healthz", response_model=DoneResponse, summary="Liveness", **common)
    async def healthz() -> Any:
        """Return 200 while the process is running."""
        return {"done": True}

    @app.get("/readyz", response_model=DoneResponse, summary="Readiness", responses=ERRORS, **common)
    async def readyz() -> Any:
        """Return 200 if the model is loaded and the queue accepts requests, else 503."""
        overloaded = worker.admission.expected_wait() > worker.options.max_wait
        if not worker.ready or overloaded:
            raise RequestError(503, "not_ready", "Server is not ready", retry_after="1")
        return {"done": True}

    @app.get("/metrics", response_class=Response, summary="Metrics", responses=ERRORS, **common)
    async def metrics() -> Response:
        """Return the metrics of all workers in Prometheus's text format."""
        worker.count_refused()
        return Response(worker.metrics.exposition(), media_type="text/plain; version=0.0.4")
