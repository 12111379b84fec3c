"""The files of a model folder: versioned, checksummed, and distinguished from other folders."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Container, Iterator
from pathlib import Path
from typing import Any

from treetop.errors import TreetopError
from treetop.runtime.files import check_path, replacing_file, saving
from treetop.runtime.temporary import whole_name

# Version 2: weights lie in the order of their rows, and readers check every number.
# Version 3: weights are 16-bit words; readers convert those of version 2.
VERSION = 3
CONFIG = "config.json"
CARD = "README.md"
RECORD = "training.json"
# Files that config.json does not list.
UNLISTED = (CONFIG, CARD, RECORD)
# Checksums are verified by default up to this total size; beyond it only with verify=True.
VERIFY_BYTES = 256 << 20


def checksum(path: Path) -> str:
    """Compute the SHA-256 of a file, as hexadecimal digits."""
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
    """Read config.json of a model folder and check that every file it lists is complete.

    Sizes are always checked; checksums if `verify` is true, or by default for models that are small
    enough to be read in a fraction of a second.
    """
    if not folder.is_dir():
        raise TreetopError(f"{folder}: no such model folder")
    path = folder / CONFIG
    if not path.is_file():
        raise TreetopError(f"{folder}: no model here, {CONFIG} is missing")
    try:
        config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        version, files = config["treetop"], dict(config["files"])
        if type(version) is not int or not isinstance(config.get("metrics", {}), dict):
            raise TypeError
        sizes = {name: entry_of(name, entry) for name, entry in files.items()}
    except OSError as error:
        raise TreetopError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise TreetopError(f"{path}: damaged, or not the config of a treetop model") from None
    if version > VERSION:
        raise TreetopError(
            f"{folder}: made by a newer treetop (format {version}, this one reads {VERSION}): "
            "upgrade treetop"
        )
    check_entries(folder, files)
    if verify is None:
        verify = sum(size for size, _ in sizes.values()) <= VERIFY_BYTES
    for name, (size, digest) in sizes.items():
        check_file(folder / name, size, digest if verify else None)
    return config


def check_entries(folder: Path, listed: Container[str]) -> None:
    """Raise if a folder holds what is not a plain file, or unlisted files that would be read.

    Links to files are fine: the Hub's cache consists of them.
    """
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_dir():
            if path.is_symlink():
                raise TreetopError(f"{path}: a link to a folder: copy the folder itself there")
        elif not path.is_file():
            raise TreetopError(f"{path}: not a file: copy the model folder again or train again")
        elif name not in listed and is_read(name):
            raise TreetopError(f"{path}: {CONFIG} does not list it: delete it or copy the folder again")


def is_read(name: str) -> bool:
    """Whether a file, named by its path in a model folder, may be read as a part of the model."""
    folder, _, file = name.rpartition("/")
    return folder.startswith("encoder") if folder else file.endswith((".safetensors", ".txt", ".jsonl"))


def entry_of(name: str, entry: dict[str, Any]) -> tuple[int, str]:
    """Size and checksum of a listed file; ValueError if it lies outside of the folder."""
    size, digest = entry["bytes"], entry["sha256"]
    if type(size) is not int or not isinstance(digest, str):
        raise TypeError
    if "\0" in name or "\\" in name or not all(part.strip(".") for part in name.split("/")):
        raise ValueError
    return size, digest


def keep_measures(folder: Path, measures: dict[str, Any], make_card: Callable[[Any], str]) -> None:
    """Save metrics in config.json and README.md of a model folder; each file is replaced atomically."""
    with saving(folder):
        config = read_config(folder, verify=False)
        config["metrics"] = measures
        text = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
        for name, content in ((CONFIG, text), (CARD, make_card(config))):
            with replacing_file(folder / name) as file:
                file.write(content)


def check_file(path: Path, size: int, digest: str | None) -> None:
    """Raise if a file is missing, truncated or, unless `digest` is None, changed."""
    if not path.is_file():
        raise TreetopError(f"{path}: missing: copy the whole model folder or train again")
    if path.stat().st_size != size:
        raise TreetopError(
            f"{path}: {path.stat().st_size:,} bytes instead of {size:,}: "
            "copy the model folder again or train again"
        )
    if digest is not None and checksum(path) != digest:
        raise TreetopError(f"{path}: damaged (checksum differs): copy the folder again")


def check_unchanged(files: dict[str, Any], folder: Path) -> None:
    """Raise if a model folder does not hold these files anymore, with these sizes and checksums."""
    try:
        now = json.loads((folder / CONFIG).read_text(encoding="utf-8"))["files"]
        same = all(now.get(name) == entry for name, entry in files.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        same = False
    if not same:
        raise TreetopError(f"{folder}: was replaced or moved since the model was loaded: load it again")


def check_target(target: Path) -> None:
    """Raise if writing a model to `target` would replace anything that treetop did not write.

    An empty folder and a folder that holds nothing but a treetop model may be replaced.
    """
    check_path(Path(target))
    try:
        reason = obstacle(Path(target))
    except OSError as error:
        raise TreetopError(f"{target}: cannot be read ({error.strerror})") from None
    if reason is not None:
        raise TreetopError(f"{target}: {reason}")


def obstacle(target: Path) -> str | None:
    """Explain why `target` may not be replaced and what to do instead; None if it may be."""
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
    files = listed_files(target)
    if files is None:
        return "exists and is not a treetop model: choose another folder"
    listed = {target / file for file in files}
    subfolders = {folder for file in listed for folder in file.parents}
    return foreign_content(target, lambda path: path in listed or is_unlisted(path, target), subfolders)


def foreign_content(
    folder: Path, is_own: Callable[[Path], bool], subfolders: Container[Path] = ()
) -> str | None:
    """Explain that a folder holds something that treetop did not write; None if it does not.

    Parameters
    ----------
    folder : Path
        Folder that is to be replaced or emptied.
    is_own : callable
        Tells whether treetop wrote a file, by its path.
    subfolders : container of Path
        Subfolders that treetop made. Their files are checked too; any other subfolder is foreign, as
        is every symbolic link, whatever its name.
    """

    def search(inner: Path) -> Iterator[str]:
        for path in sorted(inner.iterdir()):
            if path.is_dir() and not path.is_symlink() and path in subfolders:
                yield from search(path)
            elif path.is_symlink() or not path.is_file() or not is_own(path):
                yield path.relative_to(folder).as_posix()

    foreign = next(search(folder), None)
    if foreign is None:
        return None
    return f"holds {foreign}, which treetop did not write: choose another folder or move it"


def listed_files(folder: Path) -> set[str] | None:
    """Read which files config.json of a treetop model lists; None if the folder is not a model."""
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    # A bool is an int to isinstance.
    if not isinstance(config, dict) or type(config.get("treetop")) is not int:
        return None
    files = config.get("files")
    return set(files) if isinstance(files, dict) else None


def is_unlisted(file: Path, folder: Path) -> bool:
    """Tell whether treetop wrote a file of a model, or of a member model, without a checksum.

    The config.json of a member is listed in that of the ensemble.
    """
    whole = whole_name(file.name)  # of a leftover of a killed `keep_measures`
    if file.parent == folder:
        return (whole or file.name) in UNLISTED
    name_is_unlisted = whole in UNLISTED or file.name == CARD
    return name_is_unlisted and listed_files(file.parent) is not None
