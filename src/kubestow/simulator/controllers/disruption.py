"""PodDisruptionBudgets: how many pods may be disrupted now.

    allowed = healthy now - healthy needed, and never below zero

The scheduler reads them before it preempts pods, `kubectl drain` before it evicts. The expected
number of pods is the sum of their controllers' replicas; each pod without a controller counts 1.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Final

from kubestow.api.labels import Selector
from kubestow.api.meta import JsonObject
from kubestow.apiserver.controllers.guard import Guard
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.selectors import Selection
from kubestow.apiserver.store import Key, StoredObject
from kubestow.apiserver.watch import WatchEvent, WatchGroup
from kubestow.clock import NANOSECONDS, Clock
from kubestow.cluster.documents import as_object, seconds_of, value_at, whole_seconds
from kubestow.cluster.resources import PODS
from kubestow.errors import NotFoundError
from kubestow.simulator.controllers.owner_controller import controller_reference, selector_of
from kubestow.simulator.controllers.pods import is_active, ready_since_s
from kubestow.simulator.controllers.rolling import share

# A pod whose eviction was allowed counts as gone for this long, unless it is deleted before.
DISRUPTED_S: Final = 120.0


class DisruptionController:
    def __init__(self, cluster: MemoryCluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._resource = cluster.resources.named("poddisruptionbudgets.policy")
        self._guard = Guard("disruption-controller")
        self._selectors: dict[Key, Selector] = {}
        # When a pod that is still there counts again; at most one for each budget.
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._due: dict[Key, None] = {}
        self._wake: Callable[[], None] = lambda: None

    async def run(self) -> None:
        """Keep the budgets up to date until cancelled."""
        pods = self._cluster.watch(
            PODS, only_while=self._resource, concerns=lambda event: bool(self._selectors)
        )
        group = WatchGroup((self._cluster.watch(self._resource), pods))
        self._wake = group.wake
        try:
            while not group.is_closed:
                await group.wait()
                due, self._due = self._due, {}
                for key in due | self._concerned(group.events_nowait()):
                    if (budget := self._cluster.find(self._resource, *key)) is not None:
                        self._guard.run(budget, partial(self._update, key))
        finally:
            for timer in self._timers.values():
                timer.cancel()
            group.close()
            self._guard.close()

    def _concerned(self, events: Iterable[WatchEvent]) -> dict[Key, None]:
        """The budgets to update after some events, each once."""
        keys: dict[Key, None] = {}
        for event in events:
            stored = event.stored
            if stored.resource is self._resource:
                # The selector is read when the budget is updated.
                self._selectors.pop(stored.key, None)
                keys[stored.key] = None
                continue
            labels = as_object(stored.metadata.get("labels"))
            for key, selector in self._selectors.items():
                if key[0] == stored.key[0] and selector.matches(labels):
                    keys[key] = None
        return keys

    def _update(self, key: Key) -> None:
        budget = self._cluster.find(self._resource, *key)
        if budget is None:
            return
        selector = self._selectors[key] = selector_of(budget.document)
        selection = Selection(namespace=key[0], labels=selector)
        pods = [pod for pod in self._cluster.list(PODS, selection).items if is_active(pod)]
        status = self._status(budget, pods)
        self._look_again(key, as_object(status.get("disruptedPods")))
        with suppress(NotFoundError):
            self._cluster.change(
                self._resource,
                *key,
                lambda document: {**document, "status": status},
                subresource="status",
            )

    def _look_again(self, key: Key, disrupted: JsonObject) -> None:
        """Update the budget when the first of these pods counts again."""
        if (timer := self._timers.pop(key, None)) is not None:
            timer.cancel()
        if not disrupted:
            return
        first_s = min(seconds_of(time) or 0.0 for time in disrupted.values()) + DISRUPTED_S
        delay_s = first_s - self._clock.now_ns() / NANOSECONDS
        loop = asyncio.get_running_loop()
        self._timers[key] = loop.call_later(max(delay_s, 0.0), self._on_timer, key)

    def _on_timer(self, key: Key) -> None:
        del self._timers[key]
        self._due[key] = None
        self._wake()

    def _status(self, budget: StoredObject, pods: list[StoredObject]) -> JsonObject:
        now_s = self._clock.now_ns() / NANOSECONDS
        known = as_object(value_at(budget.document, "status", "disruptedPods"))
        names = {pod.name for pod in pods}
        disrupted = {
            name: time
            for name, time in known.items()
            if name in names and (seconds_of(time) or 0.0) + DISRUPTED_S > now_s
        }
        healthy = sum(ready_since_s(pod) is not None and pod.name not in disrupted for pod in pods)
        expected = self._expected(pods)
        needed = needed_healthy(as_object(budget.document.get("spec")), expected)
        allowed = max(0, healthy - needed) if expected else 0
        status: JsonObject = {
            "currentHealthy": healthy,
            "desiredHealthy": needed,
            "disruptionsAllowed": allowed,
            "expectedPods": expected,
            "observedGeneration": budget.metadata.get("generation") or 0,
            "conditions": [self._condition(budget, allowed > 0)],
        }
        return status | ({"disruptedPods": disrupted} if disrupted else {})

    def _expected(self, pods: list[StoredObject]) -> int:
        """The expected number of pods."""
        owners: dict[str, int] = {}
        free = 0
        for pod in pods:
            reference = controller_reference(pod.document)
            count = None if reference is None else self._replicas(reference, pod.key[0])
            if reference is None or count is None:
                free += 1
            else:
                owners[reference.get("uid", "")] = count
        return free + sum(owners.values())

    def _replicas(self, reference: JsonObject, namespace: str) -> int | None:
        try:
            api_version, kind = reference.get("apiVersion", ""), reference.get("kind", "")
            resource = self._cluster.resources.of_kind(api_version, kind)
        except NotFoundError:
            return None
        owner = self._cluster.find(resource, namespace, reference.get("name", ""))
        return None if owner is None else value_at(owner.document, "spec", "replicas")

    def _condition(self, budget: StoredObject, is_allowed: bool) -> JsonObject:
        status = "True" if is_allowed else "False"
        known = value_at(budget.document, "status", "conditions")
        if known and known[0].get("status") == status:
            return known[0]
        return {
            "type": "DisruptionAllowed",
            "status": status,
            "reason": "SufficientPods" if is_allowed else "InsufficientPods",
            "message": "",
            "lastTransitionTime": whole_seconds(self._clock.now_ns()),
        }


def needed_healthy(spec: JsonObject, expected: int) -> int:
    """How many pods must stay healthy; percentages are rounded in favour of the pods."""
    if (most := spec.get("maxUnavailable")) is not None:
        return max(0, expected - share(most, expected, rounds_up=True))
    least = spec.get("minAvailable")
    return share(1 if least is None else least, expected, rounds_up=True)
