"""Which devices a CEL expression selects, and what it computes of them (spec 08 B8, 12 §10.3).

An answer depends on the expression and what the device offers alone, so it is kept once for all
devices that offer the same, errors included. Not here: how an expression is evaluated
(`expressions`).

An expression may take a second, within the limit that upstream sets. Where the attempt can be set
aside (`Waiter`), one that costs more than a small share of the limit is evaluated in a thread, and
other pods are served meanwhile.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import Any, Final, NamedTuple, NoReturn, Protocol

from kubestow.api.device import DeviceAttribute
from kubestow.index.devices.inventory import Answer, DeviceContent, PublishedDevice

# Expressions whose answers are kept with each content; beyond it, all are evaluated again. Any
# claim may have a different one.
MATCHES_MAX: Final = 64
# The same for expressions that cost more than `SHARE_AT_ONCE`. Each takes 10 ms or
# more, and the next attempt needs all answers of the one before.
COSTLY_MATCHES_MAX: Final = 1024
SHARE_AT_ONCE: Final = 1 / 32
_DERIVED: Final = "derived: "  # before the expression of an attribute


class SelectorFailure(Exception):
    """An expression gave no answer for a device; the text has the stage and the reason."""


class Waiter(Protocol):
    """What an attempt can do about work that takes long (`framework.attempt_timer`)."""

    @property
    def may_wait(self) -> bool: ...

    def wait_for(self, awaited: "Future[Any]", /) -> NoReturn: ...


class _Question(NamedTuple):
    """An expression, and whether it computes an attribute; else it selects devices."""

    expression: str
    derives: bool


def selects(expression: str, published: PublishedDevice, waiter: Waiter | None = None) -> bool:
    """Whether the expression is true for the device; raises SelectorFailure.

    With a waiter that may wait, an expensive expression raises what sets the attempt aside.
    """
    answer = published.content.matches.get(expression)
    if answer is None:
        answer = _answer(_Question(expression, derives=False), expression, published, waiter)
    if isinstance(answer, bool):
        return answer
    assert isinstance(answer, Exception), answer
    raise answer


def derive(
    expression: str, published: PublishedDevice, waiter: Waiter | None = None
) -> DeviceAttribute:
    """The attribute that the expression computes of the device; raises SelectorFailure, and as
    `selects` what sets the attempt aside."""
    key = f"{_DERIVED}{expression}"
    answer = published.content.matches.get(key)
    if answer is None:
        answer = _answer(_Question(expression, derives=True), key, published, waiter)
    if isinstance(answer, DeviceAttribute):
        return answer
    assert isinstance(answer, Exception), answer
    raise answer


def _answer(
    question: _Question, key: str, published: PublishedDevice, waiter: Waiter | None
) -> Answer:
    """The answer, which is kept under the key."""
    content = published.content
    answer = _costly_answer(key, content, waiter) if content.costly_matches else None
    if answer is None:
        answer = _evaluate_at_once(question, key, published, waiter)
        matches = content.matches
        if len(matches) >= MATCHES_MAX:
            matches.clear()
        matches[key] = answer
    return answer


def _costly_answer(key: str, content: DeviceContent, waiter: Waiter | None) -> Answer | None:
    costly = content.costly_matches
    answer = costly.get(key)
    if isinstance(answer, Future):
        if not answer.done() and waiter is not None and waiter.may_wait:
            waiter.wait_for(answer)
        answer = costly[key] = answer.result()
    return answer


def _evaluate_at_once(
    question: _Question, key: str, published: PublishedDevice, waiter: Waiter | None
) -> Answer:
    if waiter is None or not waiter.may_wait:
        return _evaluate_whole(question, published)
    answer = _evaluate(question, published, SHARE_AT_ONCE)
    if answer is not None:
        return answer
    costly = published.content.costly_matches
    if len(costly) >= COSTLY_MATCHES_MAX:
        costly.clear()
    future = costly[key] = _thread().submit(_evaluate_whole, question, published)
    waiter.wait_for(future)


def _evaluate_whole(question: _Question, published: PublishedDevice) -> Answer:
    answer = _evaluate(question, published, 1.0)
    assert answer is not None
    return answer


def _evaluate(question: _Question, published: PublishedDevice, share: float) -> Answer | None:
    """The answer; None if the share is below 1 and not enough."""
    # Imported with the first expression: 34 modules that most clusters never need.
    from kubestow.index.devices.expressions import evaluate, evaluate_derived

    ask = evaluate_derived if question.derives else evaluate
    answer = ask(question.expression, published, share)
    return SelectorFailure(answer) if isinstance(answer, str) else answer


@lru_cache(1)
def _thread() -> ThreadPoolExecutor:
    # One: more would share the same interpreter lock, and delay the scheduler more.
    return ThreadPoolExecutor(1, thread_name_prefix="expressions")
