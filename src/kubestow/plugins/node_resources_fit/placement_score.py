"""How full a placement would be with the members of a group on it (spec 11 §8.4)."""

import numpy as np

from kubestow.api.requests import score_request
from kubestow.framework.group_cycle import Assignments
from kubestow.index.nodes import Nodes
from kubestow.plugins._shared.scoring_resources import Loads, ScoringResources
from kubestow.plugins.node_resources_fit.strategies import most_allocated


def placement_score(resources: ScoringResources, nodes: Nodes, assignments: Assignments) -> int:
    """The share of all nodes together that would be used, whatever the configured strategy."""
    amounts = np.zeros(len(resources), np.int64)
    for pod in assignments.pods:
        amounts += resources.amounts(score_request(pod.pod))
    request = resources.counting(amounts.tolist())
    loads = resources.loads(nodes, request)
    # What is used of a resource counts only on nodes that have it.
    used = np.where(loads.allocatable > 0, loads.used, 0)
    total = Loads(
        loads.allocatable.sum(axis=1, keepdims=True),
        used.sum(axis=1, keepdims=True),
        loads.request,
        loads.weight,
    )
    return int(most_allocated(total)[0])
