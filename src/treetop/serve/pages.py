"""The page at /: three files beside this one."""

from __future__ import annotations

import hashlib
from importlib.resources import files

from fastapi import FastAPI, Request
from fastapi.responses import Response

FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/batch.js": ("batch.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}


def add_page(app: FastAPI) -> None:
    """Serve the files from memory; a browser asks again, and is told if nothing changed."""
    for address, (name, kind) in FILES.items():
        add_file(app, address, files("treetop.serve").joinpath("page", name).read_bytes(), kind)


def add_file(app: FastAPI, address: str, content: bytes, kind: str) -> None:
    """One file."""
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    headers = {"etag": tag, "cache-control": "no-cache"}

    @app.get(address, include_in_schema=False)
    async def file(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, 200, headers, kind)
