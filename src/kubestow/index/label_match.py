"""Requirements on labels over many nodes, one after the other (`term_rows`: very many of them).

A requirement reads one label, so it is a set of that label's values. Requirements on a key that no
node has hold on all nodes or on none, and need no column.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from kubestow.api.labels import Requirement
from kubestow.arrays import BoolArray
from kubestow.index.nodes import Nodes
from kubestow.index.present import LabelKeys
from kubestow.index.tracked import LabelColumns


def all_match(nodes: Nodes, requirements: Iterable[Requirement]) -> BoolArray:
    """bool[node]: where all of these hold."""
    columns = nodes.snapshot.derived(LabelColumns)
    present: Mapping[str, int] = nodes.snapshot.derived(LabelKeys).present()
    left: list[Requirement] = []
    for requirement in requirements:
        if requirement.key in present:
            left.append(requirement)
        elif not requirement.matches_value(None):
            return np.zeros(len(nodes), np.bool_)
    mask = np.ones(len(nodes), np.bool_)
    for requirement in left:
        column = columns.column(requirement.key)
        mask &= column.matching(requirement)[column.ids[nodes.rows]]
        if not mask.any():
            break
    return mask
