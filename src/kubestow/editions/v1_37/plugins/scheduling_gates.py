"""SchedulingGates of v1.37 (spec 12 §3.3)."""

from kubestow.framework.events import Action, Registrations, Resource, on
from kubestow.plugins.scheduling_gates import SchedulingGates


class SchedulingGatesV137(SchedulingGates):
    def events(self) -> Registrations:
        return [on(Resource.TARGET_POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)]
