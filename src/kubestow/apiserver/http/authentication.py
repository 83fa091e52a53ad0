"""Authentication: every request is accepted, or only those with the token."""

import hmac
from typing import Final

from kubestow.errors import ApiError

# What a load balancer or a liveness probe may read without a token.
_PUBLIC: Final = ("/healthz", "/livez", "/readyz", "/version")
_SCHEME: Final = "bearer "


class Authentication:
    def __init__(self, token: str = "") -> None:
        """Without a token every request is accepted."""
        self._token = token

    def require(self, path: str, authorization: str) -> None:
        """401 unless the request is accepted."""
        if not self._token or path.startswith(_PUBLIC):
            return
        is_bearer = authorization.lower().startswith(_SCHEME)
        if not is_bearer or not self.is_token(authorization[len(_SCHEME) :].strip()):
            raise ApiError("Unauthorized", code=401, reason="Unauthorized")

    def is_token(self, text: str) -> bool:
        """Compare in constant time: the duration must not reveal how much of a guess is right."""
        return bool(self._token) and hmac.compare_digest(text.encode(), self._token.encode())
