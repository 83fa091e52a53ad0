"""Authentication (spec 09 §7): the first way that succeeds; without credentials anonymous.

    client certificate   has name and groups, if a client authority issued it
    request headers      name and groups from a proxy that has a certificate of its own
    bearer token         the API server is asked (TokenReview)

TLS has verified certificates against both kinds of authorities; the kind that issued one decides
what it is used for. Only certificates that an authority issued directly count.
"""

import hmac
import logging
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol
from urllib.parse import unquote

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import NameOID

from kubestow.api.meta import JsonObject
from kubestow.clock import Clock
from kubestow.errors import ApiError
from kubestow.logs import fail
from kubestow.service.serving.reviews import ExpiringCache, ReviewLimit

log = logging.getLogger(__name__)

ANONYMOUS: Final = "system:anonymous"
AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
AUTHORIZATION: Final = "Authorization"
_BEARER: Final = "bearer "


class User(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


ANONYMOUS_USER: Final = User(name=ANONYMOUS, groups=(UNAUTHENTICATED,))


class UnauthorizedError(Exception):
    """The credentials are not valid."""


class Reviewer(Protocol):
    """Sends a review to the API server (`cluster.http.HttpClient`)."""

    async def create_document(self, path: str, document: JsonObject) -> JsonObject: ...


class Headers(Protocol):
    """Headers of a request; names are case-insensitive."""

    def getall(self, key: str, default: Sequence[str], /) -> Sequence[str]: ...

    def keys(self) -> Iterable[str]: ...


class TokenHeaders:
    """The headers of a request that has a bearer token and nothing else."""

    def __init__(self, token: str) -> None:
        self._token = token

    def getall(self, key: str, default: Sequence[str], /) -> Sequence[str]:
        return (f"Bearer {self._token}",) if key == AUTHORIZATION else default

    def keys(self) -> Iterable[str]:
        return (AUTHORIZATION,)


class RequestHeaderSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Which headers of a proxy are trusted; without an authority none are."""

    authorities: bytes = b""
    allowed_names: tuple[str, ...] = ()
    usernames: tuple[str, ...] = ("x-remote-user",)
    uids: tuple[str, ...] = ()
    groups: tuple[str, ...] = ("x-remote-group",)
    extra_prefixes: tuple[str, ...] = ("x-remote-extra-",)


class TrustSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The authorities whose certificates identify users; may change while the process runs."""

    client_authorities: bytes = b""
    request_header: RequestHeaderSettings = RequestHeaderSettings()

    @property
    def all_authorities(self) -> bytes:
        return self.client_authorities + b"\n" + self.request_header.authorities


class Authenticator:
    def __init__(
        self,
        clock: Clock,
        *,
        reviewer: Reviewer | None,
        token_ttl_s: float,
        trust: TrustSettings | None = None,
    ) -> None:
        """Without a reviewer tokens are ignored."""
        self._reviewer = reviewer
        self._token_ttl_s = token_ttl_s
        self._reviewed = ExpiringCache[bytes, User | None](clock)
        self._refused = ExpiringCache[bytes, bool](clock)
        self._limit = ReviewLimit(clock)
        self._key = secrets.token_bytes(32)
        self.trust = trust or TrustSettings()

    async def identify(self, headers: Headers, certificate: bytes | None) -> User:
        """The user of a request; `certificate` is that of the client, as DER.

        Raises UnauthorizedError for an invalid token, TooManyReviewsError if it cannot be reviewed.
        """
        if certificate is not None:
            user = self._by_certificate(headers, x509.load_der_x509_certificate(certificate))
            if user is not None:
                return user
        token = _bearer_token(headers)
        if token and self._reviewer is not None:
            return await self._by_token(token, self._reviewer)
        return ANONYMOUS_USER

    # --- certificates ---

    def _by_certificate(self, headers: Headers, certificate: x509.Certificate) -> User | None:
        proxy = self.trust.request_header
        if proxy.authorities and is_issued_by(certificate, proxy.authorities):
            user = _by_headers(headers, certificate, proxy)
            if user is not None:
                return user
        if is_issued_by(certificate, self.trust.client_authorities):
            name = _texts(certificate, NameOID.COMMON_NAME)
            groups = _texts(certificate, NameOID.ORGANIZATION_NAME)
            if name:
                return User(name=name[0], groups=(*groups, AUTHENTICATED))
        return None

    # --- tokens ---

    async def _by_token(self, token: str, reviewer: Reviewer) -> User:
        # Tokens are not kept in memory, only their keyed hashes.
        key = hmac.digest(self._key, token.encode(), "sha256")
        user = self._reviewed.get(key)
        if user is None and self._refused.get(key) is None:
            with self._limit.reviewing(key):
                user = await self._review(token, reviewer)
            if user is None:
                self._refused.put(key, True, ttl_s=self._token_ttl_s)
            else:
                self._reviewed.put(key, user, ttl_s=self._token_ttl_s)
                self._limit.accepted(key)
        if user is None:
            raise UnauthorizedError
        return user

    async def _review(self, token: str, reviewer: Reviewer) -> User | None:
        question: JsonObject = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token},
        }
        try:
            answer = await reviewer.create_document(TOKEN_REVIEWS, question)
        except ApiError as error:
            fail(log, "Unable to authenticate the request", error)
            raise UnauthorizedError from error
        status: JsonObject = answer.get("status") or {}
        if not status.get("authenticated"):
            return None
        user: JsonObject = status.get("user") or {}
        extra: Mapping[str, Sequence[str]] = user.get("extra") or {}
        listed: list[str] = user.get("groups") or []
        groups = tuple(listed)
        return User(
            name=user.get("username", ""),
            uid=user.get("uid", ""),
            groups=groups if AUTHENTICATED in groups else (*groups, AUTHENTICATED),
            extra=tuple(sorted((key, tuple(values)) for key, values in extra.items())),
        )


def is_issued_by(certificate: x509.Certificate, authorities: bytes) -> bool:
    """Whether one of these authorities (PEM) signed the certificate itself."""
    if not authorities.strip():
        return False
    for authority in x509.load_pem_x509_certificates(authorities):
        try:
            certificate.verify_directly_issued_by(authority)
        except (ValueError, TypeError, InvalidSignature):
            continue
        return True
    return False


def _by_headers(
    headers: Headers, certificate: x509.Certificate, settings: RequestHeaderSettings
) -> User | None:
    names = _texts(certificate, NameOID.COMMON_NAME)
    if settings.allowed_names and not set(names) & set(settings.allowed_names):
        return None
    name = next(iter(_values(headers, settings.usernames)), "")
    if not name:
        return None
    extra: dict[str, list[str]] = {}
    for header in headers.keys():  # noqa: SIM118 - a multi-value mapping, not a dict
        for prefix in settings.extra_prefixes:
            if header.lower().startswith(prefix.lower()):
                key = unquote(header[len(prefix) :].lower())
                extra.setdefault(key, []).extend(_values(headers, (header,)))
    return User(
        name=name,
        uid=next(iter(_values(headers, settings.uids)), ""),
        groups=(*_values(headers, settings.groups), AUTHENTICATED),
        extra=tuple(sorted((key, tuple(values)) for key, values in extra.items())),
    )


def _values(headers: Headers, names: Sequence[str]) -> list[str]:
    return [_readable(value) for name in names for value in headers.getall(name, ())]


def _texts(certificate: x509.Certificate, oid: x509.ObjectIdentifier) -> list[str]:
    return [str(attribute.value) for attribute in certificate.subject.get_attributes_for_oid(oid)]


def _bearer_token(headers: Headers) -> str:
    for value in headers.getall(AUTHORIZATION, ()):
        if value[: len(_BEARER)].lower() == _BEARER:
            return _readable(value[len(_BEARER) :].strip())
    return ""


def _readable(value: str) -> str:
    """A header with its bytes that are not UTF-8 replaced, as Go sends them on in JSON."""
    return value.encode(errors="surrogateescape").decode(errors="replace")
