"""The page on the scheduler's own port: the same users as for `/metrics`, and no way to change
anything.

A browser has no way to send a bearer token with an address. It is shown a form instead; a token
that the API server accepts is kept in a cookie, which counts as the header in one folder of the
page and on no other path. Browsers send cookies to all ports of a host, and two schedulers may be
forwarded to one: the folder is one that no other server has.
"""

import secrets
from http.cookies import CookieError, SimpleCookie
from typing import Final, NamedTuple
from urllib.parse import parse_qs

from aiohttp import web

from kubestow.explain.history import AttemptHistory
from kubestow.http_port import read_body
from kubestow.service.serving.application import Accepts
from kubestow.service.serving.authentication import AUTHORIZATION, Headers, TokenHeaders
from kubestow.web.assets import Assets
from kubestow.web.feed import Bridge, Feed
from kubestow.web.follower import PageFollower
from kubestow.web.picture import PageFacts
from kubestow.web.responses import NOT_KEPT, cookie_value, entered_page, error_answer, sign_in_page
from kubestow.web.routes import PREFIX, PageRoutes
from kubestow.web.suggest import no_suggestions

SESSION: Final = f"{PREFIX}session"
COOKIE: Final = "kubestow-page"
TOKEN_BYTES_MAX: Final = 16_384
# A form comes in one piece; it is read before it is known whose it is.
FORM_S: Final = 5.0
# After this time a browser connects again, so that rights that were withdrawn end the stream.
STREAM_S_MAX: Final = 300.0
_ASKS: Final = "Sign in with a token of a user who may read this path."
_REFUSES: Final = "The token is not valid, or its user may not read this path."


class PageSource(NamedTuple):
    """What a process shows. The follower is on the scheduler's loop."""

    follower: PageFollower
    facts: PageFacts
    history: AttemptHistory


class PageSite:
    """Made on the loop of the port."""

    prefix = PREFIX
    session_path = SESSION

    def __init__(self, source: PageSource, bridge: Bridge) -> None:
        # Where browsers that have signed in find the page.
        self._folder = f"{PREFIX}{secrets.token_urlsafe(12)}/"
        self._feed = Feed(source.follower, bridge, is_always_on=False)
        self._routes = PageRoutes(
            self._feed,
            source.facts,
            Assets(),
            history=source.history,
            suggest=no_suggestions,
            stream_s_max=STREAM_S_MAX,
        )

    @staticmethod
    def owns(path: str) -> bool:
        return path == PREFIX.rstrip("/") or path.startswith(PREFIX)

    def authorized_path(self, path: str) -> str:
        """The path that a user has to be allowed to read: the folder does not count."""
        return PREFIX + path.removeprefix(self._folder) if self._is_signed_in(path) else path

    def headers_of(self, request: web.BaseRequest) -> Headers:
        """The headers of a request, or the token of its cookie as such if it has no other."""
        if AUTHORIZATION in request.headers or not self._is_signed_in(request.path):
            return request.headers
        token = _cookie_token(request)
        return TokenHeaders(token) if token else request.headers

    @staticmethod
    def form(request: web.BaseRequest) -> web.StreamResponse | None:
        """The form for a token, for a browser that opens the page; None for other requests."""
        if request.method != "GET" or "text/html" not in request.headers.get("Accept", ""):
            return None
        if request.path == PREFIX:
            return sign_in_page(_ASKS, has_form=True)
        # A bookmark of the folder of an earlier process, for example.
        return web.Response(status=307, headers={**NOT_KEPT, "Location": PREFIX})

    def _is_signed_in(self, path: str) -> bool:
        return path.startswith(self._folder)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a user who may read the path."""
        if request.path == PREFIX.rstrip("/"):
            return web.Response(status=307, headers={**NOT_KEPT, "Location": PREFIX})
        is_signed_in = self._is_signed_in(request.path)
        return await self._routes.handle(request, self._folder if is_signed_in else PREFIX)

    async def sign_in(self, request: web.BaseRequest, accepts: Accepts) -> web.StreamResponse:
        """Exchange a token of the form for a cookie."""
        if request.method != "POST":
            return error_answer(405, "the form is posted")
        if request.headers.get("Origin", _origin(request)) != _origin(request):
            return error_answer(403, "a page of another site must not sign in")
        try:
            body = await read_body(request, bytes_max=TOKEN_BYTES_MAX, limit_s=FORM_S)
        except TimeoutError:
            return error_answer(408, "the form did not arrive in time")
        if body is None:
            return error_answer(413, f"the form is longer than {TOKEN_BYTES_MAX} bytes")
        token = parse_qs(body.decode(errors="replace")).get("token", [""])[0].strip()
        if not token.isascii() or not token.isprintable() or not await accepts(token):
            return sign_in_page(_REFUSES, has_form=True)
        cookie = cookie_value(COOKIE, token, path=self._folder, is_secure=True)
        return entered_page(cookie, self._folder.removeprefix(PREFIX))

    async def close(self) -> None:
        """End all streams: the port waits for open requests."""
        await self._feed.close()


def _origin(request: web.BaseRequest) -> str:
    return f"https://{request.headers.get('Host', '')}"


def _cookie_token(request: web.BaseRequest) -> str:
    try:
        cookie = SimpleCookie(request.headers.get("Cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return "" if cookie is None else cookie.value
