"""A fitted model in a few lines, as shown in notebooks."""

from __future__ import annotations

from html import escape

from treetop.model.ensemble import EnsembleModel
from treetop.model.model import Model
from treetop.model.predictor import Predictor
from treetop.runtime.tables import html_table, readable_bytes


def weight_bytes(model: Predictor) -> int:
    """Count the bytes of a model's ranker weights in memory."""
    if isinstance(model, EnsembleModel):
        return sum(map(weight_bytes, model.members))
    assert isinstance(model, Model)
    return sum(array.nbytes for ranker in model.rankers for array in ranker.weights.arrays.values())


def summary(model: Predictor) -> list[tuple[str, str]]:
    """List what a model was trained on and how large it is, as pairs of name and value."""
    documents = f"{model.train_documents:,}" if model.train_documents else "unknown (imported model)"
    facts = [("training documents", documents), ("labels", f"{len(model.classes):,}")]
    if isinstance(model, Model):
        shapes = dict.fromkeys(str(ranker.tree) for ranker in model.rankers)
        flat = list(shapes) == [str(len(model.classes))]
        trees = "flat" if flat else ", ".join(shapes)
        facts.append(("label trees", f"{len(model.rankers)} ({trees})"))
        sparse, dense = model.widths
        encoder = f" + {dense:,} from the encoder" if dense else ""
        facts.append(("features", f"{sparse:,}{encoder}"))
    confidence = "calibrated probabilities" if model.calibrated else "not calibrated"
    return [*facts, ("confidence", confidence), ("weights", readable_bytes(weight_bytes(model)))]


def html_card(title: str, model: Predictor | None, settings: str) -> str:
    """Render an estimator as a compact card.

    Parameters
    ----------
    title : str
        Name of its class.
    model : Predictor, optional
        The fitted model; None before `fit`.
    settings : str
        The estimator as `repr` shows it.
    """
    state = "not fitted" if model is None else "fitted"
    facts = "" if model is None else html_table(summary(model), numbers=False)
    return (
        '<div style="border: 1px solid currentColor; border-radius: 4px; display: inline-block; '
        'padding: 0.5em 1em; max-width: 60em">'
        f"<strong>{escape(title)}</strong> <em>({state})</em>"
        f'<pre style="margin: 0.5em 0; white-space: pre-wrap">{escape(settings)}</pre>{facts}</div>'
    )
