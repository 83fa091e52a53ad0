"""ReplicaSets: keep the desired number of pods."""

from typing import Final, NamedTuple, Self

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.clock import NANOSECONDS, Clock
from kubestow.cluster.documents import as_object, value_at
from kubestow.cluster.resources import PODS
from kubestow.errors import ApiError
from kubestow.simulator.controllers.owner_controller import OwnerController, replicas_of
from kubestow.simulator.controllers.pods import (
    first_to_delete,
    is_active,
    is_terminating,
    pod_from_template,
    ready_since_s,
)
from kubestow.simulator.event_log import EventLog

# How many pods are made or deleted in one step.
BURST: Final = 100
# Owners whose pods' states are kept; beyond it all are read again.
STATES_MAX: Final = 16_384


class ReplicaSetController(OwnerController):
    def __init__(self, cluster: MemoryCluster, clock: Clock, log: EventLog) -> None:
        super().__init__(
            cluster,
            clock,
            log,
            name="replicaset-controller",
            owners="replicasets.apps",
            dependents="pods",
        )

        # What was read of the pods of each owner; most did not change since.
        self._states: dict[str, dict[str, _PodState]] = {}

    def reconcile(self, owner: StoredObject, dependents: list[StoredObject]) -> float | None:
        if self.adopt(owner):
            return 0.0
        states = self._read_states(owner, dependents)
        active = [pod for pod, state in zip(dependents, states, strict=True) if state.is_active]
        delay_s: float | None = None
        if not is_terminating(owner):
            missing = replicas_of(owner.document) - len(active)
            if missing > 0:
                delay_s = self._create(owner, missing)
            else:
                self.accepted(owner)
            if missing < 0:
                self.delete_pods(owner, first_to_delete(active, min(-missing, BURST)))
                delay_s = 0.0 if -missing > BURST else None
        available_s = self._report(owner, states)
        return min((s for s in (delay_s, available_s) if s is not None), default=None)

    def _create(self, owner: StoredObject, missing: int) -> float | None:
        """Make pods; return the seconds until the next step, if some are still missing."""
        if wait_s := self.held_back_s(owner):
            return wait_s
        template = as_object(value_at(owner.document, "spec", "template"))
        for index in range(min(missing, BURST)):
            try:
                pod = self.cluster.create(PODS, pod_from_template(owner, template))
            except ApiError as error:
                return self.refused(owner, error, missing - index)
            self.record(owner, "SuccessfulCreate", f"Created pod: {pod.name}")
        self.accepted(owner)
        return 0.0 if missing > BURST else None

    def _read_states(
        self, owner: StoredObject, dependents: list[StoredObject]
    ) -> "list[_PodState]":
        known = self._states.get(owner.uid, {})
        states: list[_PodState] = []
        for pod in dependents:
            state = known.get(pod.name)
            if state is None or state.version != pod.version:
                state = _PodState.of(pod)
            states.append(state)
        if len(self._states) >= STATES_MAX:
            self._states.clear()
        names = (pod.name for pod in dependents)
        self._states[owner.uid] = dict(zip(names, states, strict=True))
        return states

    def _report(self, owner: StoredObject, states: "list[_PodState]") -> float | None:
        """Write the counts; return the seconds until another ready pod is available."""
        min_ready_s: int = value_at(owner.document, "spec", "minReadySeconds") or 0
        now_s = self.clock.now_ns() / NANOSECONDS
        active = [state for state in states if state.is_active]
        ready = [state.ready_s for state in active if state.ready_s is not None]
        available = [since_s for since_s in ready if since_s + min_ready_s <= now_s]
        status: JsonObject = {"replicas": len(active)}
        counts = {
            "fullyLabeledReplicas": len(active),
            "readyReplicas": len(ready),
            "availableReplicas": len(available) if min_ready_s else len(ready),
            "terminatingReplicas": sum(state.is_terminating for state in states),
            "observedGeneration": owner.metadata.get("generation") or 0,
        }
        status |= {key: value for key, value in counts.items() if value}
        self.write_status(owner, status)
        too_new = [since_s for since_s in ready if since_s + min_ready_s > now_s]
        return min(too_new) + min_ready_s - now_s if min_ready_s and too_new else None


class _PodState(NamedTuple):
    """What decides of one version of a pod."""

    version: int
    is_active: bool
    is_terminating: bool
    ready_s: float | None

    @classmethod
    def of(cls, pod: StoredObject) -> Self:
        return cls(pod.version, is_active(pod), is_terminating(pod), ready_since_s(pod))
