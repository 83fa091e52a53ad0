"""Keeps pods out of the queue while they have scheduling gates (spec 05 §4)."""

from typing import ClassVar

from kubestow.api.pod import Pod
from kubestow.framework.events import Action, Hint, Registrations, Resource, on
from kubestow.framework.handle import Handle
from kubestow.framework.status import Status


class SchedulingGates:
    name: ClassVar[str] = "SchedulingGates"
    args_type: ClassVar[None] = None

    def __init__(self, args: object, handle: Handle) -> None:
        pass

    def events(self) -> Registrations:
        return [
            on(Resource.POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, _hint_for_lifted_gates)
        ]

    def pre_enqueue(self, pod: Pod) -> Status | None:
        gates = pod.spec.scheduling_gates
        if not gates:
            return None
        names = " ".join(gate.name for gate in gates)
        return Status.unresolvable(f"waiting for scheduling gates: [{names}]")


def _hint_for_lifted_gates(pod: Pod, old: Pod | None, new: Pod) -> Hint:
    return Hint.QUEUE if new.metadata.uid == pod.metadata.uid else Hint.SKIP
