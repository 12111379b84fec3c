"""What the command ``explain`` does."""

from __future__ import annotations

import difflib
import json
from itertools import islice
from pathlib import Path

import numpy as np

import treetop
from treetop.cli.console import Console
from treetop.cli.documents import STDIN, lines_from, note_terminal
from treetop.cli.paths import check_model
from treetop.data.npz import load_matrix
from treetop.errors import TreetopError


def explain_text(
    model: Path,
    text: str,
    *,
    labels: list[str] | None,
    k: int,
    words: int,
    as_json: bool,
    features: Path | None = None,
    console: Console | None = None,
) -> None:
    """Print why a text gets its labels."""
    check_model(model)
    note_terminal(text, console or Console())
    if text == STDIN:
        text = "\n".join(lines_from(STDIN))
    estimator = treetop.load(str(model))
    check_known(labels or [], estimator.classes_)
    ready = None if features is None else load_matrix(features)
    explanations = estimator.explain(text, labels, features=ready, k=k, words=words)
    if as_json:
        records = [explanation.to_dict() for explanation in explanations]
        print(json.dumps(records, indent=2, ensure_ascii=False))
    else:
        print("\n\n".join(map(str, explanations)))


def check_known(labels: list[str], classes: np.ndarray) -> None:
    """Raise a `TreetopError` for the first label that the model does not have, with a similar one."""
    known = {str(name) for name in classes}
    for label in labels:
        if label not in known:
            # Comparing with all of millions of names would take minutes.
            initial = label[:1].lower()
            candidates = islice((name for name in known if name[:1].lower() == initial), 20_000)
            near = difflib.get_close_matches(label, candidates, 1, 0.6)
            hint = f"did you mean {near[0]!r}?" if near else "write it as in the training data"
            raise TreetopError(f"label {label!r} is not known to the model: {hint}")
