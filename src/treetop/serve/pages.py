"""The page at /: the files in the folder `page`."""

from __future__ import annotations

import hashlib
from importlib.resources import files

from fastapi import FastAPI, Request
from fastapi.responses import Response

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def add_page(app: FastAPI) -> None:
    """Serve the files from memory; a browser asks again, and is told if nothing changed."""
    for file in files("treetop.serve").joinpath("page").iterdir():
        address = "/" if file.name == "index.html" else f"/{file.name}"
        add_file(app, address, file.read_bytes(), KINDS[file.name[file.name.rindex(".") :]])


def add_file(app: FastAPI, address: str, content: bytes, kind: str) -> None:
    """One file."""
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    headers = {"etag": tag, "cache-control": "no-cache"}

    @app.get(address, include_in_schema=False)
    async def file(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, 200, headers, kind)
