"""NodePorts for one node."""

from kubestow.framework.cycle_state import CycleState
from kubestow.framework.profile import RowFunction
from kubestow.plugins.node_ports import NodePorts, wanted_ports


def filter_form(plugin: NodePorts, state: CycleState) -> RowFunction:
    wanted = wanted_ports(state)
    return lambda info: int(any(info.used_ports.conflicts(port) for port in wanted))
