"""Authentication: whose request it is, by the token it presents.

The server has one token of its own, whose owner may do everything. Tokens of service accounts are
made on request (`kubectl create token`) and checked by their signature; they hold until they expire
or the account is deleted. Without a token of its own the server accepts every request.
"""

import base64
import hashlib
import hmac
import json
from typing import Any, Final, NamedTuple

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.clock import NANOSECONDS, Clock
from kubestow.cluster.documents import as_object, value_at
from kubestow.cluster.resources import SERVICE_ACCOUNTS
from kubestow.errors import ApiError

AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
MASTERS: Final = "system:masters"
ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
_SERVICE_ACCOUNT: Final = "system:serviceaccount"
_SCHEME: Final = "bearer "


class Subject(NamedTuple):
    """The user of a request."""

    name: str
    groups: tuple[str, ...]
    uid: str = ""

    @property
    def document(self) -> JsonObject:
        found = {"username": self.name, "uid": self.uid, "groups": list(self.groups)}
        return {key: value for key, value in found.items() if value}


ADMINISTRATOR: Final = Subject("kubernetes-admin", (MASTERS, AUTHENTICATED))
ANONYMOUS: Final = Subject("system:anonymous", (UNAUTHENTICATED,))


def impersonated(name: str, groups: list[str]) -> Subject:
    """The user that a request names in its headers, with the groups every such user has."""
    if name == ANONYMOUS.name:
        return Subject(name, (*groups, UNAUTHENTICATED))
    found = list(groups)
    if name.startswith(f"{_SERVICE_ACCOUNT}:") and not groups:
        namespace = name.split(":")[2]
        found += (f"{_SERVICE_ACCOUNT}s", f"{_SERVICE_ACCOUNT}s:{namespace}")
    return Subject(name, (*found, AUTHENTICATED))


class Authentication:
    def __init__(self, token: str, cluster: MemoryCluster, clock: Clock) -> None:
        """Without a token every request is that of the administrator."""
        self._token = token
        self._cluster = cluster
        self._clock = clock
        self._key = hashlib.sha256(b"service accounts:" + token.encode()).digest()

    def subject_of(self, authorization: str) -> Subject:
        """Whose request it is by its header; 401 for a token that is not accepted."""
        if not self._token:
            return ADMINISTRATOR
        if not authorization:
            return ANONYMOUS
        if authorization.lower().startswith(_SCHEME):
            found = self.subject_of_token(authorization[len(_SCHEME) :].strip())
            if found is not None:
                return found
        raise unauthorized()

    def subject_of_token(self, token: str) -> Subject | None:
        """The owner of a token; None if it is not accepted."""
        # Compared in constant time: the duration must not reveal how much of a guess is right.
        raw = token.encode(errors="surrogateescape")
        if self._token and hmac.compare_digest(raw, self._token.encode()):
            return ADMINISTRATOR
        claims = self._claims(token)
        if claims is None or not _is_later(claims.get("exp"), self._clock.now_ns()):
            return None
        namespace = value_at(claims, "kubernetes.io", "namespace")
        account = as_object(value_at(claims, "kubernetes.io", "serviceaccount"))
        found = self._cluster.find(SERVICE_ACCOUNTS, str(namespace), str(account.get("name")))
        if found is None or found.uid != account.get("uid"):
            return None
        groups = (f"{_SERVICE_ACCOUNT}s", f"{_SERVICE_ACCOUNT}s:{namespace}", AUTHENTICATED)
        return Subject(claims["sub"], groups, found.uid)

    def new_token(self, account: StoredObject, audiences: list[str], lifetime_s: int) -> str:
        """A token of a service account."""
        namespace, name = account.key
        now_s = self._clock.now_ns() // NANOSECONDS
        claims: JsonObject = {
            "aud": audiences,
            "exp": now_s + lifetime_s,
            "iat": now_s,
            "iss": ISSUER,
            "kubernetes.io": {
                "namespace": namespace,
                "serviceaccount": {"name": name, "uid": account.uid},
            },
            "nbf": now_s,
            "sub": f"{_SERVICE_ACCOUNT}:{namespace}:{name}",
        }
        signed = f"{_encoded({'alg': 'HS256', 'typ': 'JWT'})}.{_encoded(claims)}"
        return f"{signed}.{self._signature(signed)}"

    def _signature(self, signed: str) -> str:
        digest = hmac.digest(self._key, signed.encode(errors="surrogateescape"), "sha256")
        return _base64(digest)

    def _claims(self, token: str) -> JsonObject | None:
        """What a token signed here says; None for any other text."""
        signed, dot, signature = token.rpartition(".")
        given = signature.encode(errors="surrogateescape")
        if not dot or not hmac.compare_digest(given, self._signature(signed).encode()):
            return None
        payload = signed.rpartition(".")[2]
        padded = payload + "=" * (-len(payload) % 4)
        return json.loads(base64.urlsafe_b64decode(padded))


def unauthorized() -> ApiError:
    return ApiError("Unauthorized", code=401, reason="Unauthorized")


def _is_later(expiry_s: Any, now_ns: int) -> bool:
    return isinstance(expiry_s, int) and expiry_s * NANOSECONDS > now_ns


def _encoded(part: JsonObject) -> str:
    return _base64(json.dumps(part, separators=(",", ":")).encode())


def _base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
