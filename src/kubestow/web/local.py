"""The page of a demo or a recording: a port on a loopback address, for the one who has its token.

Any program on the machine, and any site that is open in a browser there, can send requests to a
loopback port. So:

    token     each start has another one; it comes in the printed address, is exchanged for a
              cookie at once and is in no address after that
    cookie    HttpOnly and SameSite=Strict: no script reads it, and no other site sends it. Browsers
              send cookies to all ports of a host, so it is for a path that no other server has
    Host      has to be this port: a name that an attacker's DNS server points here is another one
    Origin    of a request that changes something has to be this page
"""

import hmac
import secrets
import socket
from http.cookies import CookieError, SimpleCookie
from typing import Final

from aiohttp import web

from kubestow.errors import InputError
from kubestow.http_port import BACKLOG, HttpPort, keep
from kubestow.web.responses import NOT_KEPT, cookie_value, entered_page, error_answer, sign_in_page
from kubestow.web.routes import PREFIX, PageRoutes

LOOPBACK: Final = "127.0.0.1"
CONNECTIONS_MAX: Final = 64
CLOSE_S: Final = 1.0


class LocalPage:
    """Made on the serving loop."""

    def __init__(self, routes: PageRoutes, *, port: int = 0) -> None:
        """Listen; InputError if the port cannot be used."""
        self._routes = routes
        self._token = secrets.token_urlsafe(24)
        self._socket = _bound(port)
        self.port: Final[int] = self._socket.getsockname()[1]
        self._hosts = frozenset(f"{name}:{self.port}" for name in (LOOPBACK, "localhost"))
        self._cookie = f"kubestow-page-{self.port}"
        # Where browsers find the page, below the printed address.
        self._folder = f"{self.port}-{secrets.token_urlsafe(12)}/"
        self._server = HttpPort(self._handle, self._socket, connections_max=CONNECTIONS_MAX)

    @property
    def address(self) -> str:
        """Where a browser opens the page; it has the token."""
        return f"http://{LOOPBACK}:{self.port}{PREFIX}?token={self._token}"

    @property
    def token(self) -> str:
        return self._token

    def start(self) -> None:
        self._server.start()

    async def close(self) -> None:
        await self._server.close(timeout_s=CLOSE_S)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        refusal = self._refusal(request)
        if refusal is not None:
            return refusal
        if request.path in ("/", PREFIX.rstrip("/")):
            return web.Response(status=307, headers={**NOT_KEPT, "Location": PREFIX})
        if not request.path.startswith(PREFIX):
            return error_answer(404, f'there is no "{request.path}", only {PREFIX}')
        if request.path == PREFIX and request.method == "GET" and "token" in request.query:
            return self._enter(request.query["token"])
        own = PREFIX + self._folder
        prefix = own if request.path.startswith(own) else PREFIX
        if not self._is_known(request):
            if request.path == prefix:
                return sign_in_page("Open the address that kubestow has printed.", has_form=False)
            return error_answer(401, "open the page with the address that kubestow has printed")
        keep(request)
        return await self._routes.handle(request, prefix)

    def _refusal(self, request: web.BaseRequest) -> web.StreamResponse | None:
        host, origin = request.headers.get("Host", ""), request.headers.get("Origin")
        if host not in self._hosts:
            return error_answer(421, f"this is http://{LOOPBACK}:{self.port}, not the host named")
        if origin is not None and origin != f"http://{host}":
            return error_answer(403, "a page of another site must not ask")
        is_foreign = request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin")
        # A link of another site may open the page, and nothing else.
        if is_foreign and (request.path != PREFIX or request.method != "GET"):
            return error_answer(403, "a page of another site must not ask")
        return None

    def _enter(self, token: str) -> web.StreamResponse:
        if not self._is_token(token):
            return sign_in_page(
                "The address has an old token. Open the one printed last.", has_form=False
            )
        path = PREFIX + self._folder
        cookie = cookie_value(self._cookie, token, path=path, is_secure=False)
        return entered_page(cookie, self._folder)

    def _is_known(self, request: web.BaseRequest) -> bool:
        scheme, _, bearer = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self._is_token(bearer.strip())
        try:
            cookie = SimpleCookie(request.headers.get("Cookie", "")).get(self._cookie)
        except CookieError:
            return False
        return cookie is not None and self._is_token(cookie.value)

    def _is_token(self, text: str) -> bool:
        # Bytes of a header that are no UTF-8 cannot be encoded as they are.
        return hmac.compare_digest(text.encode(errors="replace"), self._token.encode())


def _bound(port: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((LOOPBACK, port))
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        raise InputError(
            f"cannot serve the page on port {port}: {error.strerror}; choose another one, or 0 for "
            "a free one"
        ) from error
    return bound
