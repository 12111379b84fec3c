"""What the commands predict and evaluate do."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

import treetop
from treetop.cli import screen
from treetop.data import Split, open_data
from treetop.data.files import lines_of
from treetop.errors import TreetopError
from treetop.evaluation import metrics
from treetop.features.words.tokens import blocks_of_text
from treetop.labels.alignment import align
from treetop.model import layout as store
from treetop.model.card import card


def predict_file(
    model: Path, file: str, k: int, output: Path | None, form: str, beam: int | None
) -> None:
    """Predict line by line, in a stream."""
    if form not in ("jsonl", "tsv"):
        raise TreetopError(f"unknown format {form!r}: choose jsonl or tsv")
    estimator = treetop.load(str(model))
    with writing(output) as out:
        for block in blocks_of_text(texts_from(file)):
            for prediction in estimator.predict(block, k, beam=beam):
                out.write(as_line(prediction, form) + "\n")


def explain_text(
    model: Path, text: str, labels: list[str] | None, k: int, words: int, as_json: bool
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


@contextmanager
def writing(output: Path | None) -> Iterator[IO[str]]:
    """Standard output, or a file that appears only when it is complete."""
    if output is None:
        yield sys.stdout
        return
    try:
        handle, name = tempfile.mkstemp(prefix=f".{output.name}.", dir=output.parent or Path())
    except OSError as error:
        raise TreetopError(f"{output}: cannot be written ({error.strerror})") from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            yield out
        Path(name).chmod(0o644)
        Path(name).replace(output)
    except OSError as error:
        raise TreetopError(f"{output}: cannot be written ({error.strerror})") from None
    finally:
        Path(name).unlink(missing_ok=True)


def evaluate_model(
    model: Path,
    data: Path,
    split_name: str,
    as_json: bool,
    propensity: str,
    threshold: float | None,
    text_column: str | None,
    labels_column: str | None,
    keep: bool = False,
) -> None:
    """Measure a model on a split and print the figures; `keep` notes them in the model folder."""
    metrics.propensity_constants(propensity)
    estimator = treetop.load(str(model))
    dataset = open_data(data, text_column, labels_column)
    if split_name == "test" and "test" not in dataset.splits and "train" in dataset.splits:
        split_name = "train"
        print("treetop: the data has no split test: measured on train", file=sys.stderr)
    split = dataset.split(split_name)
    result = measure(estimator, split, dataset.label_names, propensity=propensity, threshold=threshold)
    if keep:
        noted = {"measured_on": f"{Path(data).name}, {split_name}: {len(split):,} documents.", **result}
        store.keep_measures(model, noted, card)
    if as_json:
        print(json.dumps(result, indent=2))
    else:
        screen.print_measures(result)


def measure(
    estimator: Any,
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
    if estimator.train_documents_:  # not known of an imported model
        options["train_counts"] = estimator.train_counts_
        options["train_documents"] = estimator.train_documents_
    return metrics.evaluate(labels, scores, k, classes=estimator.classes_, **options)


def without_excluded(
    labels: list[list[str]], scores: sp.csr_matrix, excluded: list[list[str]], classes: np.ndarray
) -> tuple[list[list[str]], sp.csr_matrix]:
    """Labels and scores without the pairs that do not count (LF sets: a page and its own title)."""
    pairs = zip(labels, map(set, excluded), strict=True)
    labels = [[name for name in line if name not in out] for line, out in pairs]
    kept = sp.csr_matrix(scores - scores.multiply(align(excluded, classes, unseen=False)))
    kept.eliminate_zeros()
    return labels, kept
