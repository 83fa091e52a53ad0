"""What keeps informers from working, in few lines of the log.

An API server that is away or refuses fails every informer at about the same time, and again after
each delay. Failures of the same cause are collected for a moment and become one line; while they
last they are mentioned once a minute.

Not here: what follows from a failure (`informer`).
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from kubestow.clock import Clock
from kubestow.errors import ApiError, UnreachableError

logger = logging.getLogger(__name__)

# How long failures are collected before they are logged: less than the shortest delay.
COLLECT_S: Final = 0.5
REMIND_S: Final = 60.0
# A line names this many kinds; of more it has the number.
NAMES_MAX: Final = 8

Action = Literal["list", "watch", "discover"]


class _Failure(NamedTuple):
    kind: str
    action: Action
    cause: object  # what the failures in one line have in common, besides the action
    text: str
    version: str
    delay_s: float
    logged_at_s: float


class FailureLog:
    """One for all informers of a client; `host` is the server's address."""

    def __init__(self, clock: Clock, *, host: str) -> None:
        self._clock = clock
        self._host = host
        self._failing: dict[str, _Failure] = {}  # by kind
        self._news: set[str] = set()  # kinds to be logged
        self._is_collecting = False

    def failed(
        self, kind: str, action: Action, error: ApiError, *, delay_s: float, version: str = ""
    ) -> None:
        """A list failed, a watch from that version ended, or the server does not have the kind."""
        now_s = self._clock.monotonic_s()
        failure = _Failure(kind, action, _cause(error), str(error), version, delay_s, now_s)
        known = self._failing.get(kind)
        if known is not None and _is_logged(known, failure):
            self._failing[kind] = failure._replace(logged_at_s=known.logged_at_s)
        else:
            self._failing[kind] = failure
            self._collect(kind)

    def works(self, kind: str) -> None:
        """The kind is listed and watched."""
        known = self._failing.pop(kind, None)
        if known is not None and known.action != "watch":
            self._collect(kind)

    def _collect(self, kind: str) -> None:
        self._news.add(kind)
        if not self._is_collecting:
            self._is_collecting = True
            asyncio.get_running_loop().call_later(COLLECT_S, self._write)

    def _write(self) -> None:
        self._is_collecting = False
        news, self._news = sorted(self._news), set[str]()
        groups: dict[tuple[Action, object], list[_Failure]] = {}
        for failure in (self._failing[kind] for kind in news if kind in self._failing):
            groups.setdefault((failure.action, failure.cause), []).append(failure)
        for failures in groups.values():
            logger.warning("%s", self._line(failures))
        if recovered := [kind for kind in news if kind not in self._failing]:
            logger.info("listing works now: %s", _named(recovered))

    def _line(self, failures: Sequence[_Failure]) -> str:
        first = failures[0]
        named = _named([failure.kind for failure in failures])
        later = f"trying again within {max(failure.delay_s for failure in failures):.1f} s"
        match first.action:
            case "discover":
                return (
                    f"the API server at {self._host} does not serve {named}: going on as if there "
                    f"were none, looking again every {first.delay_s / 60:.0f} min"
                )
            case "list" if len(failures) == 1:
                return f"list of {named} failed: {first.text}; {later}"
            case "list":
                return f"cannot list {named} at {self._host}: {first.text}; {later}"
            case "watch" if len(failures) == 1:
                return f"watch of {named} from version {first.version} ended: {first.text}; {later}"
            case "watch":
                return f"watch of {named} ended: {first.text}; {later}"


def _is_logged(known: _Failure, failure: _Failure) -> bool:
    """Whether the log has the same already, a short time ago or as something that lasts."""
    if (known.action, known.cause) != (failure.action, failure.cause):
        return False
    return failure.action == "discover" or failure.logged_at_s - known.logged_at_s < REMIND_S


def _cause(error: ApiError) -> object:
    return error.cause if isinstance(error, UnreachableError) else (error.code, error.reason)


def _named(kinds: Sequence[str]) -> str:
    return f"{len(kinds)} kinds" if len(kinds) > NAMES_MAX else ", ".join(kinds)
