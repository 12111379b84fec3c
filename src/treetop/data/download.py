"""Public data sets: download that goes on where it broke off, and safe unpacking."""

from __future__ import annotations

import hashlib
import http.client
import json
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from treetop.errors import TreetopError

# The sets of the paper, as its authors published them (texts, labels and TF-IDF of AttentionXML).
ARCHIVE = "https://archive.org/download/pecos-dataset/xmc-base/{name}.tar.gz"
NAMES = ("eurlex-4k", "wiki10-31k", "amazoncat-13k", "wiki-500k", "amazon-670k", "amazon-3m")
BLOCK = 1 << 20
LARGEST_UNPACKED = 200 << 30


def get_dataset(
    name: str, folder: Path, address: str = ARCHIVE, advance: Callable[[int, int], object] | None = None
) -> Path:
    """Download and unpack a set into `folder`/`name`; what is there already is kept.

    An archive `name`.tar.gz that is in `folder` already is used and kept.
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
        raise TreetopError(f"{folder}: cannot be written ({error.strerror})") from None
    address = address.replace("{name}", name)
    fetched = not archive.exists()
    if fetched:
        download(address, archive, advance)
    if not matches_published_sum(archive, address):
        if not fetched:
            raise TreetopError(f"{archive}: its checksum is not the published one: move it away")
        archive.unlink()
        raise TreetopError(f"{address}: its checksum is not the published one: deleted, try again")
    unpack_archive(archive, target)
    if fetched:
        archive.unlink()
    return target


def download(address: str, target: Path, advance: Callable[[int, int], object] | None = None) -> None:
    """Fetch a file. A part that an earlier try has left is continued."""
    part = target.with_name(target.name + ".part")
    have = part.stat().st_size if part.exists() else 0
    try:
        request = urllib.request.Request(address, headers={"Range": f"bytes={have}-"} if have else {})
        with urllib.request.urlopen(request, timeout=60) as answer:
            if have and answer.status != 206:
                have = 0  # the server cannot continue: begin again
            expected = have + int(answer.headers.get("Content-Length", 0))
            with part.open("ab" if have else "wb") as file:
                while block := answer.read(BLOCK):
                    file.write(block)
                    have += len(block)
                    if advance:
                        advance(have, expected)
    except urllib.error.HTTPError as error:
        if error.code != 416:  # 416: nothing is left to fetch
            raise TreetopError(f"{address}: the server answers {error.code} {error.reason}") from None
        expected = have
    except ValueError:
        raise TreetopError(f"{address}: not an address: it begins with https://") from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise TreetopError(f"{address}: cannot be fetched ({reason}): try again, it goes on") from None
    if expected and have != expected:
        raise TreetopError(f"{address}: {have:,} of {expected:,} bytes came: try again, it goes on")
    part.replace(target)


def matches_published_sum(archive: Path, address: str) -> bool:
    """Whether the archive has the SHA-1 that its server publishes, as archive.org does, if it does."""
    published = published_sum(address)
    if published is None:
        return True
    digest = hashlib.sha1(usedforsecurity=False)
    with archive.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest() == published


def published_sum(address: str) -> str | None:
    """SHA-1 from ``/metadata/ITEM`` for a file at ``/download/ITEM/…``; None if there is none."""
    server, found, path = address.partition("/download/")
    item, _, name = path.partition("/")
    if not found:
        return None
    try:
        with urllib.request.urlopen(f"{server}/metadata/{item}", timeout=60) as answer:
            files = json.load(answer)["files"]
        return next((str(one["sha1"]) for one in files if one.get("name") == name), None)
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
        return None


def unpack_archive(archive: Path, target: Path) -> None:
    """Unpack the one folder of an archive that is named like `target`, or its only folder."""
    work = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        with tarfile.open(archive) as opened:
            # Python 3.11.4 and later check members themselves as well.
            opened.extraction_filter = getattr(tarfile, "data_filter", None)
            size = 0
            for member in opened:
                check_member(archive, member)
                size += member.size
                if size > LARGEST_UNPACKED:
                    raise TreetopError(f"{archive}: unpacks to more than {LARGEST_UNPACKED >> 30} GiB")
                opened.extract(member, work, set_attrs=False)
        inner = sorted(path for path in work.rglob(target.name) if path.is_dir())
        folders = [path for path in work.iterdir() if path.is_dir()]
        chosen = inner[0] if inner else folders[0] if len(folders) == 1 else work
        chosen.chmod(0o755)
        chosen.rename(target)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise TreetopError(
            f"{archive}: not a readable archive ({error}): delete it and try again"
        ) from None
    finally:
        shutil.rmtree(work, ignore_errors=True)


def check_member(archive: Path, member: tarfile.TarInfo) -> None:
    """Raise if a member is anything but a plain file or folder below the target."""
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or not (member.isfile() or member.isdir()):
        raise TreetopError(f"{archive}: contains {member.name!r}, which is not safe to unpack")
