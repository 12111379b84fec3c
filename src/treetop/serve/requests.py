"""Bodies of requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from treetop.labels.types import unfit_reason
from treetop.serve.errors import MAX_ALLOWED, MAX_LABELS, RequestError


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates by question marks: JSON can contain them, UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def require_number(value: object) -> Any:
    """Reject strings and booleans; JSON's 3.0 is a valid integer."""
    if isinstance(value, str | bool):
        raise ValueError("Input should be a valid integer")
    return value


def check_label(name: str) -> str:
    """Reject names that `treetop train` would not take as labels."""
    if (reason := unfit_reason(name)) or "\r" in name:
        raise ValueError(f"label {name!r} {reason or 'contains a line break: replace it by a space'}")
    return name


Text = Annotated[str, AfterValidator(replace_surrogates)]
Count = Annotated[int, Field(ge=1, le=MAX_LABELS), BeforeValidator(require_number)]
WordCount = Annotated[
    int,
    Field(ge=0, le=100, description="Maximum number of words per explanation."),
    BeforeValidator(require_number),
]
Texts = Annotated[list[Text], Field(min_length=1)]
LabelName = Annotated[
    str,
    AfterValidator(check_label),
    Field(json_schema_extra={"pattern": r"^[^\r\n]*[^\r\n\t\f\v ][^\r\n]*$"}),
]
Names = Annotated[list[str], Field(min_length=1, max_length=MAX_ALLOWED)]
Number = Annotated[float, Field(allow_inf_nan=False, strict=True)]


class RequestModel(BaseModel):
    """A request body; unknown fields are errors."""

    model_config = ConfigDict(extra="forbid")


Index = Annotated[int, Field(ge=0, lt=2**31), BeforeValidator(require_number)]


class SparseRow(RequestModel):
    """The features of a document that are not 0."""

    indices: Annotated[list[Index], Field(max_length=1_000_000)]
    values: Annotated[list[Number], Field(max_length=1_000_000)]


FeatureRow = Annotated[list[Number], Field(max_length=1_000_000)] | SparseRow


@dataclass(frozen=True)
class TextWithRow:
    """A text and its precomputed features."""

    text: str
    features: list[float] | SparseRow


Document = str | list[float] | SparseRow | TextWithRow

# Default of fields that may be omitted but must not be null.
OMITTED: Any = None


def without_null(schema: dict[str, Any]) -> None:
    """Remove the default null of fields that must not be null."""
    for field in schema["properties"].values():
        if field.get("default", 0) is None:
            del field["default"]


def describe_explain_request(schema: dict[str, Any]) -> None:
    """Add what pydantic cannot express: a text, features or both."""
    without_null(schema)
    schema["anyOf"] = [{"required": ["text"]}, {"required": ["features"]}]


def describe_predict_request(schema: dict[str, Any]) -> None:
    """Add what pydantic cannot express: which kinds of documents go together, and no field is null."""
    without_null(schema)
    schema["anyOf"] = [{"required": [field]} for field in ("text", "texts", "features")]
    schema["not"] = {"required": ["text", "texts"]}
    schema["examples"] = [
        {"text": "A recipe for apple pie with cinnamon", "k": 3},
        {"texts": ["first text", "second text"], "k": 5, "threshold": 0.1},
    ]


class PredictRequest(RequestModel):
    """One or several texts, and how many labels to return for each."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=describe_predict_request)
    text: Annotated[Text, Field(description="The text to label.")] = OMITTED
    texts: Annotated[Texts, Field(description="Several texts, instead of `text`.")] = OMITTED
    features: Annotated[
        list[FeatureRow],
        Field(
            min_length=1,
            description="Rows of features, for a model that was trained on a matrix; with texts, a row "
            "per text, for a model that was trained on both.",
        ),
    ] = OMITTED
    k: Annotated[Count, Field(description="Maximum number of labels per text.")] = 5
    threshold: Annotated[Number, Field(description="Minimum score of a label.")] = OMITTED
    probability: Annotated[Number, Field(ge=0, le=1, description="Minimum probability of a label.")] = (
        OMITTED
    )
    precision: Annotated[
        Number,
        Field(
            gt=0,
            lt=1,
            description="Return only labels that are right in this share of the cases, such as 0.95.",
        ),
    ] = OMITTED
    allow: Annotated[Names, Field(description="Return only labels from this list.")] = OMITTED
    explain: Annotated[bool, Field(strict=True, description="Explain each label.")] = False
    words: WordCount = 20

    @model_validator(mode="after")
    def require_documents(self) -> PredictRequest:
        """Raise unless there are texts, features or both."""
        both = self.text is not None and self.texts is not None
        if both or all(field is None for field in (self.text, self.texts, self.features)):
            raise ValueError("give either text or texts, or features, or texts with features")
        return self

    @property
    def given_texts(self) -> list[str]:
        """The texts; none if there are features alone."""
        return [self.text] if self.text is not None else list(self.texts or ())

    @property
    def documents(self) -> list[Document]:
        """The texts, the rows of features, or texts with their rows; 409 unless one row per text."""
        texts = self.given_texts
        if self.features is None:
            return list(texts)
        if not texts:
            return list(self.features)
        if len(texts) != len(self.features):
            message = (
                f"{len(texts)} texts, but {len(self.features)} rows of features: give one per text"
            )
            raise RequestError(409, "wrong_input", message)
        return [TextWithRow(text, row) for text, row in zip(texts, self.features, strict=True)]


class ExplainRequest(RequestModel):
    """A text, a row of features, or a text with its features; and the labels to explain for it."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=describe_explain_request)
    text: Text = OMITTED
    features: Annotated[
        FeatureRow, Field(description="Instead of `text`, or with it, as the model takes them.")
    ] = OMITTED
    labels: Annotated[
        list[str], Field(min_length=1, max_length=20, description="Labels, predicted or not.")
    ]
    words: WordCount = 20

    @model_validator(mode="after")
    def require_document(self) -> ExplainRequest:
        """Raise unless `text` or `features` is present."""
        if self.text is None and self.features is None:
            raise ValueError("give text or features")
        return self

    @property
    def document(self) -> Document:
        """The text, the row of features, or both."""
        if self.features is None:
            return self.text
        return self.features if self.text is None else TextWithRow(self.text, self.features)


class FeedbackRequest(RequestModel):
    """The labels that a person accepted and rejected for a text."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"text": "A recipe", "labels": ["baking"], "rejected": ["grilling"]}]
        },
    )
    text: Annotated[Text, Field(min_length=1)]
    labels: Annotated[list[LabelName], Field(max_length=1000, description="Correct labels.")]
    rejected: Annotated[
        list[LabelName], Field(max_length=1000, description="Suggested labels that are incorrect.")
    ] = []
