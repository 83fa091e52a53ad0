"""Reviews that the API server does not answer keep out neither probes nor known clients."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from multidict import CIMultiDict

from kubestow.api.meta import JsonObject
from kubestow.service.serving.authentication import Authenticator, User
from kubestow.service.serving.authorization import Authorizer
from kubestow.service.serving.reviews import KNOWN_S, REVIEWS_MAX, TooManyReviewsError
from kubestow.testing.clock import ManualClock

TTL_S = 10


class SlowReviewer:
    """Accepts everything, once it is released."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.waiting = 0

    async def create_document(self, path: str, document: JsonObject) -> JsonObject:
        self.waiting += 1
        try:
            await self.released.wait()
        finally:
            self.waiting -= 1
        user = {"username": document["spec"].get("token", "")}
        return {"status": {"authenticated": True, "allowed": True, "user": user}}


class Desk:
    """Asks about one name, as a token or as a path."""

    def __init__(self, kind: str) -> None:
        self.clock = ManualClock()
        self.reviewer = SlowReviewer()
        self._kind = kind
        self._authenticator = Authenticator(self.clock, reviewer=self.reviewer, token_ttl_s=TTL_S)
        self._authorizer = Authorizer(
            self.clock,
            reviewer=self.reviewer,
            always_allow_paths=["/healthz"],
            allow_ttl_s=TTL_S,
            deny_ttl_s=TTL_S,
        )

    async def ask(self, name: str) -> object:
        if self._kind == "token":
            headers = CIMultiDict({"Authorization": f"Bearer {name}"})
            return await self._authenticator.identify(headers, None)
        return await self._authorizer.allows(User(name="jane"), f"/{name}", "GET")

    async def ask_later(self, name: str) -> "asyncio.Task[object]":
        task = asyncio.create_task(self.ask(name))
        await asyncio.sleep(0)
        return task


def run(main: Callable[[Desk], Coroutine[Any, Any, None]], kind: str) -> None:
    async def made() -> None:
        await main(Desk(kind))

    asyncio.run(made())


@pytest.mark.parametrize("kind", ["token", "path"])
def test_a_limited_number_of_reviews_is_under_way(kind: str) -> None:
    async def main(desk: Desk) -> None:
        asked = [await desk.ask_later(f"unknown-{number}") for number in range(REVIEWS_MAX)]
        assert desk.reviewer.waiting == REVIEWS_MAX
        with pytest.raises(TooManyReviewsError):
            await desk.ask("another")
        assert desk.reviewer.waiting == REVIEWS_MAX
        asked[0].cancel()  # as when its client has left
        await asyncio.gather(asked[0], return_exceptions=True)
        await desk.ask_later("another")
        desk.reviewer.released.set()
        await asyncio.gather(*asked[1:])
        assert await desk.ask("one-more")

    run(main, kind)


@pytest.mark.parametrize("kind", ["token", "path"])
def test_what_was_accepted_before_is_reviewed_all_the_same(kind: str) -> None:
    async def main(desk: Desk) -> None:
        desk.reviewer.released.set()
        assert await desk.ask("prometheus")
        desk.reviewer.released.clear()
        for number in range(REVIEWS_MAX):
            await desk.ask_later(f"unknown-{number}")
        desk.clock.advance_s(TTL_S + 1)
        known = await desk.ask_later("prometheus")
        assert desk.reviewer.waiting == REVIEWS_MAX + 1
        desk.reviewer.released.set()
        assert await known
        desk.reviewer.released.clear()
        desk.clock.advance_s(KNOWN_S + 1)
        for number in range(REVIEWS_MAX):
            await desk.ask_later(f"others-{number}")
        with pytest.raises(TooManyReviewsError):
            await desk.ask("prometheus")
        desk.reviewer.released.set()

    run(main, kind)
