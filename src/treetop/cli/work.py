"""What the commands ``predict``, ``explain`` and ``evaluate`` do."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import treetop
from treetop import metrics
from treetop.base import FittedMixin
from treetop.cli.console import Console
from treetop.cli.options import EvaluateOptions, PredictOptions
from treetop.cli.paths import (
    check_model,
    check_model_and_data,
    check_split_has_labels,
    check_text_file,
    read_data,
)
from treetop.data import Split, columnar, open_data, tables
from treetop.data.files import blocks_of, lines_of
from treetop.errors import TreetopError
from treetop.features.words.tokens import blocks_of_text
from treetop.labels.alignment import align
from treetop.model import layout as store
from treetop.model.card import card
from treetop.runtime.files import replacing_file
from treetop.runtime.progress import Reporter

STDIN = "-"
# Predictions are computed and written in blocks of about this many characters.
BLOCK_CHARACTERS = 1 << 20
# Documents per call of `predict_scores` in an evaluation, so that progress can be shown.
CHUNK_DOCUMENTS = 4096


def predict_file(options: PredictOptions, console: Console) -> None:
    """Predict and write block by block, so that a file of any size fits in memory."""
    check_model(options.model)
    if options.file != STDIN:
        check_text_file(Path(options.file))
    texts, blocks = read_texts(options.file, options.text_column)
    # Bars would be drawn between predictions that go to the same terminal.
    shown = console if options.output is not None or not sys.stdout.isatty() else Console(-1)
    with shown.progress() as report:
        report.step("loading model")
        estimator = treetop.load(str(options.model))
        advance = report.step("predicting", blocks)
        count = 0
        file = None if options.output is None else replacing_file(options.output)
        with file or nullcontext(sys.stdout) as out:
            for block in blocks_of_text(texts, BLOCK_CHARACTERS):
                for prediction in estimator.predict(block, options.k, beam=options.beam):
                    out.write(as_line(prediction, options.format) + "\n")
                count += len(block)
                report.figures(f"{count:,} text{'' if count == 1 else 's'}")
                advance()


def read_texts(file: str, text_column: tuple[str, ...]) -> tuple[Iterable[str], int | None]:
    """Texts of a file or of standard input, and about how many blocks they make (None: unknown).

    A table gives its column of texts, any other file its lines.
    """
    path = Path(file)
    if file != STDIN and (tables.matches(path) or columnar.matches(path)):
        texts = open_data(path, text_column).split("train").texts
        assert texts is not None  # tables hold nothing else
        size = sum(len(text) + 16 for text in texts)
        return texts, size // BLOCK_CHARACTERS + 1
    if text_column:
        raise TreetopError(f"{file}: has lines, no columns: leave out --text-column, or give a table")
    if file == STDIN or not path.is_file():
        return texts_from(file), None
    size = sum(len(block) + 15 * block.count(b"\n") for _, block in blocks_of(path))
    return texts_from(file), size // BLOCK_CHARACTERS + 1


def explain_text(
    model: Path, text: str, *, labels: list[str] | None, k: int, words: int, as_json: bool
) -> None:
    """Print why a text gets its labels."""
    check_model(model)
    if text == STDIN:
        text = "\n".join(texts_from(STDIN))
    estimator = treetop.load(str(model))
    check_known(labels or [], estimator.classes_)
    explanations = estimator.explain(text, labels, k=k, words=words)
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


def as_line(prediction: list[tuple[str, float]], form: str) -> str:
    """A prediction as JSON, or as names and scores separated by tabs."""
    if form == "tsv":
        return "\t".join(f"{name}\t{score:.6g}" for name, score in prediction)
    records = [{"label": name, "score": round(score, 6)} for name, score in prediction]
    return json.dumps({"labels": records}, ensure_ascii=False)


def texts_from(file: str) -> Iterator[str]:
    """Lines of a file, or of standard input."""
    if file != STDIN:
        yield from lines_of(Path(file))
        return
    for number, line in enumerate(sys.stdin.buffer, start=1):
        try:
            yield line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            raise TreetopError(
                f"standard input:{number}: not UTF-8: convert it first, as with iconv -t utf-8"
            ) from None


def evaluate_model(options: EvaluateOptions, console: Console | None = None) -> None:
    """Evaluate a model on a split and print the metrics; `keep` saves them in the model folder."""
    console = console or Console()
    metrics.propensity_constants(options.propensity)
    check_model_and_data(options.model, options.data, "evaluate")
    with console.progress() as report:
        report.step("loading model")
        estimator = treetop.load(str(options.model))
        dataset = read_data(options.data, options, report)
        name = options.split
        if name == "test" and "test" not in dataset.splits and "train" in dataset.splits:
            name = "train"
            report.note("the data has no split test: evaluating on train")
        if name not in dataset.splits:
            known = ", ".join(dataset.splits)
            raise TreetopError(f"the data has no split {name}: choose one of {known} with --split")
        split = dataset.splits[name]
        check_split_has_labels(split, "compare predictions with")
        result = evaluate_split(
            estimator,
            split,
            dataset.label_names,
            report=report,
            propensity=options.propensity,
            threshold=options.threshold,
        )
    if options.keep:
        where = f"{options.data.name}, {name}: {len(split):,} documents."
        store.keep_measures(options.model, {"measured_on": where, **result}, card)
    if options.json:
        console.json(result)
    else:
        print(result)


def evaluate_split(
    estimator: FittedMixin,
    split: Split,
    names: list[str] | None,
    k: tuple[int, ...] = (1, 3, 5, 10),
    report: Reporter | None = None,
    threshold: float | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Every metric of an estimator on a split; labels unknown to it count as missed.

    With `threshold`, as many labels are predicted as reach it.
    """
    labels, depth = split.named_labels(names), max(k)
    if split.excluded is not None:
        depth += int(np.diff(split.excluded.indptr).max(initial=0))
    scores = predict_in_chunks(estimator, split, depth, report)
    while threshold is not None and is_cut_off(scores, depth, threshold):
        depth *= 4
        scores = predict_in_chunks(estimator, split, depth, report)
    if split.excluded is not None:
        excluded = Split(None, None, None, split.excluded).named_labels(names)
        labels, scores = without_excluded(labels, scores, excluded, estimator.classes_)
    known = metrics.known_labels(estimator)
    return metrics.evaluate(labels, scores, k, threshold=threshold, **known, **options)


def is_cut_off(scores: sp.csr_matrix, depth: int, threshold: float) -> bool:
    """Whether a document may have labels that reach the threshold beyond its `depth` best."""
    if depth >= scores.shape[1]:
        return False
    counts = np.diff(scores.indptr)
    lowest = np.full(scores.shape[0], np.inf)
    np.minimum.at(lowest, np.repeat(np.arange(scores.shape[0]), counts), scores.data)
    return bool((lowest[counts >= depth] >= threshold).any())


def predict_in_chunks(
    estimator: FittedMixin, split: Split, k: int, report: Reporter | None
) -> sp.csr_matrix:
    """Scores N x L of the documents of a split, with one step of progress per chunk."""
    documents: Any = split.documents
    starts = range(0, max(len(split), 1), CHUNK_DOCUMENTS)
    advance = (report or Reporter()).step("predicting", len(starts))
    chunks = []
    for start in starts:
        chunks.append(estimator.predict_scores(documents[start : start + CHUNK_DOCUMENTS], k))
        advance()
    return chunks[0] if len(chunks) == 1 else sp.csr_matrix(sp.vstack(chunks, "csr"))


def without_excluded(
    labels: list[list[str]], scores: sp.csr_matrix, excluded: list[list[str]], classes: np.ndarray
) -> tuple[list[list[str]], sp.csr_matrix]:
    """Labels and scores without the excluded pairs (in LF data sets, a page and its own title)."""
    pairs = zip(labels, map(set, excluded), strict=True)
    labels = [[name for name in line if name not in out] for line, out in pairs]
    kept = sp.csr_matrix(scores - scores.multiply(align(excluded, classes, unseen=False)))
    kept.eliminate_zeros()
    return labels, kept
