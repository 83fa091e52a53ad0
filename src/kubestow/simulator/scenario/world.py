"""What actions and arrivals change: the store of a running cluster, and the list of changes."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

from kubestow.api.meta import JsonObject
from kubestow.apiserver.eviction import evict
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.clock import Clock
from kubestow.cluster.documents import (
    as_object,
    filled_at,
    replaced_at,
    whole_seconds,
)
from kubestow.cluster.resources import PODS
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.profiles import Registry
from kubestow.errors import ConflictError, NotFoundError
from kubestow.simulator.pretended_process import RUN_SECONDS
from kubestow.simulator.scenario.arrivals import ending_pod
from kubestow.simulator.scenario.collector import ENTRY
from kubestow.simulator.scenario.scenario import Arrival

_RUN_SECONDS: Final = ("spec", "template", "metadata", "annotations", RUN_SECONDS)
# A finished Job that arrived is deleted at once, unless it says when: nothing reads it again.
_TTL: Final = ("spec", "ttlSecondsAfterFinished")


Note = Callable[[str, str, str], None]


def _ignore(kind: str, subject: str, detail: str) -> None: ...


class WorldScheduler(NamedTuple):
    """The scheduler of the cluster, for actions that look ahead."""

    config: SchedulerConfig = SchedulerConfig()
    registry: Registry | None = None
    gates: FeatureGates = DEFAULT_GATES


class ScenarioWorld:
    """The running cluster as a scenario sees it."""

    def __init__(self, store: MemoryCluster, clock: Clock, note: Note = _ignore) -> None:
        """`note` is called with the kind, the subject and details of each change."""
        self.store = store
        self.scheduler = WorldScheduler()
        self.clock = clock
        self._note = note
        self._counts: dict[str, int] = {}
        # Parts of actions that are still to be done.
        self.work_count = 0

    def now(self) -> str:
        return whole_seconds(self.clock.now_ns())

    def note(self, kind: str, subject: str, detail: str = "") -> None:
        self._note(kind, subject, detail)

    def later(self, delay_s: float, work: Callable[[], None], *, is_work: bool = False) -> None:
        """Call `work` after a delay, unless the run ends before.

        `is_work`: it belongs to an action that is not over, such as a drain.
        """
        if not is_work:
            asyncio.get_running_loop().call_later(delay_s, work)
            return
        self.work_count += 1

        def end() -> None:
            self.work_count -= 1
            work()

        asyncio.get_running_loop().call_later(delay_s, end)

    # --- Arrivals -----------------------------------------------------------------------------

    def arrive(self, arrival: Arrival) -> None:
        """Create the object; it leaves again if the arrival says so."""
        document = self._own_document(arrival)
        if document.get("kind") == PODS.kind:
            # Pods of a template that was read need not be read again.
            stored = self.store.create(PODS, document)
        else:
            (stored,) = self.store.load([document])
        if arrival.leaves_after_s is not None:
            self.later(arrival.leaves_after_s, lambda: self.remove(stored))

    def remove(self, stored: StoredObject) -> None:
        """Delete an object, if it is still there."""
        with suppress(NotFoundError, ConflictError):
            self.store.delete(stored.resource, *stored.key, uid=stored.uid)

    def evict(self, pod: StoredObject) -> None:
        """Evict a pod; ApiError with code 429 if its budget allows no disruption now."""
        evict(self.store, pod, now=self.now(), uid=pod.uid)

    def _own_document(self, arrival: Arrival) -> JsonObject:
        """The document of an arrival with a name, its entry and its duration."""
        document, metadata = arrival.document, as_object(arrival.document.get("metadata"))
        own: JsonObject = dict(metadata)
        if not (own.get("name") or own.get("generateName")):
            own["name"] = self._new_name(arrival)
        annotations: JsonObject = {**as_object(metadata.get("annotations")), ENTRY: arrival.owner}
        own["annotations"] = annotations
        document = {**document, "metadata": own}
        if document.get("kind") == "Job":
            document = filled_at(document, _TTL, 0)
        if arrival.duration_s is None:
            return document
        if document.get("kind") == PODS.kind:
            annotations[RUN_SECONDS] = repr(arrival.duration_s)
            return ending_pod(document)
        return replaced_at(document, _RUN_SECONDS, repr(arrival.duration_s))

    def _new_name(self, arrival: Arrival) -> str:
        prefix = arrival.owner or str(arrival.document.get("kind", "")).lower()
        number = self._counts[prefix] = self._counts.get(prefix, 0) + 1
        return f"{prefix}-{number}"
