"""Authentication (spec 09 §7)."""

import asyncio
from typing import Any

import pytest
from multidict import CIMultiDict

from kubestow.api.meta import JsonObject
from kubestow.errors import ApiError
from kubestow.service.serving.authentication import (
    ANONYMOUS_USER,
    TOKEN_REVIEWS,
    Authenticator,
    RequestHeaderSettings,
    TrustSettings,
    UnauthorizedError,
    User,
)
from kubestow.testing.clock import ManualClock


class Reviewer:
    """Accepts one token."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.failure: ApiError | None = None

    async def create_document(self, path: str, document: JsonObject) -> JsonObject:
        assert path == TOKEN_REVIEWS
        if self.failure is not None:
            raise self.failure
        token = document["spec"]["token"]
        self.asked.append(token)
        if token != "good":
            return {"status": {"authenticated": False, "error": "no such token"}}
        user = {"username": "jane", "uid": "7", "groups": ["dev"], "extra": {"scopes": ["a", "b"]}}
        return {"status": {"authenticated": True, "user": user}}


JANE = User(
    name="jane",
    uid="7",
    groups=("dev", "system:authenticated"),
    extra=(("scopes", ("a", "b")),),
)


class Desk:
    def __init__(self, trust: TrustSettings | None = None, *, has_reviewer: bool = True) -> None:
        self.clock = ManualClock()
        self.reviewer = Reviewer()
        self.authenticator = Authenticator(
            self.clock,
            reviewer=self.reviewer if has_reviewer else None,
            token_ttl_s=10,
            trust=trust,
        )

    def identify(self, certificate: bytes | None = None, **headers: str) -> User:
        named = CIMultiDict({name.replace("_", "-"): value for name, value in headers.items()})
        return asyncio.run(self.authenticator.identify(named, certificate))


def test_without_credentials_the_user_is_anonymous() -> None:
    user = Desk().identify()
    assert user is ANONYMOUS_USER
    assert (user.name, user.groups) == ("system:anonymous", ("system:unauthenticated",))


def test_a_token_is_reviewed() -> None:
    assert Desk().identify(Authorization="Bearer good") == JANE


def test_an_invalid_token_is_refused_even_where_none_is_needed() -> None:
    with pytest.raises(UnauthorizedError):
        Desk().identify(Authorization="Bearer bad")


def test_a_token_is_refused_while_it_cannot_be_reviewed() -> None:
    desk = Desk()
    desk.reviewer.failure = ApiError("down")
    with pytest.raises(UnauthorizedError):
        desk.identify(Authorization="Bearer good")
    desk.reviewer.failure = None
    assert desk.identify(Authorization="Bearer good") == JANE  # that was not cached


def test_without_a_reviewer_tokens_are_ignored() -> None:
    assert Desk(has_reviewer=False).identify(Authorization="Bearer good") is ANONYMOUS_USER


@pytest.mark.parametrize("header", ["Basic Zm9vOmJhcg==", "Bearer", "Bearer ", ""])
def test_other_authorization_schemes_are_ignored(header: str) -> None:
    assert Desk().identify(Authorization=header) is ANONYMOUS_USER


@pytest.mark.parametrize("token", ["good", "bad"])
def test_reviews_are_cached_for_ten_seconds(token: str) -> None:
    desk = Desk()

    def ask() -> None:
        try:
            desk.identify(Authorization=f"bearer {token}")
        except UnauthorizedError:
            assert token == "bad"

    ask()
    desk.clock.advance_s(9.5)
    ask()
    assert len(desk.reviewer.asked) == 1
    desk.clock.advance_s(1)
    ask()
    assert len(desk.reviewer.asked) == 2


def test_a_client_certificate_has_name_and_groups(authority: Any) -> None:
    desk = Desk(TrustSettings(client_authorities=authority.pem))
    user = desk.identify(authority.client("admin", "system:masters", "ops").der)
    assert user == User(name="admin", groups=("system:masters", "ops", "system:authenticated"))


def test_a_certificate_takes_precedence_over_a_token(authority: Any) -> None:
    desk = Desk(TrustSettings(client_authorities=authority.pem))
    user = desk.identify(authority.client("admin").der, Authorization="Bearer bad")
    assert user.name == "admin"


def test_a_certificate_of_an_unknown_authority_is_ignored(authority: Any, stranger: Any) -> None:
    desk = Desk(TrustSettings(client_authorities=authority.pem))
    assert desk.identify(stranger.client("admin", "system:masters").der) is ANONYMOUS_USER


class TestRequestHeaders:
    """A proxy sends the user in headers."""

    def trust(self, authority: Any, proxy_authority: Any, *names: str) -> TrustSettings:
        return TrustSettings(
            client_authorities=authority.pem,
            request_header=RequestHeaderSettings(
                authorities=proxy_authority.pem, allowed_names=names, uids=("x-remote-uid",)
            ),
        )

    def test_headers_of_a_proxy_are_trusted(self, authority: Any, proxy_authority: Any) -> None:
        desk = Desk(self.trust(authority, proxy_authority, "front-proxy"))
        user = desk.identify(
            proxy_authority.client("front-proxy").der,
            X_Remote_User="jane",
            X_Remote_Group="dev",
            X_Remote_Uid="7",
            **{"X-Remote-Extra-Acme%2FScope": "a"},
        )
        assert user == User(
            name="jane",
            uid="7",
            groups=("dev", "system:authenticated"),
            extra=(("acme/scope", ("a",)),),
        )

    def test_bytes_of_headers_that_are_not_utf_8_are_replaced(
        self, authority: Any, proxy_authority: Any
    ) -> None:
        desk = Desk(self.trust(authority, proxy_authority))
        user = desk.identify(
            proxy_authority.client("proxy").der,
            X_Remote_User="a\udcff",
            X_Remote_Extra_Scope="\udcfe",
        )
        assert (user.name, user.extra) == ("a\ufffd", (("scope", ("\ufffd",)),))

    def test_only_allowed_names_may_be_proxies(self, authority: Any, proxy_authority: Any) -> None:
        desk = Desk(self.trust(authority, proxy_authority, "front-proxy"))
        assert (
            desk.identify(proxy_authority.client("other").der, X_Remote_User="jane")
            is ANONYMOUS_USER
        )

    def test_any_name_may_be_a_proxy_if_none_is_listed(
        self, authority: Any, proxy_authority: Any
    ) -> None:
        desk = Desk(self.trust(authority, proxy_authority))
        user = desk.identify(proxy_authority.client("other").der, X_Remote_User="jane")
        assert user.name == "jane"

    def test_headers_without_a_proxys_certificate_are_ignored(
        self, authority: Any, proxy_authority: Any
    ) -> None:
        desk = Desk(self.trust(authority, proxy_authority))
        assert desk.identify(X_Remote_User="jane") is ANONYMOUS_USER
        user = desk.identify(authority.client("bob").der, X_Remote_User="jane")
        assert user.name == "bob"

    def test_a_proxy_without_headers_is_anonymous(
        self, authority: Any, proxy_authority: Any
    ) -> None:
        desk = Desk(self.trust(authority, proxy_authority))
        assert (
            desk.identify(proxy_authority.client("front-proxy", "system:masters").der)
            is ANONYMOUS_USER
        )
