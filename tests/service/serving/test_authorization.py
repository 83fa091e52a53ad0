"""Authorization (spec 09 §7)."""

import asyncio

import pytest

from kubestow.api.meta import JsonObject
from kubestow.errors import ApiError
from kubestow.service.serving.authentication import ANONYMOUS_USER, User
from kubestow.service.serving.authorization import (
    ACCESS_REVIEWS,
    Authorizer,
    forbidden_message,
)
from kubestow.testing.clock import ManualClock

MONITOR = User(name="monitor", uid="7", groups=("ops",), extra=(("k", ("v",)),))
MASTER = User(name="root", groups=("system:masters",))


class Reviewer:
    """Allows the monitor to read metrics."""

    def __init__(self) -> None:
        self.asked: list[JsonObject] = []
        self.failure: ApiError | None = None

    async def create_document(self, path: str, document: JsonObject) -> JsonObject:
        assert path == ACCESS_REVIEWS
        if self.failure is not None:
            raise self.failure
        self.asked.append(document["spec"])
        attributes = document["spec"]["nonResourceAttributes"]
        is_allowed = document["spec"]["user"] == "monitor" and attributes == {
            "path": "/metrics",
            "verb": "get",
        }
        return {"status": {"allowed": is_allowed}}


class Desk:
    def __init__(self, *, has_reviewer: bool = True) -> None:
        self.clock = ManualClock()
        self.reviewer = Reviewer()
        self.authorizer = Authorizer(
            self.clock,
            reviewer=self.reviewer if has_reviewer else None,
            always_allow_paths=("/healthz", "/readyz", "/livez", "/open/*"),
            allow_ttl_s=10,
            deny_ttl_s=5,
        )

    def allows(self, user: User, path: str, method: str = "GET") -> bool:
        return asyncio.run(self.authorizer.allows(user, path, method))


@pytest.mark.parametrize(
    ("user", "path", "method", "is_allowed"),
    [
        pytest.param(ANONYMOUS_USER, "/healthz", "GET", True, id="open"),
        pytest.param(ANONYMOUS_USER, "/readyz/shutdown", "GET", False, id="sub-path-is-not-open"),
        pytest.param(ANONYMOUS_USER, "/open/anything", "GET", True, id="open-prefix"),
        pytest.param(ANONYMOUS_USER, "/metrics", "GET", False, id="5-anonymous"),
        pytest.param(MONITOR, "/metrics", "GET", True, id="reviewed"),
        pytest.param(MONITOR, "/metrics", "DELETE", False, id="verb-counts"),
        pytest.param(MONITOR, "/configz", "GET", False, id="path-counts"),
        pytest.param(MASTER, "/debug/flags/v", "PUT", True, id="masters"),
    ],
)
def test_who_is_allowed(user: User, path: str, method: str, is_allowed: bool) -> None:
    assert Desk().allows(user, path, method) is is_allowed


def test_the_review_has_everything_about_the_user() -> None:
    desk = Desk()
    desk.allows(MONITOR, "/metrics")
    assert desk.reviewer.asked == [
        {
            "user": "monitor",
            "uid": "7",
            "groups": ["ops"],
            "extra": {"k": ["v"]},
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
        }
    ]


@pytest.mark.parametrize(
    ("user", "ttl_s"), [(MONITOR, 10), (ANONYMOUS_USER, 5)], ids=["allow", "deny"]
)
def test_answers_are_cached(user: User, ttl_s: float) -> None:
    desk = Desk()
    desk.allows(user, "/metrics")
    desk.clock.advance_s(ttl_s - 0.5)
    desk.allows(user, "/metrics")
    assert len(desk.reviewer.asked) == 1
    desk.clock.advance_s(1)
    desk.allows(user, "/metrics")
    assert len(desk.reviewer.asked) == 2


def test_access_is_refused_while_the_server_fails_and_that_is_not_cached() -> None:
    desk = Desk()
    desk.reviewer.failure = ApiError("down")
    assert not desk.allows(MONITOR, "/metrics")
    desk.reviewer.failure = None
    assert desk.allows(MONITOR, "/metrics")


def test_without_a_reviewer_only_open_paths_are_open() -> None:
    desk = Desk(has_reviewer=False)
    assert desk.allows(ANONYMOUS_USER, "/livez")
    assert not desk.allows(MONITOR, "/metrics")


def test_a_refusal_names_user_verb_and_path() -> None:
    assert forbidden_message(ANONYMOUS_USER, "/metrics", "GET") == (
        'forbidden: User "system:anonymous" cannot get path "/metrics"'
    )
