"""The victims on one node where groups may be evicted as a whole, on other nodes as well.

See spec 12 §9.4. Pods of a unit elsewhere are removed only from what filters have computed before;
their nodes are not changed.
"""

from kubestow.api.pod_info import PodInfo
from kubestow.cache.node_info import NodeInfo
from kubestow.editions.v1_37.plugins.group_preemption.units import (
    Units,
    UnitV137,
    in_reprieve_order,
)
from kubestow.errors import CacheError
from kubestow.framework.runner import run_add_pod, run_filters_with_nominated, run_remove_pod
from kubestow.framework.status import Status
from kubestow.index.nodes import SimulatedNode
from kubestow.plugins.default_preemption.candidates import Candidate
from kubestow.plugins.default_preemption.dry_run import NO_VICTIMS, TrialInputs
from kubestow.plugins.default_preemption.one_node import OneNode, no_victim_needed


class UnitTrials(OneNode):
    """Tries nodes one after the other, whose pods are evicted in units."""

    def __init__(self, inputs: TrialInputs, units: Units) -> None:
        super().__init__(inputs)
        self._units = units

    def select(self, row: int) -> Candidate | Status:
        try:
            found = _UnitTrial(self._inputs, self._units, row).select()
        except CacheError as error:
            return Status.from_error(error)
        if isinstance(found, Status) or found.victims:
            return found
        return no_victim_needed(self._inputs.snapshot.names[row])


class _UnitTrial:
    def __init__(self, inputs: TrialInputs, units: Units, row: int) -> None:
        self._inputs = inputs
        self._units = units
        self._row = row
        self._node = SimulatedNode(inputs.snapshot, row)
        self._state = inputs.state.clone()
        self._nominated = inputs.nominator.nominated_pods_for_node(inputs.snapshot.names[row])

    def select(self) -> Candidate | Status:
        lower = self._lower_units()
        for unit in lower:
            if (failed := self._move(unit, is_back=False)) is not None:
                return failed
        if not lower:
            return NO_VICTIMS
        status = self._filter()
        if status is not None:
            return status
        lower.sort(key=lambda unit: unit.rank)
        violating, others = in_reprieve_order(lower, self._inputs.budgets)
        victims: list[UnitV137] = []
        violation_count = 0
        for is_violating, some in ((True, violating), (False, others)):
            for unit in some:
                if (failed := self._move(unit, is_back=True)) is not None:
                    return failed
                if self._filter() is None:
                    continue
                if (failed := self._move(unit, is_back=False)) is not None:
                    return failed
                victims.append(unit)
                violation_count += len(unit.pods) if is_violating else 0
        victims.sort(key=lambda unit: unit.rank)
        pods = [pod for unit in victims for pod in unit.pods]
        return Candidate(self._row, pods, violation_count)

    def _lower_units(self) -> list[UnitV137]:
        inputs, pod = self._inputs, self._inputs.pod
        may_evict = inputs.rules.may_evict
        found: list[UnitV137] = []
        for unit in self._units.of_pods(self._node.info.pods):
            if unit.priority >= pod.priority:
                continue
            nodes = (self._info_of(victim) for victim in unit.pods)
            pairs = zip(nodes, unit.pods, strict=True)
            if all(may_evict(info, victim, pod) for info, victim in pairs):
                found.append(unit)
        return found

    def _info_of(self, pod: PodInfo) -> NodeInfo:
        return self._inputs.snapshot.get(pod.pod.spec.node_name)

    def _move(self, unit: UnitV137, *, is_back: bool) -> Status | None:
        inputs = self._inputs
        inputs.state.timer.pause()
        for pod in unit.pods:
            row = inputs.snapshot.row_of(pod.pod.spec.node_name)
            assert row is not None, pod.key
            if row == self._row:
                (self._node.add_pod if is_back else self._node.remove_pod)(pod)
            run = run_add_pod if is_back else run_remove_pod
            status = run(inputs.profile, self._state, inputs.pod, pod, row)
            if status is not None:
                return status
        return None

    def _filter(self) -> Status | None:
        return run_filters_with_nominated(
            self._inputs.profile, self._state, self._inputs.pod, self._node, self._nominated
        )
