"""The model card: README.md of a model folder, and the model's page on the Hub."""

from __future__ import annotations

from typing import Any

from treetop import metrics
from treetop.evaluation.result import interval_texts

METADATA = """---
library_name: treetop
pipeline_tag: text-classification
tags:
- extreme-multi-label-classification
- multi-label
- {tag}
---
"""
USE = """
## Use

```python
import treetop

model = treetop.load("path/to/this/folder")  # or treetop.from_pretrained("name/on-the-hub")
{call}
```
"""
# How to predict with models that take texts, features, or texts with features.
CALLS = {
    (True, False): 'model.predict(["a text"], k=5)',
    (False, True): "model.predict(X, k=5)  # a sparse matrix of the features it was trained on",
    (True, True): 'model.predict(["a text"], features=X, k=5)  # the features it was trained on',
}
LIMITS = """
## Limits

The model predicts only labels that occur in its training data. {scores}
Labels with few training documents are predicted less reliably: see the metrics by label frequency, if
this card has them.
"""


def card(facts: dict[str, Any]) -> str:
    """Write the model card from the content of config.json."""
    about = about_ensemble(facts) if facts["model"] == "ensemble" else about_model(facts)
    metadata = METADATA.format(tag=facts["model"])
    takes = (facts.get("reads_texts", True), facts.get("needs_features", False))
    use = USE.format(call=CALLS[takes])
    return (
        metadata
        + about
        + use
        + metrics_section(facts)
        + settings_section(facts)
        + LIMITS.format(scores=scores_text(facts))
    )


def about_model(facts: dict[str, Any]) -> str:
    """Describe a model and the data it was trained on."""
    documents = facts["train_documents"]
    origin = f"trained on {documents:,} documents" if documents else "imported"
    text = f"""# A treetop model

{facts["model"]}, {origin}, {facts["labels"]:,} labels.
Label trees: {", ".join(facts["trees"])}.
"""
    if decided := facts.get("competition"):
        text += f"\nChosen by a competition on a part of the training data: {decided}.\n"
    data = facts.get("data")
    if data and facts["train_documents"]:
        # Older folders use the second name.
        labels_per_document = data.get("labels_per_document", data.get("labels_a_document", 0.0))
        text += f"""
## Data

| | |
| --- | --- |
| documents | {facts["train_documents"]:,} |
| labels | {facts["labels"]:,} |
| labels per document, mean | {labels_per_document:.2f} |
| labels with a single document | {data["labels_of_one"]:,} |
| documents of the most frequent label | {data["most_frequent"]:,} |
"""
    return text


def about_ensemble(facts: dict[str, Any]) -> str:
    """Describe the members of an ensemble and how they are combined."""
    listed = "".join(f"- `member-{n}`: {kind}\n" for n, kind in enumerate(facts["members"]))
    return f"""# A treetop ensemble

{len(facts["members"])} models over {facts["labels"]:,} labels. Their scores are combined
by {facts["combine"]}.

{listed}"""


def scores_text(facts: dict[str, Any]) -> str:
    """What scores mean, and from which probability on labels are right as often as promised."""
    thresholds = facts.get("thresholds")
    if thresholds is None:
        return "Scores rank labels; they are not\ncalibrated probabilities."
    share, least = (thresholds[f"{name} at precision 0.95"] for name in ("share", "threshold"))
    return (
        "Scores rank labels; `predict_proba` gives\nprobabilities, calibrated on held-out training "
        f"documents. At 95% precision, {share:.0%} of the labels\ncan be assigned automatically "
        f"(`precision=0.95`: those with a probability of at least {least:.2f})."
        if share
        else "Scores rank labels; `predict_proba` gives\nprobabilities, calibrated on held-out "
        "training documents. No label reaches 95% precision."
    )


def metrics_section(facts: dict[str, Any]) -> str:
    """Write the saved metrics as tables; nothing if there are none."""
    figures = metrics.figures(facts["metrics"])
    if not figures:
        return ""
    where = facts["metrics"].get("measured_on", "")
    intervals = interval_texts(facts["metrics"])
    text = f"\n## Metrics, in percent\n\n{where}\n\n"
    text += f"| metric | value |{' 95% interval |' if intervals else ''}\n"
    text += f"| --- | --- |{' --- |' if intervals else ''}\n"
    for name, figure in figures.items():
        text += f"| {name} | {figure} |" + (f" {intervals.get(name, '')} |" if intervals else "") + "\n"
    buckets = facts["metrics"].get("by_frequency")
    if not buckets:
        return text
    text += "\n| training documents per label | labels | recall | precision |\n"
    text += "| --- | --- | --- | --- |\n"
    for name, row in buckets.items():
        shares = " | ".join(f"{100 * row[metric]:.2f}" for metric in ("recall", "precision"))
        text += f"| {name} | {row['labels']:,} | {shares} |\n"
    return text


def settings_section(facts: dict[str, Any]) -> str:
    """List all settings; nothing for an ensemble, which has none of its own."""
    listed = "".join(f"- `{name}`: {value}\n" for name, value in facts.get("settings", {}).items())
    return f"\n## Settings\n\n{listed}" if listed else ""
