"""The routes of the service."""

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
from treetop.serve import pages
from treetop.serve.annif_api import add_annif_routes
from treetop.serve.guard import Guard
from treetop.serve.limits import MOST_EXPLAINED, MOST_LABELS, Refused, internal_error
from treetop.serve.schemas import (
    DoneResponse,
    ErrorResponse,
    ExplainRequest,
    FeedbackRequest,
    LabelsResponse,
    ModelInfo,
    PredictRequest,
    PredictResponse,
)
from treetop.serve.worker import Request, Worker

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse, "description": text}
    for status, text in {
        400: "not a valid request",
        401: "token missing or wrong",
        403: "another site",
        404: "no such thing",
        408: "too slow",
        409: "not possible now",
        413: "too large",
        422: "wrong values",
        431: "headers too long",
        500: "internal server error",
        503: "busy, stopping or too late",
        507: "no room",
    }.items()
}


def make_app(worker: Worker) -> Any:
    """The ASGI application of one worker."""

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        await worker.start()
        yield
        await worker.stop()

    app = FastAPI(
        title="treetop",
        version=treetop.__version__,
        lifespan=life,
        docs_url=None,
        redoc_url=None,
        description="Text in, label names out.",
    )
    add_error_handlers(app)
    add_routes(app, worker)
    add_other_routes(app, worker)
    add_annif_routes(app, worker, ERRORS)
    pages.add_page(app)

    def watch(path: str, status: int, seconds: float) -> None:
        worker.measures.requests.labels(path, str(status)).inc()
        worker.measures.seconds.labels(path).observe(seconds)

    guard, origins = Guard(app, worker.options, watch), worker.options.allow_origin
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
    """Every error is the same kind of JSON."""

    @app.exception_handler(Refused)
    async def refused(_: HttpRequest, error: Refused) -> Response:
        return JSONResponse(error.body, error.status, error.headers)

    @app.exception_handler(Exception)
    async def failed(_: HttpRequest, error: Exception) -> Response:
        return JSONResponse(internal_error().body, 500)

    @app.exception_handler(HTTPException)
    async def http_error(_: HttpRequest, error: HTTPException) -> Response:
        code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "refused")
        made = Refused(error.status_code, code, str(error.detail).lower())
        return JSONResponse(made.body, error.status_code, error.headers)

    @app.exception_handler(RequestValidationError)
    async def wrong_values(_: HttpRequest, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if part != "body")
        message = f"{place}: {first['msg']}" if place else str(first["msg"])
        return JSONResponse(Refused(422, "wrong_values", message).body, 422)


def add_routes(app: FastAPI, worker: Worker) -> None:
    """Labels for texts, reasons for labels."""

    @app.post("/v1/predict", response_model=PredictResponse, responses=ERRORS, tags=["labels"])
    async def predict(body: PredictRequest) -> Response:
        """Labels for one text or many, best first."""
        request = worker.request()
        found = await worker.predict(request, body)
        results = [
            {"labels": [{"label": name, "score": round(score, 6)} for name, score in one]}
            for one in found
        ]
        if body.explain:
            await add_reasons(worker, request, body, results)
        return Response(
            json.dumps({"model": request.served.name, "results": results}),
            200,
            None,
            "application/json",
        )

    @app.post("/v1/explain", responses=ERRORS, tags=["labels"])
    async def explain(body: ExplainRequest) -> dict[str, Any]:
        """Why a text gets labels: words, encoder, ways through the trees, documents alike."""
        found = await worker.explain(worker.request(), body.text, body.labels, body.words)
        return {"labels": found}

    @app.get("/v1/labels", response_model=LabelsResponse, responses=ERRORS, tags=["labels"])
    async def labels(
        q: Annotated[str, Query(max_length=200, description="Part of a name.")] = "",
        limit: Annotated[int, Query(ge=1, le=MOST_LABELS)] = 20,
    ) -> Any:
        """Labels whose names hold `q`."""
        found = worker.served.search.find(q, limit)
        return {"labels": [{"label": name, "documents": count} for name, count in found]}


async def add_reasons(
    worker: Worker, request: Request, body: PredictRequest, results: list[Any]
) -> None:
    """Say why, text by text, best labels first, until the limit of reasons is reached."""
    left = MOST_EXPLAINED
    texts = [body.text] if body.text is not None else body.texts
    for text, one in zip(texts, results, strict=True):
        records = one["labels"][:left]
        left -= len(records)
        if records:
            names = [record["label"] for record in records]
            reasons = await worker.explain(request, text, names, body.words)
            for record, why in zip(records, reasons, strict=True):
                record["why"] = why


def add_other_routes(app: FastAPI, worker: Worker) -> None:
    """The model, feedback, and what operators need."""

    @app.get("/v1/model", response_model=ModelInfo, responses=ERRORS, tags=["model"])
    async def model() -> Any:
        """What is served."""
        served = worker.served
        settings = served.model.describe().get("settings", {})
        shown = {name: value for name, value in settings.items() if name != "encoder"}  # a place here
        return {
            "name": served.name,
            "kind": served.model.kind,
            "labels": len(served.model.classes),
            "train_documents": served.model.train_documents,
            "encoder": served.model.has_encoder,
            "feedback": worker.journal is not None,
            "loaded": served.opened,
            "metrics": served.config.get("metrics", {}),
            "settings": shown,
        }

    @app.post("/v1/reload", response_model=DoneResponse, responses=ERRORS, tags=["model"])
    async def reload() -> Any:
        """Exchange the model for the one that is in its folder now; no request is dropped."""
        changed = await worker.reload()
        worker.tell_others()
        return {"done": changed}

    @app.post("/v1/feedback", response_model=DoneResponse, responses=ERRORS, tags=["labels"])
    async def feedback(decision: FeedbackRequest) -> Any:
        """Keep what a person decided, to train on later."""
        worker.keep([(decision.text, decision.labels, decision.rejected)])
        return {"done": True}

    @app.get("/healthz", response_model=DoneResponse, tags=["operation"])
    async def healthz() -> Any:
        """The process runs."""
        return {"done": True}

    @app.get("/readyz", response_model=DoneResponse, responses=ERRORS, tags=["operation"])
    async def readyz() -> Any:
        """The model is open and there is room in the queue."""
        waits = worker.batcher.expected_wait() > worker.options.max_wait
        if not worker.ready or waits:
            raise Refused(503, "not_ready", "the server is not ready", retry_after="1")
        return {"done": True}

    @app.get("/metrics", response_class=Response, responses=ERRORS, tags=["operation"])
    async def metrics() -> Response:
        """Figures for Prometheus."""
        return Response(worker.measures.page(), 200, None, "text/plain; version=0.0.4")
