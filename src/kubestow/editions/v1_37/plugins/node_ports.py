"""NodePorts of v1.37 (spec 12 §3.3)."""

from typing import ClassVar

from kubestow.editions.v1_37.plugins.registrations import of_assigned_pods
from kubestow.framework.events import Registrations
from kubestow.plugins.node_ports import NodePorts


class NodePortsV137(NodePorts):
    answers_as: ClassVar[type] = NodePorts

    def events(self) -> Registrations:
        return of_assigned_pods(super().events())
