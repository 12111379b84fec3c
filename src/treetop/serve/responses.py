"""Bodies of responses."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field


class ExplainedWord(BaseModel):
    """A word or n-gram of the text."""

    name: str
    value: Annotated[float, Field(description="Contribution to the raw score.")]
    spans: Annotated[
        list[tuple[int, int]], Field(description="Start and end of each occurrence, in code points.")
    ]


class TreeNode(BaseModel):
    """A node of a label tree; its raw score is `words` + `encoder` + `bias`."""

    level: int
    raw: Annotated[float, Field(description="Raw score.")]
    worth: Annotated[float, Field(description="Transformed raw score.")]
    siblings: Annotated[int, Field(description="Number of siblings, including the node itself.")]
    labels: Annotated[list[str], Field(description="Most frequent labels below the node.")]
    words: float
    encoder: float
    bias: float


class TreePath(BaseModel):
    """The path from the root of a tree to the label; a single node without a tree."""

    score: float
    reached: Annotated[bool, Field(description="Whether beam search reaches the label.")]
    nodes: list[TreeNode]
    raw_score: float
    transform: Annotated[str, Field(description="Name of the score transform.")]


class SimilarDocument(BaseModel):
    """A training document that is similar to the text."""

    document: int
    similarity: float
    text: str
    labels: list[str]
    has_label: bool


class LabelExplanation(BaseModel):
    """Why a label has its score.

    The values of `words`, `other_words`, `encoder` and `bias` add up to `raw_score`, from which the
    score transform makes `score`.
    """

    label: str
    score: float
    probability: Annotated[
        float | None, Field(description="Probability that the label is right, of a calibrated model.")
    ] = None
    raw_score: float
    words: list[ExplainedWord]
    other_words: Annotated[float, Field(description="Contribution of all words not listed.")]
    word_sum: Annotated[float, Field(description="Contribution of all words.")]
    encoder: Annotated[float, Field(description="Contribution of the text encoder.")]
    encoder_share: Annotated[
        float, Field(description="The encoder's share of the positive contributions, 0 to 1.")
    ]
    bias: float
    reached: Annotated[bool, Field(description="Whether beam search reaches the label.")]
    paths: Annotated[list[TreePath], Field(description="One path per tree.")]
    neighbours: Annotated[
        list[SimilarDocument], Field(description="Empty unless the model keeps its documents.")
    ]


class ExplainResponse(BaseModel):
    """An explanation per label, in the order of the request."""

    labels: list[LabelExplanation]


class ScoredLabel(BaseModel):
    """A label and its score."""

    label: str
    score: float
    probability: Annotated[
        float | None, Field(description="Probability that the label is right, of a calibrated model.")
    ] = None
    why: Annotated[
        LabelExplanation | None, Field(description="The explanation, if it was requested.")
    ] = None


class TextLabels(BaseModel):
    """The labels of one text, best first."""

    labels: list[ScoredLabel]


class PredictResponse(BaseModel):
    """The labels of each text, in the order of the request."""

    model: str
    results: list[TextLabels]


class LabelMatch(BaseModel):
    """A label and its number of training documents."""

    label: str
    documents: int


class LabelsResponse(BaseModel):
    """Labels whose names match a search, best match first."""

    labels: list[LabelMatch]


class ScoreInfo(BaseModel):
    """What the scores of the model mean."""

    name: str
    minimum: Annotated[float | None, Field(description="Lowest possible score; null if unbounded.")]
    maximum: Annotated[float | None, Field(description="Highest possible score; null if unbounded.")]
    description: str


class ModelInfo(BaseModel):
    """The model that is being served."""

    name: str
    kind: str
    labels: Annotated[int, Field(description="Number of labels.")]
    train_documents: Annotated[int, Field(description="Number of training documents.")]
    encoder: Annotated[bool, Field(description="Whether the model has a text encoder.")]
    features: Annotated[
        int | None, Field(description="Columns of the features it takes; null if it takes none.")
    ]
    texts: Annotated[bool, Field(description="Whether it takes texts; both: texts with features.")]
    feedback: Annotated[bool, Field(description="Whether the server saves feedback.")]
    loaded: Annotated[float, Field(description="When the model was loaded, in Unix time.")]
    scores: ScoreInfo
    calibrated: Annotated[bool, Field(description="Whether labels come with probabilities.")]
    thresholds: Annotated[
        dict[str, float] | None, Field(description="Minimum probabilities, and what they give.")
    ]
    metrics: Annotated[dict[str, Any], Field(description="Metrics saved with the model.")]
    settings: Annotated[dict[str, Any], Field(description="Settings the model was trained with.")]


class ErrorDetail(BaseModel):
    """A stable code for programs and a message for people."""

    code: str
    message: str


class ErrorResponse(BaseModel):
    """The body of every error response."""

    error: ErrorDetail


class DoneResponse(BaseModel):
    """Whether the request had an effect."""

    done: bool = True
