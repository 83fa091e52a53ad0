"""What a browser is shown that has no credentials yet: a text, or a form for a token."""

from html import escape
from http.cookies import SimpleCookie
from typing import Final

from aiohttp import web

from kubestow.web.responses import NOT_KEPT

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
