"""Encoders in model folders, which may be from a stranger: nothing but their numbers is used.

Libraries that read them follow a configuration, which may ask for code, kernels or memory. It is
checked before they see it, and whatever they raise becomes one line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from treetop.errors import TreetopError
from treetop.features.encoders.hub import WEIGHTS, short_reason
from treetop.runtime.arrays import stored_bytes

CONFIG, TOKENIZER_CONFIG, ADAPTER = "config.json", "tokenizer_config.json", "adapter_config.json"
# Settings of the transformers library that load code, kernels from the Hub, or other weights.
LOADED = ("quantization_config", "transformers_weights", "kernel_config", "use_kernels")
ATTENTION = ("attn_implementation", "_attn_implementation", "experts_implementation")
OWN_ATTENTION = (None, "eager", "sdpa")
MOST_LAYERS, MOST = 200, 2**31
# Numbers that a model may have besides its weights, such as those of positions.
SMALL = 1 << 20
# Bytes per number by type in safetensors files; those of others have one.
BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4}
ONE_AT_A_TIME = Lock()


@contextmanager
def errors_in_one_line(folder: Path) -> Iterator[None]:
    """Turn whatever libraries raise about the encoder in a model folder into a `TreetopError`.

    Libraries written in Rust raise panics, which are no `Exception`.
    """
    try:
        with without_rust_backtraces():
            yield
    except MemoryError:
        raise
    except TreetopError as error:
        raise error if str(folder) in str(error) else TreetopError(f"{folder}: {error}") from None
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        reason = f"{type(error).__name__}: {short_reason(error)}"
        raise TreetopError(
            f"{folder}: the encoder cannot be used ({reason}): copy the model folder again"
        ) from error


@contextmanager
def without_rust_backtraces() -> Iterator[None]:
    """Without a backtrace on stderr for each panic, which `RUST_BACKTRACE` asks for.

    It reads the symbols of all libraries, torch among them, for seconds. If memory runs out meanwhile,
    the thread waits for a lock that it holds itself. Rust reads the variable once, at the first panic.
    """
    with ONE_AT_A_TIME:
        asked = os.environ.get("RUST_BACKTRACE")
        if asked is not None:
            os.environ["RUST_BACKTRACE"] = "0"
    try:
        yield
    finally:
        with ONE_AT_A_TIME:
            if asked is not None:
                os.environ["RUST_BACKTRACE"] = asked


def check_encoder(folder: Path) -> None:
    """Raise unless an encoder of the transformers library consists of plain weights and of sizes.

    What the library would load beyond that is refused: pickled weights, adapters, other files, and
    kernels from the Hub. It is told not to run code.
    """
    if not weight_files(folder):
        raise TreetopError(
            f"{folder}: no weights in safetensors files here; pickled ones (pytorch_model.bin) are "
            "never opened, because they may run code"
        )
    if (folder / ADAPTER).is_file():
        raise TreetopError(f"{folder}: holds an adapter of another encoder, which is never loaded")
    for file in (CONFIG, TOKENIZER_CONFIG):
        if file == CONFIG or (folder / file).is_file():
            check_settings(folder / file)


def check_settings(path: Path) -> None:
    """Raise if a configuration asks for code or kernels, or for more than any encoder has."""
    for name, value in settings_in(json_at(path)):
        if (name in LOADED and value) or (name in ATTENTION and value not in OWN_ATTENTION):
            raise TreetopError(f"{path}: {name} is set, but treetop loads nothing from elsewhere")
        if (
            path.name == CONFIG
            and type(value) is int
            and value > (MOST_LAYERS if "layer" in name else MOST)
        ):
            raise TreetopError(f"{path}: {name} is too large: copy the model folder again")


def settings_in(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """All settings of a configuration and those within them, with their names."""
    yield name, value
    if isinstance(value, dict):
        for key, item in value.items():
            yield from settings_in(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from settings_in(item, name)


def json_at(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise TreetopError(f"{path}: missing or damaged: copy the model folder again or train again")
    return content


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of an encoder; none if it has weights of another kind only."""
    single, index = (folder / name for name in WEIGHTS)
    if single.is_file():
        return [single]
    if not index.is_file():
        return []
    shards = json_at(index).get("weight_map")
    names = sorted(set(map(str, shards.values()))) if isinstance(shards, dict) else []
    for name in names:
        if "/" in name or "\\" in name or not name.endswith(".safetensors"):
            raise TreetopError(f"{index}: {name!r} is not a safetensors file of its folder")
    return [folder / name for name in names]


def check_size(folder: Path, needed: int) -> None:
    """Raise if an encoder needs more numbers than twice those in its weights, which would be made up.

    `needed` counts those of the model that a configuration describes.
    """
    files = weight_files(folder)
    stored = sum(
        size // BYTES.get(kind, 1) for path in files for kind, size in stored_bytes(path).items()
    )
    if files and needed > 2 * stored + SMALL:
        raise TreetopError(
            f"{folder / CONFIG}: describes an encoder of {needed:,} numbers, "
            f"but its weights are {stored:,}"
        )
