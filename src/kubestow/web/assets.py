"""The files of the page, as they are in the package.

A name that has a hash in it (`app.3f2a91bc.js`) never changes its content, so that browsers keep
it; of all others they ask whether they have changed.
"""

import re
import zlib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final, NamedTuple

from aiohttp import web

from kubestow.web.responses import SECURITY

INDEX: Final = "index.html"
_TYPES: Final[Mapping[str, str]] = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "ico": "image/x-icon",
    "json": "application/json",
    "woff2": "font/woff2",
    "txt": "text/plain; charset=utf-8",
}
_HASHED: Final = re.compile(r"[.-][0-9a-f]{8,}\.")


class Asset(NamedTuple):
    content: bytes
    content_type: str
    etag: str
    is_hashed: bool


class Assets:
    """Read once: they are part of the program."""

    def __init__(self, folder: Traversable | None = None) -> None:
        self._assets = dict(_read(folder or files("kubestow.web").joinpath("assets"), ""))

    def names(self) -> frozenset[str]:
        return frozenset(self._assets)

    def answer(self, request: web.BaseRequest, name: str) -> web.StreamResponse | None:
        """The file, or that it has not changed; None if there is no such file."""
        asset = self._assets.get(name or INDEX)
        if asset is None:
            return None
        kept = "private, max-age=31536000, immutable" if asset.is_hashed else "private, no-cache"
        headers = {
            **SECURITY,
            "Content-Type": asset.content_type,
            "Cache-Control": kept,
            "ETag": asset.etag,
        }
        if request.headers.get("If-None-Match") == asset.etag:
            return web.Response(status=304, headers=headers)
        return web.Response(body=asset.content, headers=headers)


def _read(folder: Traversable, prefix: str) -> Iterator[tuple[str, Asset]]:
    if not folder.is_dir():
        return
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _read(entry, f"{prefix}{entry.name}/")
        elif (content_type := _TYPES.get(entry.name.rpartition(".")[2])) is not None:
            content = entry.read_bytes()
            etag = f'"{zlib.crc32(content):08x}-{len(content):x}"'
            is_hashed = _HASHED.search(entry.name) is not None
            yield f"{prefix}{entry.name}", Asset(content, content_type, etag, is_hashed)
