"""The routes of Annif's REST API, so that existing clients of Annif can call this server."""

from __future__ import annotations

import json
from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import APIRouter, FastAPI, Path, Query, Request, Response
from pydantic import BaseModel, Field

from treetop.serve.batching import Caller
from treetop.serve.errors import MAX_LABELS, RequestError
from treetop.serve.requests import LabelName, PredictRequest, Text
from treetop.serve.worker import Worker

MAX_DOCUMENTS = 32
Limit = Annotated[int, Query(ge=0, le=MAX_LABELS, description="Maximum number of subjects.")]
Threshold = Annotated[float, Query(ge=0.0, le=1.0, description="Minimum score.")]
ProjectId = Annotated[str, Path(description="Name of the model.")]
FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "application/x-www-form-urlencoded": {
                "schema": {
                    "type": "object",
                    "required": ["text"],
                    "properties": {
                        "text": {"type": "string"},
                        "limit": {"type": "integer", "minimum": 0, "maximum": MAX_LABELS},
                        "threshold": {"type": "number", "minimum": 0, "maximum": 1},
                        "language": {"type": "string"},
                    },
                }
            }
        },
    }
}


class AnnifDocument(BaseModel):
    """A document of a batch."""

    text: Text
    document_id: str | None = None


class AnnifBatch(BaseModel):
    """Several documents."""

    documents: Annotated[list[AnnifDocument], Field(max_length=MAX_DOCUMENTS)]


class AnnifSubject(BaseModel):
    """A label, with Annif's field names."""

    uri: LabelName
    label: str | None = None


class AnnifExample(BaseModel):
    """A document and its correct subjects."""

    text: Annotated[Text, Field(min_length=1)]
    subjects: Annotated[list[AnnifSubject], Field(max_length=1000)]


def add_annif_routes(app: FastAPI, worker: Worker, errors: dict[int | str, Any]) -> None:
    """Add /v1/projects: the model is the only project."""
    router = APIRouter(prefix="/v1/projects", responses=errors, tags=["Annif"])

    @router.get("", summary="List projects")
    async def projects() -> dict[str, Any]:
        """Return the model as the only project."""
        return {"projects": [project_of(worker)]}

    @router.get("/{project_id}", summary="Describe a project")
    async def project(project_id: ProjectId) -> dict[str, Any]:
        """Return the model as a project."""
        check_project(worker, project_id)
        return project_of(worker)

    @router.post("/{project_id}/suggest", openapi_extra=FORM, summary="Suggest subjects for a text")
    async def suggest(project_id: ProjectId, request: Request) -> dict[str, Any]:
        """Return the best labels of a text that is sent as a form."""
        check_project(worker, project_id)
        caller = worker.caller(request.scope)
        form = read_form(await request.body())
        if "text" not in form:
            raise RequestError(400, "no_text", "Form field text is missing")
        limit = number_in(form, "limit", 10, MAX_LABELS, integer=True)
        threshold = number_in(form, "threshold", 0.0, 1.0)
        subjects = await suggest_subjects(worker, caller, [form["text"]], int(limit), threshold)
        return {"results": subjects[0]}

    @router.post("/{project_id}/suggest-batch", summary="Suggest subjects for several texts")
    async def suggest_batch(
        project_id: ProjectId,
        batch: AnnifBatch,
        request: Request,
        limit: Limit = 10,
        threshold: Threshold = 0.0,
        language: str = "",
    ) -> list[dict[str, Any]]:
        """Return the best labels of up to 32 texts."""
        check_project(worker, project_id)
        caller = worker.caller(request.scope)
        texts = [document.text for document in batch.documents]
        subjects = await suggest_subjects(worker, caller, texts, limit, threshold)
        return [
            {"document_id": document.document_id, "results": results}
            for document, results in zip(batch.documents, subjects, strict=True)
        ]

    @router.post("/{project_id}/learn", status_code=204, summary="Save documents to train on")
    async def learn(project_id: ProjectId, documents: list[AnnifExample]) -> Response:
        """Save documents with their correct labels, to train on later."""
        check_project(worker, project_id)
        worker.save_feedback(
            [(document.text, [s.uri for s in document.subjects], []) for document in documents]
        )
        return Response(status_code=204)

    app.include_router(router)


async def suggest_subjects(
    worker: Worker, caller: Caller, texts: list[str], limit: int, threshold: float
) -> list[list[dict[str, Any]]]:
    """The best labels of each text, with Annif's field names; scores are probabilities, if known."""
    if not texts or limit == 0:
        return [[] for _ in texts]
    least = "threshold" if worker.served.model.thresholds is None else "probability"
    body = PredictRequest.model_validate({"texts": texts, "k": limit, least: threshold})
    predictions = await worker.predict(caller, body)
    return [
        [
            {
                "uri": name,
                "label": name,
                "notation": None,
                "score": min(score if probability is None else probability, 1.0),
            }
            for name, score, probability in prediction
        ]
        for prediction in predictions
    ]


def project_of(worker: Worker) -> dict[str, Any]:
    """The model as an Annif project."""
    served = worker.served
    return {
        "project_id": served.name,
        "name": served.name,
        "language": "en",
        "is_trained": True,
        "backend": {"backend_id": f"treetop-{served.model.kind}"},
        "modification_time": None,
    }


def check_project(worker: Worker, project_id: str) -> None:
    """Answer 404 unless the project is the model."""
    if project_id != worker.served.name:
        raise RequestError(404, "not_found", f"Project {json.dumps(project_id)} not found")


def read_form(body: bytes) -> dict[str, str]:
    """The fields of a URL-encoded form; of a repeated field the first value."""
    try:
        fields = parse_qs(body.decode("ascii"), keep_blank_values=True, max_num_fields=100)
    except ValueError:
        raise RequestError(400, "not_a_form", "Body is not a URL-encoded form") from None
    return {name: values[0] for name, values in fields.items()}


def number_in(
    form: dict[str, str], name: str, default: float, maximum: float, integer: bool = False
) -> float:
    """A number from 0 to `maximum` in a form."""
    try:
        value = float(form.get(name, default))
    except ValueError:
        value = -1.0
    if not 0 <= value <= maximum or (integer and value != int(value)):
        kind = "an integer" if integer else "a number"
        raise RequestError(400, "wrong_values", f"{name} must be {kind} from 0 to {maximum:g}")
    return value
