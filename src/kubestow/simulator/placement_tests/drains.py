"""A drain of forEach that does not come to its end, because disruption budgets keep pods on a node.

What is expected may hold then, but not after the drain: it has not happened.
"""

from typing import Final

from kubestow.api.pod import Pod, key_of
from kubestow.apiserver.eviction import budgets_of
from kubestow.apiserver.store import StoredObject
from kubestow.cluster.resources import NODES, PODS
from kubestow.plural import counted, plural, some_of
from kubestow.simulator.placement_tests.for_each import TriedFailure
from kubestow.simulator.placement_tests.history import is_live
from kubestow.simulator.placement_tests.results import PODS_NAMED, ExpectationVerdict
from kubestow.simulator.placement_tests.state import PlacedCluster
from kubestow.simulator.scenario.actions import is_closed, is_drained

_SHOWN: Final = 3


def unfinished(cluster: PlacedCluster, failure: TriedFailure) -> ExpectationVerdict | None:
    """What keeps a drain or an upgrade from its end; None if it came to it."""
    for_each = cluster.case.for_each[failure.entry]
    if for_each.kind not in ("drain", "upgrade") or cluster.is_at_rest:
        return None
    left = list(_left(cluster, failure))
    if not left:
        return None
    stay = f"{counted(len(left), 'pod')} {'stays' if len(left) == 1 else 'stay'}"
    stored = (budget for pod, _ in left for budget in budgets_of(cluster.store, pod))
    budgets = list(dict.fromkeys(budget.name for budget in stored))
    if budgets:
        allow = "allows" if len(budgets) == 1 else "allow"
        noun = plural("disruption budget", len(budgets))
        stay += f", as the {noun} {some_of(budgets, _SHOWN)} {allow} no disruption"
    where = some_of([f"{key_of(pod)} on {pod.spec.node_name}" for _, pod in left], _SHOWN)
    return ExpectationVerdict(
        kind=for_each.kind,
        field=for_each.field,
        line=for_each.line,
        expected=f"{failure.name} drained within {cluster.case.limit_s:g} s",
        holds=False,
        found=f"{stay}: {where}",
        short=stay,
        pods=tuple(key_of(pod) for _, pod in left[:PODS_NAMED]),
    )


def _left(cluster: PlacedCluster, failure: TriedFailure) -> list[tuple[StoredObject, Pod]]:
    """The pods that a drain waits for; nodes whose turn has not come are open."""
    stored = [cluster.store.find(NODES, "", name) for name in failure.nodes]
    closed = {node.name for node in stored if node is not None and is_closed(node)}
    return [
        (each, pod)
        for each in cluster.store.objects_of(PODS)
        if isinstance(pod := each.typed, Pod)
        and pod.spec.node_name in closed
        and is_live(pod)
        and is_drained(each, pod.spec.node_name)
    ]
