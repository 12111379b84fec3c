"""Routes as Annif has them, so that software made for it can ask this server."""

from __future__ import annotations

import json
from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import APIRouter, FastAPI, Path, Query, Request, Response
from pydantic import BaseModel, Field

from treetop.serve.limits import MOST_LABELS, Refused
from treetop.serve.schemas import PredictRequest, Text
from treetop.serve.worker import Worker

Limit = Annotated[int, Query(ge=0, le=MOST_LABELS)]
Least = Annotated[float, Query(ge=0.0, le=1.0)]
Id = Annotated[str, Path(description="The name of the model.")]
MOST = 32
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
                        "limit": {"type": "integer", "minimum": 0, "maximum": MOST_LABELS},
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
    """A batch."""

    documents: Annotated[list[AnnifDocument], Field(max_length=MOST)]


class AnnifSubject(BaseModel):
    """A label, with the names Annif gives it."""

    uri: str
    label: str | None = None


class AnnifExample(BaseModel):
    """A document and its right subjects."""

    text: Annotated[Text, Field(min_length=1)]
    subjects: Annotated[list[AnnifSubject], Field(max_length=1000)]


def add_annif_routes(app: FastAPI, worker: Worker, errors: dict[int | str, Any]) -> None:
    """Projects, suggestions and learning under /v1/projects: one project, the model."""
    router = APIRouter(prefix="/v1/projects", responses=errors, tags=["Annif"])

    @router.get("")
    async def projects() -> dict[str, Any]:
        """The one project."""
        return {"projects": [project_of(worker)]}

    @router.get("/{project_id}")
    async def project(project_id: Id) -> dict[str, Any]:
        """What is known of it."""
        check(worker, project_id)
        return project_of(worker)

    @router.post("/{project_id}/suggest", openapi_extra=FORM)
    async def suggest(project_id: Id, request: Request) -> dict[str, Any]:
        """Labels for one text, sent as a form."""
        check(worker, project_id)
        form = read_form(await request.body())
        if "text" not in form:
            raise Refused(400, "no_text", "the form has no field text")
        limit = number(form, "limit", 10, MOST_LABELS, whole=True)
        least = number(form, "threshold", 0.0, 1.0)
        found = await subjects(worker, [form["text"]], int(limit), least)
        return {"results": found[0]}

    @router.post("/{project_id}/suggest-batch")
    async def suggest_batch(
        project_id: Id,
        batch: AnnifBatch,
        limit: Limit = 10,
        threshold: Least = 0.0,
        language: str = "",
    ) -> list[dict[str, Any]]:
        """Labels for up to 32 texts."""
        check(worker, project_id)
        found = await subjects(worker, [one.text for one in batch.documents], limit, threshold)
        return [
            {"document_id": one.document_id, "results": results}
            for one, results in zip(batch.documents, found, strict=True)
        ]

    @router.post("/{project_id}/learn", status_code=204)
    async def learn(project_id: Id, documents: list[AnnifExample]) -> Response:
        """Keep documents with their right labels, to train on later."""
        check(worker, project_id)
        worker.keep([(one.text, [subject.uri for subject in one.subjects], []) for one in documents])
        return Response(status_code=204)

    app.include_router(router)


async def subjects(worker: Worker, texts: list[str], limit: int, least: float) -> list[list[Any]]:
    """Labels as Annif names their parts."""
    if not texts or limit == 0:
        return [[] for _ in texts]
    found = await worker.predict(
        worker.request(), PredictRequest(texts=texts, k=limit, threshold=least)
    )
    return [
        [
            {"uri": name, "label": name, "notation": None, "score": min(score, 1.0)}
            for name, score in one
        ]
        for one in found
    ]


def project_of(worker: Worker) -> dict[str, Any]:
    """The model as a project."""
    served = worker.served
    return {
        "project_id": served.name,
        "name": served.name,
        "language": "en",
        "is_trained": True,
        "backend": {"backend_id": f"treetop-{served.model.kind}"},
        "modification_time": None,
    }


def check(worker: Worker, project_id: str) -> None:
    """Refuse the name of another project."""
    if project_id != worker.served.name:
        raise Refused(404, "not_found", f"there is no project {json.dumps(project_id)}")


def read_form(body: bytes) -> dict[str, str]:
    """The fields of a form, the first value of each."""
    try:
        fields = parse_qs(body.decode("ascii"), keep_blank_values=True, max_num_fields=100)
    except ValueError:
        raise Refused(400, "not_a_form", "the body is not a form") from None
    return {name: values[0] for name, values in fields.items()}


def number(form: dict[str, str], name: str, default: float, most: float, whole: bool = False) -> float:
    """A number in a form, from 0 to `most`."""
    try:
        value = float(form.get(name, default))
    except ValueError:
        value = -1.0
    if not 0 <= value <= most or (whole and value != int(value)):
        raise Refused(400, "wrong_values", f"{name} must be a number from 0 to {most:g}")
    return value
