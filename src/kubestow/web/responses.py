"""Answers of the page, and the headers that every one of them has.

A browser without credentials gets a text, or a form for a token (`sign_in_page`).
"""

import zlib
from collections.abc import Mapping
from html import escape
from http.cookies import SimpleCookie
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


_HTML: Final = "text/html; charset=utf-8"
_PAGE: Final = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>kubestow</title>{head}</head>
<body><h1>kubestow</h1><p>{text}</p>{form}</body>
</html>
"""
_FORM: Final = """
<form method="post" action="session">
<label>Bearer token <input type="password" name="token" autocomplete="off" required></label>
<button>Sign in</button>
</form>"""
# Not a redirect: the cookie is not sent with one that begins at a link of another site.
_GO_ON: Final = '<meta http-equiv="refresh" content="0; url={to}">'


def sign_in_page(text: str, *, has_form: bool) -> web.StreamResponse:
    body = _PAGE.format(head="", text=escape(text), form=_FORM if has_form else "")
    return web.Response(status=401, body=body.encode(), headers={**NOT_KEPT, "Content-Type": _HTML})


def entered_page(cookie: str, to: str = "./") -> web.StreamResponse:
    """Sets the cookie and goes on to the page, whose address `to` is relative to this one."""
    link = f'<a href="{to}">Open the page</a>'
    body = _PAGE.format(head=_GO_ON.format(to=to), text=link, form="")
    headers = {**NOT_KEPT, "Content-Type": _HTML, "Set-Cookie": cookie}
    return web.Response(body=body.encode(), headers=headers)


def cookie_value(name: str, token: str, *, path: str, is_secure: bool) -> str:
    """A cookie of the session of a browser: closing the browser ends it."""
    cookies = SimpleCookie({name: token})
    cookie = cookies[name]
    cookie["path"] = path
    cookie["httponly"] = True
    cookie["samesite"] = "Strict"
    if is_secure:
        cookie["secure"] = True
    return cookie.OutputString()
