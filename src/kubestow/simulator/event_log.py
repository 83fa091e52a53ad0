"""What controllers and kubelets tell of their doings: `kubectl describe` shows it.

Events are written at once, into the store. The same words about the same object are one event that
counts; other words are another event. (The scheduler has its own recorder, `cluster.events`, which
counts as `events.k8s.io` does.)
"""

from collections import OrderedDict
from contextlib import suppress
from typing import Final, NamedTuple

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.clock import Clock
from kubestow.cluster.documents import whole_seconds
from kubestow.cluster.events import EventKind
from kubestow.cluster.resources import EVENTS
from kubestow.errors import ApiError

# How many events can still be counted on.
REMEMBERED_MAX: Final = 4_096


class _Words(NamedTuple):
    """What makes two events the same."""

    uid: str
    reporter: str
    reason: str
    note: str


class EventLog:
    def __init__(self, cluster: MemoryCluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._number = 0
        # Name and count of the latest events.
        self._known: OrderedDict[_Words, tuple[str, int]] = OrderedDict()

    def record(
        self,
        regarding: StoredObject,
        *,
        reporter: str,
        reason: str,
        note: str,
        type: EventKind = "Normal",
    ) -> None:
        """Write an event about an object, or count it once more."""
        words = _Words(regarding.uid, reporter, reason, note)
        namespace = regarding.key[0] or "default"
        now = whole_seconds(self._clock.now_ns())
        name, count = self._known.pop(words, ("", 0))
        # Nothing depends on an event; in a namespace that is going there are none.
        with suppress(ApiError):
            if count and self._cluster.find(EVENTS, namespace, name) is not None:
                patch: JsonObject = {
                    "deprecatedCount": count + 1,
                    "deprecatedLastTimestamp": now,
                }
                self._cluster.patch(EVENTS, namespace, name, patch, "merge")
            else:
                self._number += 1
                name, count = f"{regarding.name}.{self._number:016x}", 0
                document = _event(regarding, words, type, now)
                document["metadata"] = {"name": name, "namespace": namespace}
                self._cluster.create(EVENTS, document)
        self._known[words] = (name, count + 1)
        if len(self._known) > REMEMBERED_MAX:
            self._known.popitem(last=False)


def _event(regarding: StoredObject, words: _Words, type: EventKind, now: str) -> JsonObject:
    reference: JsonObject = {
        "apiVersion": regarding.resource.api_version,
        "kind": regarding.resource.kind,
        "name": regarding.name,
        "uid": regarding.uid,
        "resourceVersion": str(regarding.version),
    }
    if regarding.key[0]:
        reference["namespace"] = regarding.key[0]
    return {
        "regarding": reference,
        "reason": words.reason,
        "note": words.note,
        "type": type,
        "reportingController": words.reporter,
        "deprecatedSource": {"component": words.reporter},
        "deprecatedFirstTimestamp": now,
        "deprecatedLastTimestamp": now,
        "deprecatedCount": 1,
    }
