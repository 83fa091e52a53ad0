"""What is evicted as one, and which is more important (spec 12 §9.2, §9.4, §16).

A pod, a member of a group that is evicted one by one, or all placed pods of the highest group of
its tree that is evicted as a whole, on any number of nodes. The priority of a member is that of the
root of its tree.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kubestow.api.disruption import BudgetTable
from kubestow.api.group import TreeNode
from kubestow.api.importance import start_time_ns
from kubestow.api.pod_info import PodInfo
from kubestow.cache.snapshot import Snapshot
from kubestow.editions.v1_37.groups.state import GroupsV137

_POD, _GROUP, _COMPOSITE = 1, 2, 3


class UnitV137(NamedTuple):
    """Pods that are evicted together; `start_ns` is the earliest of their starts."""

    pods: tuple[PodInfo, ...]
    priority: int
    kind: int
    start_ns: int

    @property
    def is_of_group(self) -> bool:
        return self.kind != _POD

    @property
    def rank(self) -> tuple[int, int, int, int]:
        """Sorts more important units first."""
        return -self.priority, -self.kind, -len(self.pods), self.start_ns


class Units:
    """Finds the units of pods on the snapshot, each once."""

    def __init__(self, groups: GroupsV137, snapshot: Snapshot, now_ns: int) -> None:
        self._groups = groups
        self._snapshot = snapshot
        self._now_ns = now_ns
        self._whole: dict[TreeNode, UnitV137] = {}

    def of_pods(self, pods: Iterable[PodInfo]) -> list[UnitV137]:
        """The units that these pods belong to, each once, in the order of the pods."""
        units: list[UnitV137] = []
        seen: set[TreeNode] = set()
        for pod in pods:
            key = self._groups.key_of(pod.pod)
            path = None if key is None else self._groups.path_of(key)
            if path is None:
                # Also a member of a group that is not known.
                units.append(self._single(pod, _POD if key is None else _GROUP, pod.priority))
                continue
            priority = self._groups.priority_of(path[-1])
            tops = [node for node in path if self._groups.is_evicted_whole(node)]
            if not tops:
                units.append(self._single(pod, _GROUP, priority))
            elif tops[-1] not in seen:
                seen.add(tops[-1])
                units.append(self._as_whole(tops[-1], priority))
        return units

    def _single(self, pod: PodInfo, kind: int, priority: int) -> UnitV137:
        return UnitV137((pod,), priority, kind, start_time_ns(pod.pod, self._now_ns))

    def _as_whole(self, top: TreeNode, priority: int) -> UnitV137:
        unit = self._whole.get(top)
        if unit is None:
            pods = tuple(self._placed(top))
            start_ns = min(start_time_ns(pod.pod, self._now_ns) for pod in pods)
            kind = _COMPOSITE if top.is_composite else _GROUP
            unit = self._whole[top] = UnitV137(pods, priority, kind, start_ns)
        return unit

    def _placed(self, top: TreeNode) -> Iterable[PodInfo]:
        """The pods of the group on the snapshot, group by group."""
        for leaf in self._groups.leaves_of(top):
            members = self._groups.find(leaf)
            for pod in () if members is None else members.scheduled_pods():
                row = self._snapshot.row_of(pod.spec.node_name)
                if row is None:
                    continue
                uid = pod.metadata.uid
                yield from (on for on in self._snapshot.node_infos[row].pods if on.uid == uid)


def in_reprieve_order(
    units: Sequence[UnitV137], budgets: BudgetTable | None
) -> tuple[list[UnitV137], list[UnitV137]]:
    """Units that would violate a disruption budget, and the others; both in the given order."""
    if budgets is None:
        return [], list(units)
    violates = budgets.violating_units([unit.pods for unit in units])
    pairs = list(zip(units, violates, strict=True))
    return (
        [unit for unit, is_violating in pairs if is_violating],
        [unit for unit, is_violating in pairs if not is_violating],
    )
