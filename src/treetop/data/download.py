"""Public data sets: resumable download, checksums, safe extraction."""

from __future__ import annotations

import hashlib
import http.client
import json
import tarfile
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from treetop.errors import TreetopError
from treetop.runtime.files import FULL, check_absent, replacing_folder, unwritable

# The data sets of the paper, as its authors published them (texts, labels and TF-IDF of AttentionXML).
ARCHIVE = "https://archive.org/download/pecos-dataset/xmc-base/{name}.tar.gz"
NAMES = ("eurlex-4k", "wiki10-31k", "amazoncat-13k", "wiki-500k", "amazon-670k", "amazon-3m")
BLOCK = 1 << 20
LARGEST_UNPACKED = 200 << 30


def get_dataset(
    name: str, folder: Path, address: str = ARCHIVE, advance: Callable[[int, int], object] | None = None
) -> Path:
    """Download and extract a data set to `folder`/`name`, unless that exists.

    An archive `name`.tar.gz that is already in `folder` is used and kept. `advance` is called with the
    bytes received so far and the bytes expected (0: unknown).
    """
    if name not in NAMES:
        raise TreetopError(f"unknown data set {name!r}: choose one of {', '.join(NAMES)}")
    target = folder / name
    if target.exists():
        return target
    archive = folder / f"{name}.tar.gz"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from None
    address = address.replace("{name}", name)
    fetched = not archive.exists()
    if fetched:
        download(address, archive, advance)
    if not matches_published_sum(archive, address):
        if not fetched:
            raise TreetopError(f"{archive}: checksum differs from the published one: move or delete it")
        archive.unlink()
        raise TreetopError(f"{address}: checksum differs from the published one; deleted: try again")
    unpack_archive(archive, target)
    if fetched:
        archive.unlink()
    return target


def download(address: str, target: Path, advance: Callable[[int, int], object] | None = None) -> None:
    """Download a file, continuing a partial download of an earlier call."""
    part = target.with_name(target.name + ".part")
    have = part.stat().st_size if part.exists() else 0
    try:
        request = urllib.request.Request(address, headers={"Range": f"bytes={have}-"} if have else {})
        with urllib.request.urlopen(request, timeout=60) as response:
            if have and response.status != 206:
                have = 0  # the server cannot resume: start over
            expected = have + int(response.headers.get("Content-Length", 0))
            with part.open("ab" if have else "wb") as file:
                while block := response.read(BLOCK):
                    file.write(block)
                    have += len(block)
                    if advance:
                        advance(have, expected)
    except urllib.error.HTTPError as error:
        if error.code != 416:  # 416: nothing is left to fetch
            raise TreetopError(f"{address}: HTTP {error.code} {error.reason}") from None
        expected = have
    except ValueError:
        raise TreetopError(f"{address}: not a URL: it must begin with https://") from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise TreetopError(f"{address}: download failed ({reason}): run again to resume") from None
    if expected and have != expected:
        raise TreetopError(f"{address}: {have:,} of {expected:,} bytes received: run again to resume")
    part.replace(target)


def matches_published_sum(archive: Path, address: str) -> bool:
    """Whether the archive has the SHA-1 that its server, like archive.org, publishes, if any."""
    published = published_sum(address)
    if published is None:
        return True
    digest = hashlib.sha1(usedforsecurity=False)
    with archive.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest() == published


def published_sum(address: str) -> str | None:
    """The SHA-1 that ``/metadata/ITEM`` lists for a file at ``/download/ITEM/…``; None without one."""
    server, found, path = address.partition("/download/")
    item, _, name = path.partition("/")
    if not found:
        return None
    try:
        with urllib.request.urlopen(f"{server}/metadata/{item}", timeout=60) as response:
            files = json.load(response)["files"]
        return next((str(file["sha1"]) for file in files if file.get("name") == name), None)
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
        return None


def unpack_archive(archive: Path, target: Path) -> None:
    """Extract the folder of an archive that is named like `target`, or its only folder."""

    def chosen(work: Path) -> Path:
        inner = sorted(path for path in work.rglob(target.name) if path.is_dir())
        folders = [path for path in work.iterdir() if path.is_dir()]
        return inner[0] if inner else folders[0] if len(folders) == 1 else work

    with replacing_folder(target, check_absent, chosen) as work:
        try:
            extract(archive, work)
        except (tarfile.TarError, EOFError, OSError) as error:
            if isinstance(error, OSError) and error.errno in FULL:
                raise
            raise TreetopError(
                f"{archive}: damaged archive ({error}): delete it and try again"
            ) from None


def extract(archive: Path, folder: Path) -> None:
    """Extract an archive whose members are checked one by one."""
    size = 0
    with tarfile.open(archive) as opened:
        # Python 3.11.4 and later check members themselves as well.
        opened.extraction_filter = getattr(tarfile, "data_filter", None)
        for member in opened:
            check_member(archive, member)
            size += member.size
            if size > LARGEST_UNPACKED:
                raise TreetopError(f"{archive}: extracts to more than {LARGEST_UNPACKED >> 30} GiB")
            opened.extract(member, folder, set_attrs=False)


def check_member(archive: Path, member: tarfile.TarInfo) -> None:
    """Raise unless a member is a regular file or folder below the target."""
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or not (member.isfile() or member.isdir()):
        raise TreetopError(f"{archive}: contains {member.name!r}, which is not safe to extract")
