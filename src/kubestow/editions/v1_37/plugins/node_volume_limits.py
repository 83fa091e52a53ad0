"""NodeVolumeLimits of v1.37 (spec 12 §3.3); the check of drivers is a gate (§7.4)."""

from kubestow.editions.v1_37.plugins.registrations import of_assigned_pods
from kubestow.framework.events import Registrations
from kubestow.plugins.node_volume_limits import NodeVolumeLimits


class NodeVolumeLimitsV137(NodeVolumeLimits):
    def events(self) -> Registrations:
        return of_assigned_pods(super().events())
