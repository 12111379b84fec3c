"""What clients send and get."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from treetop.serve.limits import MOST_ALLOWED, MOST_LABELS


def well_formed(text: str) -> str:
    """Half a character pair, which JSON can hold and UTF-8 cannot, becomes a question mark."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def a_number(value: Any) -> Any:
    """JSON's 3.0 is a whole number, its "3" and its true are none."""
    if isinstance(value, str | bool):
        raise ValueError("Input should be a valid integer")
    return value


Text = Annotated[str, AfterValidator(well_formed)]
Count = Annotated[int, Field(ge=1, le=MOST_LABELS), BeforeValidator(a_number)]
Words = Annotated[int, Field(ge=0, le=100), BeforeValidator(a_number)]
Texts = Annotated[list[Text], Field(min_length=1)]
Names = Annotated[list[str], Field(min_length=1, max_length=MOST_ALLOWED)]
Number = Annotated[float, Field(allow_inf_nan=False, strict=True)]


class RequestModel(BaseModel):
    """What a client sends: unknown names are errors."""

    model_config = ConfigDict(extra="forbid")


# The default of what may be left out but not be null.
ABSENT: Any = None


def describe_predict_request(schema: dict[str, Any]) -> None:
    """What pydantic cannot say: either a text or texts, and nothing may be null."""
    for one in schema["properties"].values():
        if one.get("default", 0) is None:
            del one["default"]
    schema["oneOf"] = [{"required": ["text"]}, {"required": ["texts"]}]
    schema["examples"] = [
        {"text": "A recipe for apple pie with cinnamon", "k": 3},
        {"texts": ["first text", "second text"], "k": 5, "threshold": 0.1},
    ]


class PredictRequest(RequestModel):
    """One text or many, and how many labels."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=describe_predict_request)
    text: Annotated[Text, Field(description="One text.")] = ABSENT
    texts: Annotated[Texts, Field(description="Several texts instead.")] = ABSENT
    k: Annotated[Count, Field(description="Labels per text.")] = 5
    threshold: Annotated[Number, Field(description="Least score.")] = ABSENT
    allow: Annotated[Names, Field(description="The only labels that may be given.")] = ABSENT
    explain: Annotated[bool, Field(strict=True, description="Say why, label by label.")] = False
    words: Words = 20

    @model_validator(mode="after")
    def one_of_both(self) -> PredictRequest:
        """A text or texts."""
        if (self.text is None) == (self.texts is None):
            raise ValueError("give either text or texts")
        return self


class ExplainRequest(RequestModel):
    """A text and labels to explain."""

    text: Text
    labels: Annotated[list[str], Field(min_length=1, max_length=20)]
    words: Words = 20


class FeedbackRequest(RequestModel):
    """What a person decided for a text."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"text": "A recipe", "labels": ["baking"], "rejected": ["grilling"]}]
        },
    )
    text: Annotated[Text, Field(min_length=1)]
    labels: Annotated[list[str], Field(max_length=1000, description="Those that are right.")]
    rejected: Annotated[list[str], Field(max_length=1000, description="Suggested and wrong.")] = []


class ScoredLabel(BaseModel):
    """A label and its score."""

    label: str
    score: float
    why: dict[str, Any] | None = None


class TextLabels(BaseModel):
    """Labels of one text, best first."""

    labels: list[ScoredLabel]


class PredictResponse(BaseModel):
    """Labels of every text, in order."""

    model: str
    results: list[TextLabels]


class LabelMatch(BaseModel):
    """A label and how many training documents have it."""

    label: str
    documents: int


class LabelsResponse(BaseModel):
    """Labels that match a search."""

    labels: list[LabelMatch]


class ModelInfo(BaseModel):
    """What is served."""

    name: str
    kind: str
    labels: int
    train_documents: int
    encoder: bool
    feedback: bool
    loaded: float
    metrics: dict[str, Any]
    settings: dict[str, Any]


class ErrorDetail(BaseModel):
    """Why a request was not answered as asked."""

    code: str
    message: str


class ErrorResponse(BaseModel):
    """The body of every error."""

    error: ErrorDetail


class DoneResponse(BaseModel):
    """A request was carried out."""

    done: bool = True
