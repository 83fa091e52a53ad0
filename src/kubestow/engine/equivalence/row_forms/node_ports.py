"""NodePorts for one node."""

from kubestow.api.ports import UsedPorts
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.profile import RowFunction
from kubestow.plugins.node_ports import NodePorts, wanted_ports


def filter_form(plugin: NodePorts, state: CycleState) -> RowFunction:
    wanted = UsedPorts(wanted_ports(state))
    return lambda info: int(info.used_ports.overlaps(wanted))
