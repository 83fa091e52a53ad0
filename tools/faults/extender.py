"""The extender of one replica, in virtual time: late, silent, or with wrong answers."""

import asyncio
from collections.abc import Generator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Final

import msgspec

from kubestow.config.extenders import ExtenderConfig
from kubestow.config.scalars import seconds
from kubestow.engine.extenders.post import OK, PostResponse
from kubestow.errors import ExtenderError
from tools.faults.fault import Fault, FaultRates

URL: Final = "http://extender.example.com"
LATENCY_S: Final = 0.01
TIMEOUT_S: Final = 5


class _Request(msgspec.Struct):
    node_names: list[str] = msgspec.field(name="NodeNames")


def extender_config(*, is_ignorable: bool) -> ExtenderConfig:
    return ExtenderConfig(
        url_prefix=URL,
        filter_verb="filter",
        prioritize_verb="prioritize",
        weight=1,
        http_timeout=seconds(TIMEOUT_S),
        node_cache_capable=True,
        ignorable=is_ignorable,
    )


class SimulatedExtender:
    """Leaves all nodes, and prefers those with longer names."""

    def __init__(self, faults: FaultRates) -> None:
        self._faults = faults
        self._is_immediate = False

    @contextmanager
    def answering_at_once(self) -> Generator[None]:
        """For decisions that are made outside of a cycle, which cannot wait."""
        self._is_immediate = True
        try:
            yield
        finally:
            self._is_immediate = False

    def post(
        self, url: str, body: bytes, *, timeout_s: float, **connection: object
    ) -> "Future[PostResponse]":
        """Called in place of `post_json`."""
        answer: Future[PostResponse] = Future()
        right = _right_answer(url.rpartition("/")[2], body)
        if self._is_immediate:
            answer.set_result(right)
            return answer
        faults, delay_s = self._faults, LATENCY_S
        outcome: PostResponse | ExtenderError = right
        if faults.happens(Fault.EXTENDER_SILENT):
            delay_s = timeout_s
            outcome = ExtenderError(f'Post "{url}": no answer within {timeout_s:g} s')
        elif faults.happens(Fault.EXTENDER_ERROR):
            outcome = PostResponse(500, b"")
        elif faults.happens(Fault.EXTENDER_JUNK):
            # It ends in the middle, or names a node that was not sent.
            cut = int(faults.rng.integers(len(right.body)))
            stranger = b'{"NodeNames": ["stranger"]}'
            outcome = PostResponse(OK, stranger if faults.rng.random() < 0.5 else right.body[:cut])
        if faults.happens(Fault.EXTENDER_SLOW):
            delay_s += timeout_s * 0.9 * float(faults.rng.random())
        asyncio.get_running_loop().call_later(delay_s, _settle, answer, outcome)
        return answer


def _settle(answer: "Future[PostResponse]", outcome: PostResponse | ExtenderError) -> None:
    # A cycle that was cancelled does not wait any more.
    if not answer.set_running_or_notify_cancel():
        return
    if isinstance(outcome, ExtenderError):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)


def _right_answer(verb: str, body: bytes) -> PostResponse:
    names = msgspec.json.decode(body, type=_Request).node_names
    if verb == "filter":
        return PostResponse(OK, msgspec.json.encode({"NodeNames": names}))
    scores = [{"Host": name, "Score": len(name) % 10} for name in names]
    return PostResponse(OK, msgspec.json.encode(scores))
