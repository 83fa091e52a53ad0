"""The events of controllers and kubelets, which `kubectl describe` shows.

Events are written at once, into the store. Events with the same text about the same object are
counted as one. (The scheduler has its own recorder, `cluster.events`, which counts as
`events.k8s.io` does.)
"""

from collections import OrderedDict
from collections.abc import Callable
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

# How many of the latest events are kept for counting.
KEPT_MAX: Final = 4_096


class _EventKey(NamedTuple):
    """Events with equal keys are counted as one."""

    uid: str
    reporter: str
    reason: str
    note: str


# Called with an owner of pods, why a server refuses them, and by how many more or less are refused.
OnRefusal = Callable[[StoredObject, str, int], None]


def _ignore(owner: StoredObject, message: str, change: int) -> None: ...


class EventLog:
    def __init__(
        self,
        cluster: MemoryCluster,
        clock: Clock,
        *,
        is_silent: bool = False,
        on_refusal: OnRefusal = _ignore,
    ) -> None:
        """A silent log writes nothing: where no client reads events, they only take memory."""
        self.on_refusal = on_refusal
        self._is_silent = is_silent
        self._cluster = cluster
        self._clock = clock
        self._number = 0
        # Name and count of the latest events.
        self._known: OrderedDict[_EventKey, tuple[str, int]] = OrderedDict()

    def record(
        self,
        regarding: StoredObject,
        *,
        reporter: str,
        reason: str,
        note: str,
        type: EventKind = "Normal",
    ) -> None:
        """Write an event about an object, or increment its count."""
        if self._is_silent:
            return
        key = _EventKey(regarding.uid, reporter, reason, note)
        namespace = regarding.key[0] or "default"
        now = whole_seconds(self._clock.now_ns())
        name, count = self._known.pop(key, ("", 0))
        # Events are optional, and a terminating namespace accepts none.
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
                document = _event(regarding, key, type, now)
                document["metadata"] = {"name": name, "namespace": namespace}
                self._cluster.create(EVENTS, document)
        self._known[key] = (name, count + 1)
        if len(self._known) > KEPT_MAX:
            self._known.popitem(last=False)


def _event(regarding: StoredObject, key: _EventKey, type: EventKind, now: str) -> JsonObject:
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
        "reason": key.reason,
        "note": key.note,
        "type": type,
        "reportingController": key.reporter,
        "deprecatedSource": {"component": key.reporter},
        "deprecatedFirstTimestamp": now,
        "deprecatedLastTimestamp": now,
        "deprecatedCount": 1,
    }
