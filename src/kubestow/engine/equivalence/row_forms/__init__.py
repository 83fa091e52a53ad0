"""A second form of some rules: for one node, as plain numbers.

After every placed pod one node has changed, and arrays of one entry cost more than the arithmetic.
The array form in the plugin is the rule; the forms here give the same answers faster, and
`tests/engine/equivalence` compares them.
"""

from typing import Final

from kubestow.engine.equivalence.row_forms import (
    node_ports,
    node_resources_balanced_allocation,
    node_resources_fit,
)
from kubestow.framework.profile import RowForm, RowForms
from kubestow.plugins.node_ports import NodePorts
from kubestow.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from kubestow.plugins.node_resources_fit import NodeResourcesFit

ROW_FORMS: Final[RowForms] = {
    NodePorts: RowForm(filter=node_ports.filter_form),
    NodeResourcesBalancedAllocation: RowForm(
        score=node_resources_balanced_allocation.score_form,
    ),
    NodeResourcesFit: RowForm(
        filter=node_resources_fit.filter_form,
        score=node_resources_fit.score_form,
    ),
}
