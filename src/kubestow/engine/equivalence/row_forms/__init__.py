"""A second form of some rules: for one node, as plain numbers.

After every placed pod one node has changed, and arrays of one entry cost more than the arithmetic.
The array form in the plugin is the rule; the forms here give the same answers faster, and
`tests/engine/equivalence` compares them.
"""

from typing import Final

from kubestow.api.ports import UsedPorts
from kubestow.engine.equivalence.row_forms import (
    node_resources_balanced_allocation,
    node_resources_fit,
)
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.profile import RowForm, RowForms, RowFunction
from kubestow.plugins.node_ports import NodePorts, wanted_ports
from kubestow.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from kubestow.plugins.node_resources_fit import NodeResourcesFit


def _ports_form(_: NodePorts, state: CycleState) -> RowFunction:
    wanted = UsedPorts(wanted_ports(state))
    return lambda info: int(info.used_ports.overlaps(wanted))


ROW_FORMS: Final[RowForms] = {
    NodePorts: RowForm(filter=_ports_form),
    NodeResourcesBalancedAllocation: RowForm(
        score=node_resources_balanced_allocation.score_form,
    ),
    NodeResourcesFit: RowForm(
        filter=node_resources_fit.filter_form,
        score=node_resources_fit.score_form,
    ),
}
