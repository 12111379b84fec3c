"""`treetop data get` against a small server on this machine."""

import gzip
import hashlib
import http.server
import io
import json
import tarfile
import threading

import pytest

from treetop.data import open_data
from treetop.data.download import get_dataset
from treetop.errors import TreetopError


def archive(*extra: tarfile.TarInfo) -> bytes:
    """A PECOS folder as the public archive has it, and perhaps members it should not have."""
    import numpy as np
    import scipy.sparse as sp

    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as opened:
        files = {"output-items.txt": b"a\nb\n"}
        for part, texts in (("trn", b"red\nblue\n"), ("tst", b"green\n")):
            held = io.BytesIO()
            rows = texts.count(b"\n")
            sp.save_npz(held, sp.csr_matrix(np.eye(rows, 2, dtype=np.float32)))
            files |= {f"X.{part}.txt": texts, f"Y.{part}.npz": held.getvalue()}
        for name, content in files.items():
            member = tarfile.TarInfo(f"xmc-base/eurlex-4k/{name}")
            member.size = len(content)
            opened.addfile(member, io.BytesIO(content))
        for member in extra:
            opened.addfile(member)
    return made.getvalue()


def link(name: str, target: str) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = tarfile.SYMTYPE, target
    return made


@pytest.fixture
def server():
    """Serves `content`; with `cut` an answer breaks off after so many bytes."""

    class Handler(http.server.BaseHTTPRequestHandler):
        content, cut, ranges, asked, sha1 = b"", None, True, [], ""

        def do_GET(self):
            cls = type(self)
            cls.asked.append(self.headers.get("Range"))
            if "/metadata/" in self.path:
                listed = {"files": [{"name": "sets/eurlex-4k.tar.gz", "sha1": cls.sha1}]}
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps(listed).encode())
                return
            if "missing" in self.path:
                self.send_error(404)
                return
            start = 0
            if cls.ranges and (asked := self.headers.get("Range")):
                start = int(asked.removeprefix("bytes=").rstrip("-"))
                if start >= len(cls.content):
                    self.send_error(416)
                    return
            body = cls.content[start:]
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: cls.cut])

        def log_message(self, *_):
            pass

    served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=served.serve_forever, daemon=True).start()
    Handler.address = f"http://127.0.0.1:{served.server_port}/{{name}}.tar.gz"
    yield Handler
    served.shutdown()
    served.server_close()


def test_a_data_set_is_downloaded_extracted_and_readable(server, tmp_path):
    server.content = archive()
    seen = []
    folder = get_dataset(
        "eurlex-4k", tmp_path, server.address, lambda have, of: seen.append((have, of))
    )
    assert folder == tmp_path / "eurlex-4k"
    assert seen[-1] == (len(server.content), len(server.content))
    assert list(open_data(folder, None, None).split("train").texts) == ["red", "blue"]
    assert [path.name for path in tmp_path.iterdir()] == ["eurlex-4k"]
    assert get_dataset("eurlex-4k", tmp_path, server.address) == folder  # there already
    assert len(server.asked) == 1


@pytest.mark.parametrize("ranges", [True, False])
def test_an_interrupted_download_is_resumed(server, tmp_path, ranges):
    server.content, server.cut, server.ranges, server.asked = archive(), 100, ranges, []
    with pytest.raises(TreetopError, match="run again to resume"):
        get_dataset("eurlex-4k", tmp_path, server.address)
    server.cut = None
    get_dataset("eurlex-4k", tmp_path, server.address)
    assert server.asked == [None, "bytes=100-"]
    assert (tmp_path / "eurlex-4k" / "X.trn.txt").read_bytes() == b"red\nblue\n"


@pytest.mark.parametrize(
    "member",
    [
        tarfile.TarInfo("/etc/x"),
        tarfile.TarInfo("a/../../x"),
        link("a", "/etc/passwd"),
        link("b", "../c"),
    ],
)
def test_hostile_archives_are_refused(server, tmp_path, member):
    server.content = archive(member)
    with pytest.raises(TreetopError, match="not safe to extract"):
        get_dataset("eurlex-4k", tmp_path, server.address)
    assert not (tmp_path / "eurlex-4k").exists()


def test_archives_that_are_too_large_or_damaged_are_refused(server, tmp_path, monkeypatch):
    from treetop.data import download

    server.content = archive()
    monkeypatch.setattr(download, "LARGEST_UNPACKED", 10)
    with pytest.raises(TreetopError, match="extracts to more than"):
        get_dataset("eurlex-4k", tmp_path / "a", server.address)
    server.content = gzip.compress(b"no tar at all" * 100)
    with pytest.raises(TreetopError, match="damaged archive"):
        get_dataset("eurlex-4k", tmp_path / "b", server.address)


def test_a_complete_archive_is_not_downloaded_again(server, tmp_path):
    (tmp_path / "eurlex-4k.tar.gz").write_bytes(archive())
    server.asked = []
    assert (get_dataset("eurlex-4k", tmp_path, server.address) / "X.trn.txt").is_file()
    assert server.asked == []


def test_an_archive_of_the_user_is_kept(server, tmp_path):
    mine = tmp_path / "eurlex-4k.tar.gz"
    content = archive()  # contains the time
    mine.write_bytes(content)
    address = server.address.replace("/{name}", "/download/item/sets/{name}")
    server.sha1 = "0" * 40
    with pytest.raises(TreetopError, match=r"eurlex-4k\.tar\.gz: checksum differs from the published"):
        get_dataset("eurlex-4k", tmp_path, address)
    assert mine.read_bytes() == content
    server.sha1 = hashlib.sha1(content).hexdigest()
    assert get_dataset("eurlex-4k", tmp_path, address).is_dir()
    assert mine.read_bytes() == content


def test_missing_files_and_servers_are_errors(server, tmp_path):
    with pytest.raises(TreetopError, match="unknown data set 'eurlex': choose one of eurlex-4k"):
        get_dataset("eurlex", tmp_path)
    with pytest.raises(TreetopError, match="HTTP 404 Not Found"):
        get_dataset("eurlex-4k", tmp_path, server.address.replace("{name}", "missing"))
    with pytest.raises(TreetopError, match="not a URL: it must begin with https://"):
        get_dataset("eurlex-4k", tmp_path, "somewhere/{x}")
    with pytest.raises(TreetopError, match="download failed"):
        get_dataset("eurlex-4k", tmp_path, "http://127.0.0.1:9/{name}")


def test_the_published_checksum_is_checked(server, tmp_path):
    server.content = archive()
    address = server.address.replace("/{name}", "/download/item/sets/{name}")
    server.sha1 = "0" * 40
    with pytest.raises(TreetopError, match="checksum differs from the published one; deleted"):
        get_dataset("eurlex-4k", tmp_path, address)
    assert not list(tmp_path.iterdir())
    server.sha1 = hashlib.sha1(server.content).hexdigest()
    assert get_dataset("eurlex-4k", tmp_path, address).is_dir()
