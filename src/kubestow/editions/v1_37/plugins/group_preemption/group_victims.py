"""Which pods are evicted for a whole group that does not fit (spec 12 §16).

All units of lower priority are taken away and the group is placed once. Then units are put back one
by one, most important first: one beside which all placed members still fit on their nodes stays.
Nothing is placed a second time.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from kubestow.api.disruption import BudgetTable
from kubestow.api.pod_info import PodInfo
from kubestow.cache.snapshot import Snapshot
from kubestow.editions.v1_37.plugins.group_preemption.units import (
    Units,
    UnitV137,
    in_reprieve_order,
)
from kubestow.framework.plugin import PlacedMember, UnplacedGroup
from kubestow.framework.status import Status

NO_VICTIMS: Final = Status.unresolvable("No preemption victims found for incoming preemptor")


class GroupVictims(NamedTuple):
    """The pods to evict, most important first, and where the members are placed without them.

    `disruption_count` is that of groups, and of members that are evicted one by one;
    `violation_count` of the victims are evicted against their budget.
    """

    victims: Sequence[PodInfo]
    placed: Sequence[PlacedMember]
    disruption_count: int
    violation_count: int


def select_victims(
    group: UnplacedGroup,
    snapshot: Snapshot,
    units: Units,
    priority: int,
    budgets: BudgetTable | None,
) -> GroupVictims | Status:
    """The victims, or why evicting does not help."""
    infos = {info.name: info for info in snapshot.node_infos}.values()
    pods = [pod for info in infos for pod in info.pods]
    candidates = [unit for unit in units.of_pods(pods) if unit.priority < priority]
    if not candidates:
        return NO_VICTIMS
    for unit in candidates:
        _take_off(group, unit)
    placed = group.place()
    if isinstance(placed, Status):
        return placed
    candidates.sort(key=lambda unit: unit.rank)
    is_local = all(map(_is_local, (member.pod for member in placed)))
    victims: list[UnitV137] = []
    violating, others = in_reprieve_order(candidates, budgets)
    violation_count = 0
    for some in (violating, others):
        for unit in some:
            for pod in unit.pods:
                group.trial.add(pod)
            if not group.passes(_concerned(placed, unit) if is_local else placed):
                _take_off(group, unit)
                victims.append(unit)
                violation_count += len(unit.pods) if some is violating else 0
    victims.sort(key=lambda unit: unit.rank)
    pods = [pod for unit in victims for pod in unit.pods]
    return GroupVictims(pods, placed, sum(unit.is_of_group for unit in victims), violation_count)


def _take_off(group: UnplacedGroup, unit: UnitV137) -> None:
    for pod in unit.pods:
        group.trial.remove(pod)


def _is_local(pod: PodInfo) -> bool:
    """Whether only what is on a node decides if the pod fits there."""
    spec = pod.pod.spec
    return not (
        pod.has_affinity
        or spec.topology_spread_constraints
        or spec.resource_claims
        or pod.pvc_keys
        or spec.volumes
    )


def _concerned(placed: Sequence[PlacedMember], unit: UnitV137) -> Sequence[PlacedMember]:
    """The members whose nodes the unit uses; all, if its pods reach further than their nodes."""
    if any(pod.has_affinity for pod in unit.pods):
        return placed
    nodes = {pod.pod.spec.node_name for pod in unit.pods}
    return [member for member in placed if member.node_name in nodes]
