"""The playground's page and the page of the API's description, as files of this package.

Enters: a path. Leaves: a file, with headers that forbid the page to load anything else. Cost: the files are
read at start.

The pages load nothing from other sites, so they work without a network. The headers tell the browser so:
scripts and styles come only from this origin, none stands in the HTML, no other page may frame these pages,
and no string can become HTML or a script (Trusted Types).
"""

from __future__ import annotations

import hashlib
import importlib.resources

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

_KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


def add_routes(app: FastAPI) -> None:
    """Adds the routes `/`, `/docs` and `/playground/FILE` to the app."""
    files = _files()

    def answer(name: str, request: Request) -> Response:
        found = files.get(name)
        if found is None:
            raise HTTPException(404)
        data, kind, tag = found
        headers = {**HEADERS, "ETag": tag}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(data, media_type=kind, headers=headers)

    async def root(request: Request) -> Response:
        return answer("index.html", request)

    async def docs(request: Request) -> Response:
        return answer("docs.html", request)

    async def file(name: str, request: Request) -> Response:
        return answer(name, request)

    for path, endpoint in (("/", root), ("/docs", docs), ("/playground/{name}", file)):
        app.add_api_route(path, endpoint, methods=["GET", "HEAD"], include_in_schema=False)


def _files() -> dict[str, tuple[bytes, str, str]]:
    """Returns a dict of name -> the content, its type, its tag. Only files of this table are served."""
    found = {}
    for entry in (importlib.resources.files(__package__) / "page").iterdir():
        kind = _KINDS.get(entry.name.rpartition(".")[2])
        if kind is not None:
            data = entry.read_bytes()
            found[entry.name] = (data, kind, f'"{hashlib.sha256(data).hexdigest()[:20]}"')
    return found
