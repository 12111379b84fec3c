"""What the commands predict and evaluate do."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import treetop
from treetop import metrics
from treetop.base import FittedMixin
from treetop.cli import screen
from treetop.cli.options import EvaluateOptions
from treetop.data import Split, open_data
from treetop.data.files import lines_of
from treetop.errors import TreetopError
from treetop.features.words.tokens import blocks_of_text
from treetop.labels.alignment import align
from treetop.model import layout as store
from treetop.model.card import card
from treetop.runtime.files import replacing_file


def predict_file(
    model: Path, file: str, *, k: int, output: Path | None, form: str, beam: int | None
) -> None:
    """Predict line by line, in a stream."""
    if form not in ("jsonl", "tsv"):
        raise TreetopError(f"unknown format {form!r}: choose jsonl or tsv")
    estimator = treetop.load(str(model))
    with nullcontext(sys.stdout) if output is None else replacing_file(output) as out:
        for block in blocks_of_text(texts_from(file)):
            for prediction in estimator.predict(block, k, beam=beam):
                out.write(as_line(prediction, form) + "\n")


def explain_text(
    model: Path, text: str, *, labels: list[str] | None, k: int, words: int, as_json: bool
) -> None:
    """Print why a text gets its labels."""
    if text == "-":
        text = "\n".join(texts_from("-"))
    made = treetop.load(str(model)).explain(text, labels, k=k, words=words)
    if as_json:
        print(json.dumps([one.to_dict() for one in made], indent=2, ensure_ascii=False))
    else:
        print("\n\n".join(map(str, made)))


def as_line(prediction: list[tuple[str, float]], form: str) -> str:
    """A prediction as JSON, or as names and scores separated by tabs."""
    if form == "tsv":
        return "\t".join(f"{name}\t{score:.6g}" for name, score in prediction)
    records = [{"label": name, "score": round(score, 6)} for name, score in prediction]
    return json.dumps({"labels": records}, ensure_ascii=False)


def texts_from(file: str) -> Iterator[str]:
    """Lines of a file, or of standard input."""
    if file != "-":
        path = Path(file)
        if not path.is_file():
            raise TreetopError(f"{path}: no such file")
        yield from lines_of(path)
        return
    for number, line in enumerate(sys.stdin.buffer, start=1):
        try:
            yield line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            raise TreetopError(f"standard input:{number}: not UTF-8") from None


def evaluate_model(options: EvaluateOptions) -> None:
    """Measure a model on a split and print the figures; `keep` notes them in the model folder."""
    metrics.propensity_constants(options.propensity)
    estimator = treetop.load(str(options.model))
    dataset = open_data(options.data, options.text_column, options.labels_column)
    name = options.split
    if name == "test" and "test" not in dataset.splits and "train" in dataset.splits:
        name = "train"
        print("treetop: the data has no split test: measured on train", file=sys.stderr)
    split = dataset.split(name)
    result = evaluate_split(
        estimator,
        split,
        dataset.label_names,
        propensity=options.propensity,
        threshold=options.threshold,
    )
    if options.keep:
        where = f"{options.data.name}, {name}: {len(split):,} documents."
        store.keep_measures(options.model, {"measured_on": where, **result}, card)
    if options.json:
        print(json.dumps(result, indent=2))
    else:
        screen.print_measures(result)


def evaluate_split(
    estimator: FittedMixin,
    split: Split,
    names: list[str] | None,
    k: tuple[int, ...] = (1, 3, 5, 10),
    **options: Any,
) -> dict[str, Any]:
    """Every measure of an estimator on a split; labels unknown to it count as missed."""
    labels = split.named_labels(names)
    if split.excluded is None:
        scores = estimator.predict_scores(split.documents, max(k))
    else:
        most = int(np.diff(split.excluded.indptr).max(initial=0))
        scores = estimator.predict_scores(split.documents, max(k) + most)
        excluded = Split(None, None, None, split.excluded).named_labels(names)
        labels, scores = without_excluded(labels, scores, excluded, estimator.classes_)
    return metrics.evaluate(labels, scores, k, **metrics.known_labels(estimator), **options)


def without_excluded(
    labels: list[list[str]], scores: sp.csr_matrix, excluded: list[list[str]], classes: np.ndarray
) -> tuple[list[list[str]], sp.csr_matrix]:
    """Labels and scores without the pairs that do not count (LF sets: a page and its own title)."""
    pairs = zip(labels, map(set, excluded), strict=True)
    labels = [[name for name in line if name not in out] for line, out in pairs]
    kept = sp.csr_matrix(scores - scores.multiply(align(excluded, classes, unseen=False)))
    kept.eliminate_zeros()
    return labels, kept
