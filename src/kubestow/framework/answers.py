"""Checks what plugins return, where it is received.

Plugins of users may not have been type-checked: the declared types are not trusted. Each function
takes what a method returned and gives it back as the framework uses it. Anything that the method
may not return raises `WrongAnswerError`; the guard around the call turns that into a failure of the
attempt. For the usual answers a check is one comparison of types, and for arrays of dtype and
shape: numbers are not looked at.
"""

import reprlib
from contextlib import suppress
from inspect import iscoroutine
from numbers import Real
from typing import Any, Final, cast

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray, NarrowArray
from kubestow.errors import WrongAnswerError
from kubestow.framework.plugin import PostFilterResult, PreFilterResult, PreFlight, Restriction
from kubestow.framework.profile import MAX_INT64
from kubestow.framework.status import Code, Status

_INT64: Final = np.dtype(np.int64)
# The shortest duration that Go can express; a timeout below 0 ends the wait at once, as upstream.
_DURATION_S_MIN: Final = -MAX_INT64 / 1e9

_STATUS: Final = "a Status or None"
_TRUTHS: Final = (bool, np.bool_)
_SHOWN_AS_THEY_ARE: Final = (bool, int, float, str, np.generic)


def wrong_answer(plugin: str, method: str, answer: object, allowed: str) -> WrongAnswerError:
    return WrongAnswerError(
        f'plugin "{plugin}" returned {shown(answer)} from {method}, expected {allowed}'
    )


def shown(answer: object) -> str:
    """A value as a message shows it: short ones as Python writes them, others by their type."""
    if iscoroutine(answer):
        answer.close()  # It never runs, and Python would warn of that much later.
        return "a coroutine (its method must not be async)"
    if answer is None or isinstance(answer, _SHOWN_AS_THEY_ARE):
        # Python refuses to write integers of thousands of digits.
        with suppress(Exception):
            return _SHORT.repr(cast(object, answer))
    if isinstance(answer, type):
        return f"the class {answer.__name__}"
    return f"an object of type {type(cast(object, answer)).__name__}"


_SHORT: Final = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxlong = _SHORT.maxother = 60


def is_int64(answer: object) -> bool:
    """Whether the answer is a whole number that fits in 64 bits."""
    if not isinstance(answer, int | np.integer):
        return False
    return -MAX_INT64 - 1 <= int(cast(int, answer)) <= MAX_INT64


def _entries(answer: object) -> tuple[object, ...] | None:
    """The entries of the answer if it is a tuple, else None."""
    return cast(tuple[object, ...], answer) if isinstance(answer, tuple) else None


def status_answer(answer: object, plugin: str, method: str) -> Status | None:
    if answer is None or isinstance(answer, Status):
        return answer
    raise wrong_answer(plugin, method, answer, _STATUS)


def no_answer(answer: object, plugin: str, method: str) -> None:
    """For methods that return nothing: a value shows that the plugin expects it to be used."""
    if answer is not None:
        raise wrong_answer(plugin, method, answer, "None")


def truth_answer(answer: object, plugin: str, method: str) -> bool:
    # A comparison of NumPy values does not return a bool.
    if isinstance(answer, _TRUTHS):
        return bool(cast(bool, answer))
    raise wrong_answer(plugin, method, answer, "True or False")


def pre_filter_answer(answer: object, plugin: str) -> PreFilterResult:
    if answer is None or isinstance(answer, Status):
        return answer
    if not isinstance(answer, Restriction):
        raise wrong_answer(plugin, "pre_filter", answer, "a Restriction, a Status or None")
    if not isinstance(cast(object, answer.node_names), frozenset | set):
        # A text would be taken as the set of its letters.
        allowed = "a frozenset of names of nodes"
        raise wrong_answer(plugin, "pre_filter in a Restriction", answer.node_names, allowed)
    return answer


def filter_status_answer(answer: object, plugin: str, code: int) -> Status:
    if isinstance(answer, Status) and not answer.is_success:
        return answer
    text = "the status Success" if isinstance(answer, Status) else shown(answer)
    raise WrongAnswerError(
        f'plugin "{plugin}" returned {text} from filter_status for code {code}, '
        "expected a Status that rejects the node, or an error"
    )


def array_answer(answer: Any, plugin: str, what: str, count: int) -> IntArray:
    """Codes or scores, one whole number per node, as int64."""
    if type(answer) is not np.ndarray:
        raise _wrong_array(plugin, shown(answer), count)
    if answer.shape != (count,):
        raise _wrong_array(plugin, f"{what} of shape {answer.shape}", count)
    dtype: np.dtype[Any] = answer.dtype
    if dtype is _INT64:
        return answer
    # Smaller types would overflow in sums. Of unsigned numbers those of 64 bits do not fit.
    if dtype.kind in "bi" or (dtype.kind == "u" and dtype.itemsize < _INT64.itemsize):
        return answer.astype(np.int64)
    raise _wrong_array(plugin, f"{what} of type {dtype}", count)


def codes_answer(answer: Any, plugin: str, count: int) -> NarrowArray:
    """Codes as they are, if they are signed: nothing is added up."""
    if type(answer) is np.ndarray and answer.dtype.kind == "i" and answer.shape == (count,):
        return answer
    return array_answer(answer, plugin, "codes", count)


def _wrong_array(plugin: str, got: str, count: int) -> WrongAnswerError:
    return WrongAnswerError(
        f'plugin "{plugin}" returned {got}, '
        f"expected int64 of shape ({count},): one entry per node asked about"
    )


def score_answer(answer: Any, plugin: str, count: int) -> IntArray:
    """Raw scores; one number stands for the score of all nodes."""
    # First what most plugins return: comparing with two types at once takes longer.
    if type(answer) is np.ndarray and answer.dtype is _INT64 and answer.shape == (count,):
        return answer
    if not isinstance(answer, int | np.integer):
        return array_answer(answer, plugin, "scores", count)
    number = cast(int, answer)
    if not is_int64(number):
        raise wrong_answer(plugin, "score", number, "a number that fits in 64 bits")
    return np.full(count, number, np.int64)


def post_filter_answer(answer: object, plugin: str) -> tuple[PostFilterResult | None, Status]:
    allowed = "a tuple of a PostFilterResult or None, and a Status"
    parts = _entries(answer)
    if parts is None:
        raise wrong_answer(plugin, "post_filter", answer, allowed)
    if len(parts) != 2:
        raise wrong_answer(plugin, f"post_filter with {len(parts)} entries", answer, allowed)
    result, status = parts
    if not isinstance(status, Status):
        raise wrong_answer(plugin, "post_filter as the status", status, "a Status")
    if result is None:
        return None, status
    if not isinstance(result, PostFilterResult):
        raise wrong_answer(
            plugin, "post_filter as the result", result, "a PostFilterResult or None"
        )
    node_name, victims = cast(tuple[object, object], result)
    if not isinstance(node_name, str):
        raise wrong_answer(plugin, "post_filter as the nominated node", node_name, "a name")
    pods = _entries(victims)
    if pods is None or [pod for pod in pods if not isinstance(pod, PodInfo)]:
        raise wrong_answer(plugin, "post_filter as the victims", victims, "a tuple of PodInfo")
    return result, status


def permit_answer(answer: object, plugin: str) -> tuple[Status | None, float]:
    """The status, and for Wait the timeout in seconds; else 0."""
    parts = _entries(answer)
    if parts is None:
        parts = (answer, 0)
    if len(parts) != 2:
        allowed = "a tuple of a Status or None, and a number of seconds"
        raise wrong_answer(plugin, f"permit with {len(parts)} entries", answer, allowed)
    status = status_answer(parts[0], plugin, "permit")
    if status is None or status.code is not Code.WAIT:
        return status, 0
    timeout_s = parts[1]
    # NaN is not above anything.
    if not isinstance(timeout_s, Real) or not cast(float, timeout_s) > _DURATION_S_MIN:
        raise wrong_answer(plugin, "permit as the timeout", timeout_s, "a number of seconds")
    return status, cast(float, timeout_s)


def pre_flight_answer(answer: object, plugin: str) -> PreFlight:
    if isinstance(answer, PreFlight):
        status, allow_parallel = answer
        is_status = status is None or isinstance(status, Status)  # pyright: ignore[reportUnnecessaryIsInstance]
        if is_status and isinstance(allow_parallel, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            return answer
    parts = _entries(answer)
    if parts is None or len(parts) != 2:
        raise wrong_answer(plugin, "pre_bind_pre_flight", answer, "a PreFlight")
    status = status_answer(parts[0], plugin, "pre_bind_pre_flight as the status")
    allow_parallel = truth_answer(parts[1], plugin, "pre_bind_pre_flight as allow_parallel")
    return PreFlight(status, allow_parallel)
