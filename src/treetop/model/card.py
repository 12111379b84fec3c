"""The README.md that a model folder carries: also the model's page on the Hub."""

from __future__ import annotations

from typing import Any

from treetop import metrics

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
model.predict(["a text"], k=5)
```
"""
LIMITS = """
## Limits

The model only knows labels it has seen in training. Scores order labels; they are not calibrated
probabilities. Labels that few training documents have are found less often: see the figures by
frequency, if there are any.
"""


def card(facts: dict[str, Any]) -> str:
    """What the model is, how it was made, how well it does, how to use it."""
    about = about_ensemble(facts) if facts["model"] == "ensemble" else about_model(facts)
    return (
        METADATA.format(tag=facts["model"]) + about + USE + measured(facts) + settings(facts) + LIMITS
    )


def about_model(facts: dict[str, Any]) -> str:
    """The model and the data it was trained on."""
    documents = facts["train_documents"]
    origin = f"trained on {documents:,} documents" if documents else "imported"
    made = f"""# A treetop model

{facts["model"]}, {origin}, {facts["labels"]:,} labels.
Label trees: {", ".join(facts["trees"])}.
"""
    data = facts.get("data")
    if data and facts["train_documents"]:
        # the name of before, in folders that were written then
        labels_per_document = data.get("labels_per_document", data.get("labels_a_document", 0.0))
        made += f"""
## Data

| | |
| --- | --- |
| documents | {facts["train_documents"]:,} |
| labels | {facts["labels"]:,} |
| labels per document, mean | {labels_per_document:.2f} |
| labels of one document | {data["labels_of_one"]:,} |
| documents of the most frequent label | {data["most_frequent"]:,} |
"""
    return made


def about_ensemble(facts: dict[str, Any]) -> str:
    """The members and how they are combined."""
    listed = "".join(f"- `member-{n}`: {kind}\n" for n, kind in enumerate(facts["members"]))
    return f"""# A treetop ensemble

{len(facts["members"])} models over {facts["labels"]:,} labels, combined by {facts["combine"]}.

{listed}"""


def measured(facts: dict[str, Any]) -> str:
    """The measures as a section of their own, or nothing."""
    figures = metrics.figures(facts["metrics"])
    if not figures:
        return ""
    where = facts["metrics"].get("measured_on", "")
    made = f"\n## Measured, in per cent\n\n{where}\n\n| measure | value |\n| --- | --- |\n"
    made += "".join(f"| {name} | {figure} |\n" for name, figure in figures.items())
    buckets = facts["metrics"].get("by_frequency")
    if not buckets:
        return made
    made += "\n| labels with so many training documents | labels | recall | precision |\n"
    made += "| --- | --- | --- | --- |\n"
    for name, row in buckets.items():
        shares = " | ".join(f"{100 * row[what]:.2f}" for what in ("recall", "precision"))
        made += f"| {name} | {row['labels']:,} | {shares} |\n"
    return made


def settings(facts: dict[str, Any]) -> str:
    """All settings, where the model has them."""
    listed = "".join(f"- `{name}`: {value}\n" for name, value in facts.get("settings", {}).items())
    return f"\n## Settings\n\n{listed}" if listed else ""
