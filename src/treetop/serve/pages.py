"""Serve the web page: the files in the folder `page`."""

from __future__ import annotations

import hashlib
from importlib.resources import files

from fastapi import FastAPI, Request
from fastapi.responses import Response

MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def add_page(app: FastAPI) -> None:
    """Add a route per file of the page, served from memory; index.html is at /."""
    for file in files("treetop.serve").joinpath("page").iterdir():
        path = "/" if file.name == "index.html" else f"/{file.name}"
        add_file(app, path, file.read_bytes(), MEDIA_TYPES[file.name[file.name.rindex(".") :]])


def add_file(app: FastAPI, path: str, content: bytes, media_type: str) -> None:
    """Add a route for a file, with an ETag: an unchanged file is answered with 304."""
    etag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    headers = {"etag": etag, "cache-control": "no-cache"}

    @app.get(path, include_in_schema=False)
    async def file(request: Request) -> Response:
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        return Response(content, 200, headers, media_type)
