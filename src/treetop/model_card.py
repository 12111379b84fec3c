"""The README.md that a model folder carries."""

from __future__ import annotations

from typing import Any


def model_card(facts: dict[str, Any]) -> str:
    """What the model is, how it was made, how well it does, how to use it."""
    settings = facts["settings"]
    listed = "".join(f"- `{name}`: {value}\n" for name, value in settings.items())
    return f"""# A treetop model

{facts["model"]}, trained on {facts["train_documents"]:,} documents with {facts["labels"]:,} labels.
Label trees: {", ".join(facts["trees"])}.

```python
import treetop

model = treetop.load("path/to/this/folder")
model.predict(["a text"], k=5)
```
{measured(facts)}
## Settings

{listed}
## Limits

The model only knows labels it has seen in training. Scores order labels; they are not calibrated
probabilities.
"""


def ensemble_card(facts: dict[str, Any]) -> str:
    """What the ensemble is made of and how to use it."""
    listed = "".join(f"- `member-{n}`: {kind}\n" for n, kind in enumerate(facts["members"]))
    return f"""# A treetop ensemble

{len(facts["members"])} models over {facts["labels"]:,} labels, combined by {facts["combine"]}.

{listed}
```python
import treetop

model = treetop.load("path/to/this/folder")
model.predict(["a text"], k=5)
```
{measured(facts)}"""


def measured(facts: dict[str, Any]) -> str:
    """The measures as a section of their own, or nothing."""
    figures = {name: v for name, v in facts["metrics"].items() if isinstance(v, float)}
    rows = "".join(f"| {name} | {100 * value:.2f} |\n" for name, value in figures.items())
    return f"\n## Measured, in per cent\n\n| measure | value |\n| --- | --- |\n{rows}" if rows else ""
