"""Finds the folder of an encoder by its name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from treetop.errors import TreetopError
from treetop.features.encoders.hub import (
    HubError,
    PickledError,
    cached_folder,
    cached_names,
    download_encoder,
    is_complete,
    is_pickled,
    pooling_is_known,
)
from treetop.features.encoders.names import (
    MINILM,
    hub_name,
    known_names,
    packaged_folder,
    similar_name,
)
from treetop.runtime.extras import install_command

FILE_ENDINGS = (".bin", ".gz", ".h5", ".onnx", ".pt", ".safetensors", ".txt", ".vec", ".zip")
CACHED_NAMES_SHOWN = 4


def ignore(_: str) -> None:
    """Ignore a note."""


def find_encoder(name: str, note: Callable[[str], None] = ignore) -> Path:
    """The folder of an encoder; `note` is called with one line before a download.

    Looks for a folder, an installed package, an encoder in the Hub's cache and, last of all, one on
    the Hub.
    """
    path = Path(name)
    if name and path.is_dir() and (is_complete(path) or name.lower() not in known_names()):
        check_local(name, path)
        return path
    on_hub = hub_name(name)
    if folder := packaged_folder(on_hub):
        return folder
    if reason := impossible_name(on_hub):
        raise TreetopError(f"encoder {name!r}: {reason}.{alternatives(name)}")
    try:
        return cached_or_downloaded(name, on_hub, note)
    except PickledError as error:
        raise TreetopError(f"encoder {name!r}: {error}") from None
    except HubError as error:
        raise TreetopError(f"encoder {name!r}: {error}.{alternatives(name)}") from None


def check_local(name: str, folder: Path) -> None:
    """Raise if a folder is a treetop model, or has pickled weights only."""
    if (folder / "encoder").is_dir() and (folder / "labels.txt").is_file():
        inner = str(folder / "encoder")
        raise TreetopError(f"encoder {name!r} is a treetop model: its encoder is {inner!r}")
    if is_pickled(folder):
        raise TreetopError(f"encoder {name!r}: {PickledError(name)}")


def cached_or_downloaded(name: str, on_hub: str, note: Callable[[str], None]) -> Path:
    """The folder of an encoder in the Hub's cache, downloaded if need be. Raises `HubError`."""
    cached = cached_folder(name) or cached_folder(on_hub)
    if cached and pooling_is_known(cached):
        return cached
    try:
        return download_encoder(on_hub, note)
    except HubError:
        if cached is None:
            raise
        note(f"the Hub cache lacks the pooling of {on_hub}: using mean unless pooling is set")
        return cached


def impossible_name(name: str) -> str | None:
    """Why a name that is not a folder cannot be a name on the Hub; None if it can be one."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    try:
        validate_repo_id(name)
    except HFValidationError:
        return "no such file or folder"
    return "no such file" if name.lower().endswith(FILE_ENDINGS) else None


def alternatives(name: str) -> str:
    """The end of an error message: a similar name, and the encoders that are available."""
    similar, installed = similar_name(name), packaged_folder(MINILM) is not None
    at_hand = ["'minilm' (installed)"] if installed else []
    cached = cached_names()
    at_hand += [f"{other!r} (Hub cache)" for other in cached[:CACHED_NAMES_SHOWN]]
    if (more := len(cached) - CACHED_NAMES_SHOWN) > 0:
        at_hand.append(f"{more} others in the Hub cache")
    packaged = "it" if hub_name(name) == MINILM else "'minilm'"
    sentences = [
        f" Did you mean {similar!r}?" if similar else "",
        f" Available without a download: {', '.join(at_hand)}." if at_hand else "",
        "" if installed else f" {install_command('minilm')} installs {packaged}.",
        " A folder or a file of word vectors works too.",
    ]
    return "".join(sentences)
