"""A backend for Annif 1.4 and later: ``backend=treetop`` in a project's configuration.

Annif has a fixed list of backends. The command ``treetop-annif`` is ``annif`` with this backend added;
``treetop.interop.annif:create_app`` does the same for its web application (``FLASK_APP``, gunicorn).

    [yso-en]
    name=YSO, English
    language=en
    backend=treetop
    vocab=yso
    limit=10
    model=xr-linear

Every setting of the model can be set in the project, such as ``beam=20``, and so can ``preset=fast``.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import annif.backend
from annif.backend.backend import AnnifBackend
from annif.exception import ConfigurationException, NotInitializedException, NotSupportedException
from annif.suggestion import SubjectSuggestion, SuggestionBatch

from treetop.errors import TreetopError
from treetop.estimators import KINDS, load
from treetop.settings import presets
from treetop.settings.making import PARAMETERS, check_parameters
from treetop.settings.notation import parse_assignment

MODEL = "treetop-model"
CORPUS = "treetop-train.jsonl.gz"  # read again by ``annif train --cached``


class TreetopBackend(AnnifBackend):  # type: ignore[misc]
    """XR-Linear and XR-Transformer as an Annif backend."""

    name = "treetop"
    DEFAULT_PARAMETERS = {"limit": 100, "model": "xr-linear"}
    _model: Any = None

    def initialize(self, parallel: bool = False) -> None:
        """Load the trained model, whose memory-mapped weights are shared between processes."""
        if self._model is not None:
            return
        folder = Path(self.datadir) / MODEL
        if not folder.is_dir():
            raise NotInitializedException(f"model {folder} not found", backend_id=self.backend_id)
        self._model = load(folder)

    def _train(self, corpus: Any, params: dict[str, Any], jobs: int = 0) -> None:
        estimator = self.estimator(params, jobs)
        if corpus == "cached":
            self.info("Reusing cached training data from previous run.")
        else:
            if corpus.is_empty():
                raise NotSupportedException("Cannot train treetop project with no documents")
            self.write_corpus(corpus)
        texts, labels = [], []
        for text, uris in self.read_corpus():
            texts.append(text)
            labels.append(uris)
        self.info(f"training {estimator.kind} on {len(texts):,} documents")
        estimator.fit(texts, labels)
        estimator.save(Path(self.datadir) / MODEL)
        self._model = estimator

    def estimator(self, params: dict[str, Any], jobs: int) -> Any:
        """An unfitted estimator with the project's parameters."""
        kind = str(params["model"])
        try:
            if kind not in KINDS:
                raise TreetopError(f"model is {kind!r}: choose xr-linear or xr-transformer")
            known = PARAMETERS[kind].defaults
            chosen = presets.settings_of(params["preset"], kind) if "preset" in params else {}
            for name, value in params.items():
                if name in known:
                    chosen |= dict([parse_assignment(f"{name}={value}")])
            if jobs:
                chosen["threads"] = jobs
            check_parameters(kind, chosen)
            return KINDS[kind](**chosen)
        except TreetopError as error:
            raise ConfigurationException(str(error), backend_id=self.backend_id) from None

    def write_corpus(self, corpus: Any) -> None:
        """Save texts with the URIs of their subjects, leaving out documents that lack either."""
        Path(self.datadir).mkdir(parents=True, exist_ok=True)
        with gzip.open(Path(self.datadir) / CORPUS, "wt", encoding="utf-8") as file:
            for document in corpus.documents:
                uris = [self.project.subjects[number].uri for number in document.subject_set]
                if uris and document.text.strip():
                    file.write(json.dumps([document.text, uris], ensure_ascii=False) + "\n")

    def read_corpus(self) -> Iterator[list[Any]]:
        """Yield text and URIs of the documents that `write_corpus` saved."""
        path = Path(self.datadir) / CORPUS
        if not path.is_file():
            raise NotInitializedException(f"{path} not found", backend_id=self.backend_id)
        with gzip.open(path, "rt", encoding="utf-8") as file:
            yield from map(json.loads, file)

    def _suggest_batch(self, documents: list[Any], params: dict[str, Any]) -> Any:
        limit = int(params["limit"])
        texts = [document.text for document in documents]
        beam = int(params["beam"]) if "beam" in params else None
        predictions = self._model.predict(texts, limit, beam=beam)
        subjects = self.project.subjects
        rows = [
            [
                SubjectSuggestion(subject_id=number, score=score)
                for uri, score in prediction
                if text.strip() and (number := subjects.by_uri(uri, warnings=False)) is not None
            ]
            for text, prediction in zip(texts, predictions, strict=True)
        ]
        return SuggestionBatch.from_sequence(rows, subjects, limit=limit)


def register_backend() -> None:
    """Add the backend to Annif's list."""
    annif.backend._backend_fns["treetop"] = lambda: TreetopBackend


def create_app(*arguments: Any, **options: Any) -> Any:
    """Annif's web application with the backend added."""
    register_backend()
    return annif.create_app(*arguments, **options)


def main() -> None:
    """Annif's command with the backend added."""
    register_backend()
    from annif.cli import cli

    cli()


register_backend()
