"""A small stand-in of the Hub's HTTP API: create, upload in a commit, list, download."""

import base64
import json
import threading
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Handler(BaseHTTPRequestHandler):
    """Repositories are kept in memory: `server.repos[name][path] = bytes`."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, body=b"", status=200, headers=()):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            made = b""
            while size := int(self.rfile.readline(), 16):
                made += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return made
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def do_POST(self):
        body, parts = self.body(), self.path.split("?")[0].strip("/").split("/")
        repos = self.server.repos
        if self.path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked.get('organization') or 'someone'}/{asked['name']}"
            repos.setdefault(name, {})
            return self.answer({"url": f"{self.address}/{name}", "name": name, "id": name})
        if self.path == "/api/validate-yaml":
            return self.answer({"warnings": [], "errors": []})
        name = "/".join(parts[2:4])
        if "preupload" in parts:
            files = [
                {"path": one["path"], "uploadMode": "regular", "shouldIgnore": False}
                for one in json.loads(body)["files"]
            ]
            return self.answer({"files": files})
        if "commit" in parts:
            for line in body.decode().splitlines():
                entry = json.loads(line)
                if entry["key"] == "file":
                    content = base64.b64decode(entry["value"]["content"])
                    repos[name][entry["value"]["path"]] = content
            url = f"{self.address}/{name}/commit/{COMMIT}"
            return self.answer({"commitUrl": url, "commitOid": COMMIT, "pullRequestUrl": None})
        return self.answer({"error": "unknown"}, 404)

    def do_GET(self):
        path = self.path.split("?")[0].strip("/")
        repos, parts = self.server.repos, path.split("/")
        if path.startswith("api/models/"):
            name = "/".join(parts[2:4])
            if name not in repos:
                return self.answer(
                    {"error": "Repository not found"}, 404, [("X-Error-Code", "RepoNotFound")]
                )
            if "tree" in parts:
                tree = [
                    {
                        "type": "file",
                        "path": file,
                        "size": len(content),
                        "oid": sha1(content).hexdigest(),
                    }
                    for file, content in repos[name].items()
                ]
                return self.answer(tree)
            files = [{"rfilename": file} for file in repos[name]]
            return self.answer(
                {
                    "id": name,
                    "modelId": name,
                    "sha": COMMIT,
                    "siblings": files,
                    "private": False,
                    "downloads": 0,
                    "tags": [],
                }
            )
        name, file = "/".join(parts[:2]), "/".join(parts[4:])
        content = repos.get(name, {}).get(file)
        if content is None:
            code = "EntryNotFound" if name in repos else "RepoNotFound"
            return self.answer(b"", 404, [("X-Error-Code", code), ("X-Repo-Commit", COMMIT)])
        headers = [
            ("ETag", f'"{sha1(content).hexdigest()}"'),
            ("X-Repo-Commit", COMMIT),
            ("Accept-Ranges", "bytes"),
        ]
        return self.answer(content, 200, headers)

    do_HEAD = do_GET  # noqa: N815 - the library's name


def start():
    """A running server; its address is `http://127.0.0.1:{server.server_port}`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.repos = {}
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
