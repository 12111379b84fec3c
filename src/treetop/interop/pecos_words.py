"""Read the TF-IDF vectorizer that PECOS saved in a folder."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from treetop.errors import TreetopError
from treetop.features.words.pecos import PecosWords
from treetop.interop.pecos_ranker import read_json, section

WORD = 10  # token type
SUPPORTED = {"binary": False, "sublinear_tf": False, "use_idf": True, "norm_p": "l2"}


def read_words(folder: Path) -> PecosWords:
    """Read a vectorizer with PECOS's default settings; others are an error."""
    base = folder / "0.base"
    config = base / "vectorizer" / "config.json"
    settings = section(config, read_json(config), "kwargs")
    token_type = read_json(base / "tokenizer" / "config.json").get("token_type")
    as_default = all(settings.get(name) == value for name, value in SUPPORTED.items())
    if (folder / "1.base").exists() or token_type != WORD or not as_default:
        raise TreetopError(
            f"{folder}: only PECOS's default TF-IDF of words can be imported: predict from features"
        )
    tokens: dict[int, str] = {}
    vocabulary = base / "tokenizer" / "vocab.txt"
    for number, line in numbered(vocabulary):
        token_number, tab, token = line.partition("\t")
        if not tab or not token_number.isdecimal():
            raise TreetopError(f"{vocabulary}:{number}: expected a number, a tab and a token")
        tokens[int(token_number)] = token
    path = base / "vectorizer" / "tfidf-model.txt"
    features: dict[int, tuple[float, list[int]]] = {}
    for number, line in numbered(path):
        try:
            feature, idf, size, spelled = line.split("\t")
            ids = list(map(int, spelled.split()))
            features[int(feature)] = (float(idf), ids)
            known = all(0 <= number < len(tokens) for number in ids)
            if not known or not ids or len(ids) != int(size) or not math.isfinite(float(idf)):
                raise ValueError(line)
        except ValueError:
            raise TreetopError(f"{path}:{number}: not a line of a PECOS TF-IDF model") from None
    if sorted(tokens) != list(range(len(tokens))) or sorted(features) != list(range(len(features))):
        raise TreetopError(f"{folder}: words or features are not numbered consecutively from 0")
    grams = [features[number][1] for number in range(len(features))]
    return PecosWords(
        [tokens[number] for number in range(len(tokens))],
        np.array([features[number][0] for number in range(len(features))]),
        np.array([len(gram) for gram in grams], np.int64),
        np.array([token for gram in grams for token in gram], np.int64),
    )


def numbered(path: Path) -> list[tuple[int, str]]:
    """Lines with their line numbers, without the first one, which holds a count."""
    try:
        lines = path.read_bytes().decode("utf-8", "replace").split("\n")
    except OSError:
        raise TreetopError(f"{path}: missing") from None
    return [(number, line) for number, line in enumerate(lines[1:], start=2) if line]
