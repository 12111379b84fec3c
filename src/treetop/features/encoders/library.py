"""The transformers library: without its messages, and with its errors as one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import transformers
from safetensors import SafetensorError
from transformers import AutoTokenizer

from treetop.errors import TreetopError
from treetop.features.encoders.hub import short_reason
from treetop.features.encoders.subwords import check_template

# With `trust_remote_code` unset, the library would ask on the terminal whether to run code.
LOCAL: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
# Pickled weights may run code when they are opened.
WEIGHTS: dict[str, Any] = {**LOCAL, "use_safetensors": True}


@contextmanager
def quiet() -> Iterator[None]:
    """Without messages and progress bars of the transformers library."""
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
def explaining(name: str, folder: Path) -> Iterator[None]:
    """Quiet, with errors of the transformers library as one line about the encoder `name`."""
    try:
        with quiet():
            yield
    except (OSError, ValueError, KeyError, ImportError, SafetensorError) as error:
        if brings_code(folder):
            raise TreetopError(
                f"encoder {name!r} requires code from its repository, which treetop never runs: "
                "choose one that the transformers library contains"
            ) from None
        raise TreetopError(
            f"encoder {name!r}: cannot be read from this folder: {folder} ({short_reason(error)})"
        ) from None


def brings_code(folder: Path) -> bool:
    """Whether the configuration in a folder names Python code of its own repository."""
    config = folder / "config.json"
    return config.is_file() and '"auto_map"' in config.read_text("utf-8")


def load_tokenizer(name: str, folder: Path) -> Any:
    """The tokenizer of an encoder; it has a padding token. `name` is for error messages."""
    with explaining(name, folder):
        tokenizer = AutoTokenizer.from_pretrained(folder, **LOCAL)
    if len(tokenizer) <= len(tokenizer.all_special_tokens):
        raise TreetopError(f"encoder {name!r}: its tokenizer is missing from {folder}")
    check_template(tokenizer, folder)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
    return tokenizer
