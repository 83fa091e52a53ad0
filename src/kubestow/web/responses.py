"""Answers of the page, and the headers that every one of them has."""

import zlib
from collections.abc import Mapping
from typing import Final

import msgspec
from aiohttp import web

# No inline script or style, and nothing of another origin.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
SECURITY: Final[Mapping[str, str]] = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
# Data of the cluster: no copy stays in the browser's cache.
NOT_KEPT: Final[Mapping[str, str]] = {**SECURITY, "Cache-Control": "no-store"}
_JSON: Final = "application/json"
# Shorter answers are not worth compressing.
COMPRESSED_BYTES_MIN: Final = 16_384
_LEVEL: Final = 1
_GZIP: Final = 16 + zlib.MAX_WBITS


class ErrorText(msgspec.Struct, frozen=True):
    """`where` is the field, document or line that is wrong, or empty."""

    message: str
    where: str = ""


class ErrorAnswer(msgspec.Struct, frozen=True):
    error: ErrorText


def json_answer(
    content: object, *, status: int = 200, accepts_gzip: bool = False
) -> web.StreamResponse:
    return encoded_answer(msgspec.json.encode(content), status=status, accepts_gzip=accepts_gzip)


def encoded_answer(
    body: bytes, *, status: int = 200, accepts_gzip: bool = False
) -> web.StreamResponse:
    headers = {**NOT_KEPT, "Content-Type": _JSON}
    if accepts_gzip and len(body) >= COMPRESSED_BYTES_MIN:
        body = gzipped(body)
        headers["Content-Encoding"] = "gzip"
        headers["Vary"] = "Accept-Encoding"
    return web.Response(body=body, status=status, headers=headers)


def gzipped(body: bytes) -> bytes:
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    return compressor.compress(body) + compressor.flush()


def error_answer(status: int, message: str, *, where: str = "") -> web.StreamResponse:
    return json_answer(ErrorAnswer(ErrorText(message, where)), status=status)


def accepts_gzip(request: web.BaseRequest) -> bool:
    return "gzip" in request.headers.get("Accept-Encoding", "")
