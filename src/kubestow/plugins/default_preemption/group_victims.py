"""Which pods are evicted for a whole group that does not fit (spec 11 §9.2).

Pods are evicted in units: a pod of its own, or all members of a group that is evicted as a whole.
First all units of lower priority are taken away; if the group fits then, they are put back one by
one, most important first, and those without which it still fits stay.

By choice (`GangOptions.evicts_whole`) every gang is such a unit; members beyond its minimum are
units of their own, which cannot stay without it.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from kubestow.api.disruption import BudgetTable
from kubestow.api.group import Group, GroupKey
from kubestow.api.importance import importance_key, start_time_ns
from kubestow.api.pod_info import PodInfo
from kubestow.cache.groups import Groups
from kubestow.cache.snapshot import Snapshot
from kubestow.framework.plugin import GroupTrial
from kubestow.framework.status import Status
from kubestow.plugins.default_preemption.eligibility import NEVER

# What is said instead of a node in events on the victims.
CLUSTER: Final = "cluster"
NO_GROUP_VICTIMS: Final = Status.unresolvable("No preemption victims found for incoming preemptor")


class Unit(NamedTuple):
    """Pods that are evicted together; `start_ns` is that of the first one.

    `gang` names the gang without whose other members these are of no use.
    """

    pods: list[PodInfo]
    priority: int
    is_member: bool
    start_ns: int
    gang: GroupKey | None = None
    is_surplus: bool = False

    @property
    def rank(self) -> tuple[int, int, int, int]:
        """Sorts more important units first."""
        size = len(self.pods) if self.is_member else 0
        return -self.priority, not self.is_member, -size, self.start_ns


def priority_of_group(group: Group, pods: Sequence[PodInfo]) -> int:
    """The priority with which a group preempts; if it has none, that of its least important pod."""
    return min(pod.priority for pod in pods) if group.priority is None else group.priority


def select_victims(
    group_trial: GroupTrial,
    snapshot: Snapshot,
    groups: Groups,
    budgets: BudgetTable | None,
    now_ns: int,
) -> list[PodInfo] | Status:
    """The pods to evict, most important first, or why evicting does not help."""
    if any(pod.pod.spec.preemption_policy == "Never" for pod in group_trial.pods):
        return Status.unschedulable(NEVER)
    priority = priority_of_group(group_trial.group, group_trial.pods)
    units = [unit for unit in _units(snapshot, groups, now_ns) if unit.priority < priority]
    if not units:
        return NO_GROUP_VICTIMS
    for unit in units:
        _take_off(group_trial, unit)
    status = group_trial.fits()
    if status is not None:
        return status
    units.sort(key=lambda unit: unit.rank)
    victims = _without_reprieve(group_trial, _reprieve_order(units, budgets))
    victims.sort(key=lambda unit: unit.rank)
    return [pod for unit in victims for pod in unit.pods]


def _units(snapshot: Snapshot, groups: Groups, now_ns: int) -> list[Unit]:
    """Everything that could be evicted, in the order of nodes and of the pods on them."""
    units: dict[str | GroupKey, Unit] = {}
    keeps_whole = groups.options.evicts_whole
    for info in {info.name: info for info in snapshot.node_infos}.values():
        for pod in info.pods:
            key = groups.key_of(pod.pod)
            group = None if key is None else groups.rules(key)
            start_ns = start_time_ns(pod.pod, now_ns)
            if group is not None and keeps_whole and group.min_count is not None:
                gang = groups.pod_sets(group.key)[0]
                unit = units.setdefault(gang, Unit([], 0, True, start_ns, gang))
                unit.pods.append(pod)
            elif group is None or not group.is_evicted_whole:
                units[pod.uid] = Unit([pod], pod.priority, key is not None, start_ns)
            elif group.uid in units:
                units[group.uid].pods.append(pod)
            else:
                units[group.uid] = Unit([pod], group.priority or 0, True, start_ns)
    return [
        part
        for unit in units.values()
        for part in (_parts(unit, groups, now_ns) if unit.gang is not None else (unit,))
    ]


def _parts(unit: Unit, groups: Groups, now_ns: int) -> list[Unit]:
    """The unit of a gang without those of its pods that it can do without, and these one by one."""
    assert unit.gang is not None, unit
    rules = groups.rules(unit.gang)
    priority = max(pod.priority for pod in unit.pods)
    if rules is not None and rules.priority is not None:
        priority = rules.priority
    unit = unit._replace(priority=priority)
    if rules is None or rules.pod_sets or rules.is_evicted_whole or rules.min_count is None:
        return [unit]
    pods = sorted(
        unit.pods, key=lambda pod: (groups.is_leaving(pod.pod), *importance_key(pod, now_ns))
    )
    kept, surplus = pods[: rules.min_count], pods[rules.min_count :]
    return [
        *([unit._replace(pods=kept)] if kept else ()),
        *(
            unit._replace(
                pods=[pod],
                start_ns=start_time_ns(pod.pod, now_ns),
                is_surplus=True,
            )
            for pod in surplus
        ),
    ]


def _reprieve_order(units: Sequence[Unit], budgets: BudgetTable | None) -> list[Unit]:
    """Units that would violate a disruption budget first."""
    if budgets is None:
        return list(units)
    violates = budgets.violating_units([unit.pods for unit in units])
    pairs = list(zip(units, violates, strict=True))
    return [
        *(unit for unit, is_violating in pairs if is_violating),
        *(unit for unit, is_violating in pairs if not is_violating),
    ]


def _without_reprieve(group_trial: GroupTrial, units: Sequence[Unit]) -> list[Unit]:
    """Put units back in this order while the group still fits; the others."""
    victims: list[Unit] = []
    # A gang comes before its surplus.
    for unit in sorted(units, key=lambda unit: unit.is_surplus):
        is_useless = unit.is_surplus and any(
            other.gang == unit.gang and not other.is_surplus for other in victims
        )
        if is_useless or not _may_stay(group_trial, unit):
            victims.append(unit)
    return victims


def _may_stay(group_trial: GroupTrial, unit: Unit) -> bool:
    """Put the unit back; take it off again if the group does not fit beside it."""
    for pod in unit.pods:
        group_trial.trial.add(pod)
    if group_trial.fits() is None:
        return True
    _take_off(group_trial, unit)
    return False


def _take_off(group_trial: GroupTrial, unit: Unit) -> None:
    for pod in unit.pods:
        group_trial.trial.remove(pod)
