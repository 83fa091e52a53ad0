"""Filter: which nodes have devices for the pod (spec 08 B6, B11)."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import numpy as np

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.arrays import IntArray
from kubestow.errors import BudgetSpentError, PluginError, SetAsideError
from kubestow.framework.status import Status
from kubestow.index.devices import KnownDevices
from kubestow.index.devices.per_node import NodeSlots, grown
from kubestow.index.node_match import matches_selector
from kubestow.index.nodes import Nodes
from kubestow.plugins.dynamic_resources.allocator import DeviceAllocator, InvalidPools, TimedOut
from kubestow.plugins.dynamic_resources.answers import AnswerBook, Answers, Found
from kubestow.plugins.dynamic_resources.attempt import DeviceAttempt, DeviceDemand, NodeAllocation
from kubestow.plugins.dynamic_resources.extended_resources import (
    Mappings,
    special_requests,
    with_requests,
)
from kubestow.plugins.dynamic_resources.requests import ClaimPlan, plan_claim
from kubestow.plugins.dynamic_resources.results import ClaimAllocation, preference_score

LEFT_OVER_CLAIM: Final = Status.unresolvable("cannot schedule extended resource claim")
MISSING_RESOURCE: Final = Status.unresolvable("cannot fit resource")
NO_DEVICES: Final = Status.unresolvable("cannot allocate all claims")
INVALID_POOLS: Final = Status.unresolvable("invalid resource pools were encountered")
UNAVAILABLE: Final = Status.unresolvable("resourceclaim not available on the node")

# Rejections have the same numbers for all pods; errors get negative ones of their attempt.
REJECTIONS: Final = (LEFT_OVER_CLAIM, MISSING_RESOURCE, NO_DEVICES, INVALID_POOLS, UNAVAILABLE)
_CODES: Final = {status: code for code, status in enumerate(REJECTIONS, start=1)}


class DeviceFilter:
    def __init__(self, known: KnownDevices, allocator: DeviceAllocator) -> None:
        self._known = known
        self._allocator = allocator
        self._book = AnswerBook(known)

    def codes(self, attempt: DeviceAttempt, pod: Pod, nodes: Nodes) -> IntArray:
        """int64[node]: the verdicts; what the pod would get is stored in the attempt."""
        special = attempt.special_claim
        if special is not None and special.spec.devices.requests:
            return np.full(len(nodes), _CODES[LEFT_OVER_CLAIM], np.int64)
        if not attempt.searched:
            # No claim needs devices, or another member of the group has taken them for all.
            codes = np.zeros(len(nodes), np.int64)
            _reject_unavailable(attempt, nodes, codes)
            return codes
        slots = self._known.slots.of(nodes)
        passed = self._passed_nodes(attempt, pod)
        self._bring_up_to_date(passed.answers, attempt, pod, slots)
        codes = passed.answers.codes[slots]
        if attempt.selectors or attempt.broken:
            _reject_unavailable(attempt, nodes, codes)
        passed.note(slots, codes)
        return codes

    def scores(self, attempt: DeviceAttempt, pod: Pod, nodes: Nodes) -> IntArray:
        """int64[node]: the preference scores of the alternatives the pod would get (B9)."""
        if not attempt.unallocated:
            return np.zeros(len(nodes), np.int64)
        if attempt.shared:
            return self._scores_with_shared(attempt, pod, nodes)
        if not isinstance(attempt.allocations, _PassedNodes):
            self.codes(attempt, pod, nodes)
        answers = self._passed_nodes(attempt, pod).answers
        # Devices of claims that were allocated before count the same on all nodes.
        earlier = sum(
            preference_score(claim, claim.status.allocation)
            for claim in attempt.claims
            if claim.status.allocation is not None
        )
        slots = self._known.slots.of(nodes)
        return np.where(answers.is_found[slots], answers.scores[slots] + earlier, 0)

    def _scores_with_shared(self, attempt: DeviceAttempt, pod: Pod, nodes: Nodes) -> IntArray:
        if attempt.searched and not isinstance(attempt.allocations, _PassedNodes):
            self.codes(attempt, pod, nodes)
        scores: list[int] = []
        for name in nodes.names:
            results = allocations_on(attempt, attempt.allocations.get(name))
            if results is None:
                scores.append(0)
                continue
            given = iter(results)
            scores.append(
                sum(
                    preference_score(claim, claim.status.allocation or next(given).result)
                    for claim in attempt.claims
                )
            )
        return np.array(scores, np.int64)

    def _passed_nodes(self, attempt: DeviceAttempt, pod: Pod) -> "_PassedNodes":
        passed = attempt.allocations
        if not isinstance(passed, _PassedNodes):
            answers = self._book.look_up(attempt, pod)
            passed = attempt.allocations = _PassedNodes(
                answers, self._known.slots, partial(self._demand, attempt, pod)
            )
        return passed

    def _bring_up_to_date(
        self, answers: Answers, attempt: DeviceAttempt, pod: Pod, slots: IntArray
    ) -> None:
        missing = answers.missing(slots)
        if self._allocator.never_finishes:
            missing = slots.tolist()  # Every search times out, also where an answer is known.
        for slot in missing:
            attempt.timer.may_interrupt()
            outcome = self._search(answers, attempt, pod, slot)
            if isinstance(outcome, Found):
                claims = self._demand(attempt, pod, outcome.served).claims
                score = 0
                for claim, allocation in zip(claims, outcome.allocations, strict=True):
                    score += preference_score(claim, allocation.result)
                answers.keep_found(slot, outcome, score)
            elif outcome is None:
                answers.keep(slot, 0)
            else:
                code = _CODES.get(outcome)
                if code is None:
                    answers.keep(slot, attempt.codes.code_of(outcome), is_lasting=False)
                else:
                    answers.keep(slot, code)

    def _search(
        self, answers: Answers, attempt: DeviceAttempt, pod: Pod, slot: int
    ) -> Found | Status | None:
        """The verdict on one node; None if it passes without any device for the pod."""
        node = self._known.slots.node(slot)
        served: tuple[str, ...] = ()
        if attempt.has_timed_out:
            # The attempt has ended; a search on this node too would take as long again.
            return _timed_out(node)
        if attempt.special >= 0:
            found = self._served_by_devices(attempt, node)
            if isinstance(found, Status):
                return found
            if not found and not attempt.has_user_claims:
                return None
            served = found
        try:
            plans = self._demand(attempt, pod, served).plans
            allocations = self._allocations(answers, attempt, slot, plans)
        except BudgetSpentError:
            raise
        except TimedOut:
            # Where no search ever finishes none takes long, and some end in other errors first.
            attempt.has_timed_out = not self._allocator.never_finishes
            return _timed_out(node)
        except InvalidPools:
            return INVALID_POOLS
        except PluginError as error:
            return Status.from_error(error)
        return NO_DEVICES if allocations is None else Found(allocations, served)

    def _allocations(
        self, answers: Answers, attempt: DeviceAttempt, slot: int, plans: Sequence[ClaimPlan]
    ) -> tuple[ClaimAllocation, ...] | None:
        """The result of the search on a node, which may go on where it was interrupted."""
        names = tuple([plan.name for plan in plans])
        search = answers.take_interrupted(names, slot)
        if search is None:
            search = self._allocator.search(self._known.slots.node(slot), plans)
        try:
            return search.run(attempt.timer)
        except SetAsideError:
            answers.keep_interrupted(names, slot, search)
            raise

    def _served_by_devices(self, attempt: DeviceAttempt, node: Node) -> tuple[str, ...] | Status:
        """The pod's extended resources that devices serve here, not a device plugin."""
        allocatable = node.status.allocatable
        served: list[str] = []
        for resource in attempt.extended:
            quantity = allocatable.get(resource)
            is_offered = quantity is not None and quantity.nano > 0
            if not is_offered and self._known.class_map.class_of(resource) is not None:
                served.append(resource)
            elif quantity is None:
                return MISSING_RESOURCE
        return tuple(served)

    def _demand(self, attempt: DeviceAttempt, pod: Pod, served: tuple[str, ...]) -> DeviceDemand:
        demand = attempt.demands.get(served)
        if demand is None:
            demand = attempt.demands[served] = self._make_demand(attempt, pod, served)
        return demand

    def _make_demand(
        self, attempt: DeviceAttempt, pod: Pod, served: tuple[str, ...]
    ) -> DeviceDemand:
        claims = [attempt.claims[index] for index in attempt.searched]
        mappings: Mappings = ()
        if served:
            requests, mappings = special_requests(pod, served, self._class_name)
            claims[-1] = with_requests(claims[-1], requests)
        plans = tuple([plan_claim(claim, self._known.classes.get) for claim in claims])
        return DeviceDemand(tuple(claims), plans, mappings)

    def _class_name(self, resource: str) -> str:
        device_class = self._known.class_map.class_of(resource)
        assert device_class is not None, resource
        return device_class.metadata.name


def allocations_on(
    attempt: DeviceAttempt, on_node: NodeAllocation | None
) -> list[ClaimAllocation] | None:
    """What the claims that need devices get on a node; None if the node has nothing for them.
    `on_node` is what was found there.

    As upstream (spec 11 §10): devices found now come first, those of claims that are shared with
    other members after them. Both are handed out in the order of the claims, so that a shared claim
    before another one gets the devices of that one.
    """
    found: Sequence[ClaimAllocation] = ()
    if attempt.searched:
        if on_node is None:
            return None
        found = on_node.allocations
    return [*found, *map(ClaimAllocation, attempt.shared.values())]


class _PassedNodes:
    """What the pod would get on the nodes that passed, read from the answers on request."""

    def __init__(
        self, answers: Answers, slots: NodeSlots, demand: Callable[[tuple[str, ...]], DeviceDemand]
    ) -> None:
        self.answers = answers
        self._slots = slots
        self._demand = demand
        self._has_passed = np.zeros(0, np.bool_)

    def note(self, slots: IntArray, codes: IntArray) -> None:
        if len(self._has_passed) < len(self._slots):
            self._has_passed = grown(self._has_passed, len(self._slots))
        self._has_passed[slots] = codes == 0

    def get(self, node_name: str, /) -> NodeAllocation | None:
        slot = self._slots.find(node_name)
        if slot is None or slot >= len(self._has_passed) or not self._has_passed[slot]:
            return None
        if not self.answers.is_found[slot]:
            return None
        found = self.answers.found[slot]
        demand = self._demand(found.served)
        return NodeAllocation(demand.claims, found.allocations, demand.mappings)


def _reject_unavailable(attempt: DeviceAttempt, nodes: Nodes, codes: IntArray) -> None:
    """Reject nodes on which an allocated claim cannot be used, and record these claims."""
    is_open = codes == 0
    is_rejected = np.zeros(len(nodes), np.bool_)
    for index, selector in attempt.selectors.items():
        unmatched = is_open & ~matches_selector(nodes, selector)
        if unmatched.any():
            attempt.unavailable.add(index)
            is_rejected |= unmatched
    if attempt.broken and is_open.any():
        attempt.unavailable |= attempt.broken
        is_rejected |= is_open
    codes[is_rejected] = _CODES[UNAVAILABLE]


def _timed_out(node: Node) -> Status:
    text = f"node {node.metadata.name}: timed out trying to allocate devices"
    return Status.from_error(PluginError(text))


def rejection(code: int) -> Status:
    return REJECTIONS[code - 1]
