"""The files of a model folder: versioned, checksummed, and told from other folders."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from treetop.errors import TreetopError
from treetop.runtime.files import part_of, replacing_file

VERSION = 1
CONFIG = "config.json"
CARD = "README.md"
# Files that config.json does not list: itself, the card, and what a killed `keep_measures` leaves.
UNLISTED = (CONFIG, CARD, part_of(Path(CONFIG)).name, part_of(Path(CARD)).name)
# Files are checked against their checksums up to this total; beyond it only with verify=True.
VERIFY_BYTES = 256 << 20


def checksum(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def write_card(folder: Path, text: str) -> None:
    """Write README.md. It has no checksum: people edit it, on the Hub for instance."""
    (folder / CARD).write_text(text, encoding="utf-8")


def write_config(folder: Path, config: dict[str, Any]) -> None:
    """Write config.json with the size and checksum of every other file of the folder."""
    files = {
        file.relative_to(folder).as_posix(): {"bytes": file.stat().st_size, "sha256": checksum(file)}
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not is_unlisted(file, folder)
    }
    text = json.dumps({"treetop": VERSION, **config, "files": files}, indent=2, ensure_ascii=False)
    (folder / CONFIG).write_text(text + "\n", encoding="utf-8")


def read_config(folder: Path, verify: bool | None = None) -> dict[str, Any]:
    """config.json of a model folder, after a check that the folder is whole.

    Sizes are always checked; checksums when `verify`, or by default for models that are small enough
    to be read through in a fraction of a second.
    """
    if not folder.is_dir():
        raise TreetopError(f"{folder}: no such model folder")
    path = folder / CONFIG
    if not path.is_file():
        raise TreetopError(f"{folder}: no model here, {CONFIG} is missing")
    try:
        config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        version, files = int(config["treetop"]), dict(config["files"])
    except (ValueError, KeyError, TypeError):
        raise TreetopError(f"{path}: damaged, or not the config of a treetop model") from None
    if version > VERSION:
        raise TreetopError(
            f"{folder}: made by a newer treetop (format {version}, this one reads {VERSION}): "
            "upgrade treetop"
        )
    if verify is None:
        verify = sum(entry["bytes"] for entry in files.values()) <= VERIFY_BYTES
    for name, entry in files.items():
        check_file(folder / name, entry, verify)
    return config


def keep_measures(folder: Path, measures: dict[str, Any], make_card: Callable[[Any], str]) -> None:
    """Note figures in config.json and README.md; each file is exchanged in one step."""
    config = read_config(folder, verify=False)
    config["metrics"] = measures
    text = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
    for name, content in ((CONFIG, text), (CARD, make_card(config))):
        with replacing_file(folder / name) as file:
            file.write(content)


def check_file(path: Path, entry: dict[str, Any], verify: bool) -> None:
    """Raise if a file is missing, cut short or changed."""
    if not path.is_file():
        raise TreetopError(f"{path}: missing: copy the whole model folder or train again")
    if path.stat().st_size != entry["bytes"]:
        raise TreetopError(
            f"{path}: {path.stat().st_size:,} bytes instead of {entry['bytes']:,}: "
            "copy the model folder again or train again"
        )
    if verify and checksum(path) != entry["sha256"]:
        raise TreetopError(f"{path}: damaged (checksum differs): copy the folder again")


def check_target(target: Path) -> None:
    """Raise if writing a model to `target` would replace anything that treetop did not write.

    An empty folder and a folder that holds nothing but a treetop model may be replaced.
    """
    try:
        reason = obstacle(Path(target))
    except OSError as error:
        raise TreetopError(f"{target}: cannot be read ({error.strerror})") from None
    if reason is not None:
        raise TreetopError(f"{target}: {reason}")


def obstacle(target: Path) -> str | None:
    """Why `target` may not be replaced and what to do instead; None if it may be."""
    if target.name in ("", ".."):
        return "give the folder by its name"
    if target.is_symlink():
        return "is a symbolic link: choose another folder, or give the one it points to"
    if not target.exists():
        return None
    if os.path.ismount(target):
        return "is a mount point, which cannot be replaced: choose a folder inside it"
    if target.is_dir() and not any(target.iterdir()):
        return None
    if listed_files(target) is None:
        return "exists and is not a treetop model: choose another folder"
    foreign = first_foreign(target)
    if foreign is not None:
        return f"holds {foreign}, which treetop did not write: choose another folder or move it"
    return None


def listed_files(folder: Path) -> set[str] | None:
    """Files that the config.json of a treetop model lists; None if the folder is not such a model."""
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    # A bool is an int to isinstance.
    if not isinstance(config, dict) or type(config.get("treetop")) is not int:
        return None
    files = config.get("files")
    return set(files) if isinstance(files, dict) else None


def is_unlisted(file: Path, folder: Path) -> bool:
    """Whether a file of the model in `folder`, or of a member model in it, is one without checksum.

    The config.json of a member is listed in that of the ensemble.
    """
    if file.parent == folder:
        return file.name in UNLISTED
    return file.name in UNLISTED and file.name != CONFIG and listed_files(file.parent) is not None


def first_foreign(folder: Path) -> str | None:
    """The first file or subfolder of a model folder that treetop did not write.

    Symbolic links count as such, whatever their names.
    """
    files = listed_files(folder) or set()
    subfolders = {parent.as_posix() for file in files for parent in PurePosixPath(file).parents}

    def search(inner: Path) -> Iterator[str]:
        for path in sorted(inner.iterdir()):
            name = path.relative_to(folder).as_posix()
            if path.is_symlink():
                yield name
            elif path.is_dir() and name in subfolders:
                yield from search(path)
            elif not path.is_file() or (name not in files and not is_unlisted(path, folder)):
                yield name

    return next(search(folder), None)
