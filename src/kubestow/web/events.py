"""The last events that this scheduler recorded, by object: what `kubectl describe` shows of it.

They are taken where they are recorded, so reading them needs no right of the scheduler.
"""

from collections import OrderedDict
from typing import Final

import msgspec

# Events of all objects together; those of one object in an answer.
EVENTS_MAX: Final = 5_000
OBJECT_EVENTS_MAX: Final = 50
NOTE_LENGTH_MAX: Final = 1_024


class PageEvent(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Equal events of one object; `time` is that of the last, in milliseconds since 1970."""

    first: int
    time: int
    count: int
    type: str
    reason: str
    note: str


class PageEvents:
    def __init__(self) -> None:
        # By object, reason and note; the newest last.
        self._events: OrderedDict[tuple[str, str, str], PageEvent] = OrderedDict()

    def __len__(self) -> int:
        return len(self._events)

    def add(self, key: str, *, type: str, reason: str, note: str, time_ms: int) -> None:
        """`key` is that of the object, namespace/name."""
        note = note[:NOTE_LENGTH_MAX]
        old = self._events.pop((key, reason, note), None)
        self._events[key, reason, note] = PageEvent(
            first=time_ms if old is None else old.first,
            time=time_ms,
            count=1 if old is None else old.count + 1,
            type=type,
            reason=reason,
            note=note,
        )
        if len(self._events) > EVENTS_MAX:
            self._events.popitem(last=False)

    def of(self, key: str) -> tuple[PageEvent, ...]:
        """The events of an object, the newest first."""
        found = [each for name, each in reversed(self._events.items()) if name[0] == key]
        return tuple(found[:OBJECT_EVENTS_MAX])
