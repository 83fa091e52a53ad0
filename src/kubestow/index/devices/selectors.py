"""Which devices a CEL expression selects (spec 08 B8).

An answer depends on the expression and what the device offers alone, so it is kept once for all
devices that offer the same, errors included. Not here: how an expression is evaluated
(`expressions`).

An expression may take a second, within the limit that upstream sets. Where the attempt can be set
aside (`Waiter`), one that costs more than a small share of the limit is evaluated in a thread, and
other pods are served meanwhile.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import Any, Final, NoReturn, Protocol

from kubestow.index.devices.inventory import DeviceContent, PublishedDevice

# Expressions whose answers are kept with each content; beyond it, all are evaluated again. Any
# claim may have a different one.
MATCHES_MAX: Final = 64
# The same for expressions that cost more than `SHARE_AT_ONCE`. Each takes 10 ms or
# more, and the next attempt needs all answers of the one before.
COSTLY_MATCHES_MAX: Final = 1024
SHARE_AT_ONCE: Final = 1 / 32


class SelectorFailure(Exception):
    """An expression gave no answer for a device; the text has the stage and the reason."""


class Waiter(Protocol):
    """What an attempt can do about work that takes long (`framework.attempt_timer`)."""

    @property
    def may_wait(self) -> bool: ...

    def wait_for(self, awaited: "Future[Any]", /) -> NoReturn: ...


def selects(expression: str, published: PublishedDevice, waiter: Waiter | None = None) -> bool:
    """Whether the expression is true for the device; raises SelectorFailure.

    With a waiter that may wait, an expensive expression raises what sets the attempt aside.
    """
    content = published.content
    matches = content.matches
    answer = matches.get(expression)
    if answer is None and content.costly_matches:
        answer = _costly_answer(expression, content, waiter)
    if answer is None:
        answer = _evaluate_at_once(expression, published, waiter)
        if len(matches) >= MATCHES_MAX:
            matches.clear()
        matches[expression] = answer
    if isinstance(answer, bool):
        return answer
    raise answer


def _costly_answer(
    expression: str, content: DeviceContent, waiter: Waiter | None
) -> bool | Exception | None:
    costly = content.costly_matches
    answer = costly.get(expression)
    if isinstance(answer, Future):
        if not answer.done() and waiter is not None and waiter.may_wait:
            waiter.wait_for(answer)
        answer = costly[expression] = answer.result()
    return answer


def _evaluate_at_once(
    expression: str, published: PublishedDevice, waiter: Waiter | None
) -> bool | SelectorFailure:
    if waiter is None or not waiter.may_wait:
        return _evaluate_whole(expression, published)
    answer = _evaluate(expression, published, SHARE_AT_ONCE)
    if answer is not None:
        return answer
    costly = published.content.costly_matches
    if len(costly) >= COSTLY_MATCHES_MAX:
        costly.clear()
    future = costly[expression] = _thread().submit(_evaluate_whole, expression, published)
    waiter.wait_for(future)


def _evaluate_whole(expression: str, published: PublishedDevice) -> bool | SelectorFailure:
    answer = _evaluate(expression, published, 1.0)
    assert answer is not None
    return answer


def _evaluate(
    expression: str, published: PublishedDevice, share: float
) -> bool | SelectorFailure | None:
    """The answer; None if the share is below 1 and not enough."""
    # Imported with the first expression: 34 modules that most clusters never need.
    from kubestow.index.devices.expressions import evaluate

    answer = evaluate(expression, published, share)
    return SelectorFailure(answer) if isinstance(answer, str) else answer


@lru_cache(1)
def _thread() -> ThreadPoolExecutor:
    # One: more would share the same interpreter lock, and delay the scheduler more.
    return ThreadPoolExecutor(1, thread_name_prefix="expressions")
