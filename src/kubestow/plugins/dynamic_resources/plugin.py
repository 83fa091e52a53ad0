"""DynamicResources as the framework calls it (spec 08 part B)."""

from typing import ClassVar, Final

from kubestow.api.device import ResourceClaim
from kubestow.api.duration import parse_duration
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.clock import NANOSECONDS, SystemClock
from kubestow.config.feature_gates import FeatureGates, has_binding_conditions
from kubestow.config.plugin_args import DynamicResourcesArgs
from kubestow.errors import ConfigError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.diagnosis import Diagnosis
from kubestow.framework.events import Registrations
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import (
    MAX_NODE_SCORE,
    Fragments,
    PostFilterResult,
    PreFilterResult,
    PreFlight,
)
from kubestow.framework.reuse import ASKED, PodReads, Reads, Reuse
from kubestow.framework.status import Status
from kubestow.index.devices import KnownDevices
from kubestow.index.nodes import Nodes
from kubestow.plugins.dynamic_resources.allocator import (
    CORE_ALLOCATION,
    AllocationRules,
    DeviceAllocator,
)
from kubestow.plugins.dynamic_resources.attempt import DeviceAttempt
from kubestow.plugins.dynamic_resources.binding import ClaimBinder
from kubestow.plugins.dynamic_resources.extended_resources import is_in_memory
from kubestow.plugins.dynamic_resources.filtering import DeviceFilter, rejection
from kubestow.plugins.dynamic_resources.group_claims import GroupClaims
from kubestow.plugins.dynamic_resources.hints import ClaimHints
from kubestow.plugins.dynamic_resources.pools import NodePools
from kubestow.plugins.dynamic_resources.preparation import Preparation
from kubestow.plugins.dynamic_resources.resolve import ClaimError, claims_of
from kubestow.plugins.dynamic_resources.writes import ClaimWriter

NO_CLAIMS: Final = Status.unschedulable("no new claims to deallocate")
DEALLOCATED: Final = Status.unschedulable("deallocation of ResourceClaim completed")
DELETED: Final = Status.unschedulable("deletion of ResourceClaim completed")
STILL_NOT: Final = Status.unschedulable("still not schedulable")


def _may_ask_for_devices(pod: PodInfo) -> bool:
    """Whether the pod names a claim or requests a resource that devices could serve."""
    return bool(pod.pod.spec.resource_claims or pod.accounted.requested.scalar)


def _basis(pod: PodInfo) -> object:
    return ASKED if _may_ask_for_devices(pod) else None


class DynamicResources:
    name: ClassVar[str] = "DynamicResources"
    args_type: ClassVar[type[DynamicResourcesArgs]] = DynamicResourcesArgs
    per_node: ClassVar[bool] = True
    reserves_filtered: ClassVar[bool] = True
    # What an edition has of its own.
    allocation_rules: ClassVar[AllocationRules] = CORE_ALLOCATION
    hints_type: ClassVar[type[ClaimHints]] = ClaimHints
    binder_type: ClassVar[type[ClaimBinder]] = ClaimBinder
    no_claims: ClassVar[Status] = NO_CLAIMS
    still_not: ClassVar[Status] = STILL_NOT
    # Whether devices that another member of a group takes are checked to be on the node.
    checks_shared: ClassVar[bool] = False

    def __init__(self, args: DynamicResourcesArgs, handle: Handle) -> None:
        # What a claim gets does not depend on the pods of a node; pods without claims pass
        # everywhere.
        self.reuse = Reuse(
            filter=Reads.NODE,
            score=Reads.NODE,
            pod=PodReads.SPEC,
            basis=_basis,
        )
        gates, clock = handle.feature_gates, handle.clock
        known = KnownDevices.of(handle.objects, gates)
        binding_timeout_ns = _binding_timeout_ns(args, gates)
        self._claims = known.claims
        for_groups = gates.enabled("DRAWorkloadResourceClaims")
        self._hints = self.hints_type(known.claims, accepts_groups=for_groups)
        self._writer = ClaimWriter(
            handle.client, clock, handle.spawn, sets_timestamp=binding_timeout_ns is not None
        )
        self._group_claims = GroupClaims(
            handle.groups, known.claims, self._writer, is_enabled=for_groups
        )
        self._preparation = Preparation(
            known,
            clock,
            extended_resources=gates.enabled("DRAExtendedResource"),
            prioritized_list=gates.enabled("DRAPrioritizedList"),
            binding_timeout_ns=binding_timeout_ns,
            group_claims=self._group_claims,
            checks_shared=self.checks_shared,
        )
        self._scores_alternatives = gates.enabled("DRAPrioritizedList")
        self._allocator = DeviceAllocator(
            known,
            self.allocation_rules.features_of(gates),
            _filter_timeout_s(args, gates),
            SystemClock(),
            self.allocation_rules,
        )
        self._filter = DeviceFilter(known, self._allocator)
        self._binder = self.binder_type(
            known.claims,
            self._group_claims,
            self._writer,
            clock,
            handle.events,
            binding_timeout_ns=binding_timeout_ns,
            metrics=handle.metrics,
            profile_name=handle.profile_name,
        )

    def pools_of(self, node: Node) -> NodePools:
        """The pools of devices that a node can reach, for explanations; raises PluginError."""
        return self._allocator.pools_of(node)

    # --- queue ---

    def events(self) -> Registrations:
        return self._hints.registrations()

    def pre_enqueue(self, pod: Pod) -> Status | None:
        if not pod.spec.resource_claims:
            return None
        try:
            accepts_groups = self._group_claims.is_enabled
            claims_of(pod, self._claims, accepts_groups=accepts_groups)
        except ClaimError as error:
            return Status.unresolvable(str(error))
        return None

    # --- filtering ---

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> PreFilterResult:
        # Written first: PostFilter has to distinguish an attempt without claims from one that was
        # rejected before this.
        state.write(self.name, _NO_CLAIMS_AT_ALL)
        if not _may_ask_for_devices(pod) or not self._preparation.is_needed(pod):
            return Status.skip()
        attempt = self._preparation.prepare(pod, _taken_in(state))
        if isinstance(attempt, Status):
            return attempt
        if not attempt.claims:
            return Status.skip()
        state.write(self.name, attempt)
        return None

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        attempt: DeviceAttempt = state.read(self.name)
        if not attempt.claims:
            return None
        attempt.timer = state.timer
        return self._filter.codes(attempt, pod.pod, nodes)

    def sign_pod(self, pod: PodInfo) -> Fragments | None:
        return None if pod.pod.spec.resource_claims else {}

    def filter_status(self, state: CycleState, code: int) -> Status:
        if code > 0:
            return rejection(code)
        attempt: DeviceAttempt = state.read(self.name)
        return attempt.codes.status_of(code)

    def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult | None, Status]:
        attempt: DeviceAttempt = state.read(self.name)
        if not attempt.claims:
            return None, self.no_claims
        given_back = self._give_back(attempt, pod)
        return None, given_back or self._group_claims.give_up(pod.pod) or self.still_not

    def _give_back(self, attempt: DeviceAttempt, pod: PodInfo) -> Status | None:
        """Give back devices that keep the pod from some node; None if it has no such devices."""
        candidates = deallocatable(attempt, pod.uid)
        if candidates:
            # Upstream picks one at random; here it is the first, so that runs can be repeated.
            self._writer.deallocate(candidates[0])
            return DEALLOCATED
        special = attempt.special_claim
        if special is not None and not is_in_memory(special):
            self._writer.delete_special(special)
            return DELETED
        return None

    def post_filter_repeated(self, pod: PodInfo) -> bool:
        return not _may_ask_for_devices(pod)

    # --- scoring ---

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | int:
        if self._scores_zero(state, pod):
            return 0
        return self._filter.scores(state.read(self.name), pod.pod, nodes)

    def final_scores(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | int:
        scores = self.score(state, pod, nodes)
        return scores if isinstance(scores, int) else self.normalize(state, pod, scores)

    def _scores_zero(self, state: CycleState, pod: PodInfo) -> bool:
        attempt: DeviceAttempt | None = state.get(self.name)
        return (
            attempt is None
            or not self._scores_alternatives
            or not any(map(_has_alternatives, attempt.claims))
        )

    def normalize(self, state: CycleState, pod: PodInfo, scores: IntArray) -> IntArray:
        best = int(scores.max()) if len(scores) else 0
        return scores * MAX_NODE_SCORE // best if best else scores

    # --- binding ---

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        attempt: DeviceAttempt = state.read(self.name)
        if not attempt.claims:
            return None
        self._binder.reserve(attempt, node_name)
        if state.group_cycle is not None:
            taken = _taken_in(state)
            taken.update(attempt.claims[index].metadata.uid for index in attempt.reserved)
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        attempt: DeviceAttempt | None = state.get(self.name)
        if attempt is not None:
            self._binder.unreserve(attempt, pod.pod, _taken_in(state))

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> PreFlight:
        attempt: DeviceAttempt = state.read(self.name)
        return PreFlight(None if attempt.claims else Status.skip(), allow_parallel=True)

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        await self._binder.bind(state.read(self.name), pod.pod, node_name)
        return None


def deallocatable(attempt: DeviceAttempt, pod_uid: str) -> list[ResourceClaim]:
    """Claims that keep the pod from some node, and that no other pod uses (B9)."""
    return [
        attempt.claims[index]
        for index in sorted(attempt.unavailable)
        if index != attempt.special and _is_unused_by_others(attempt.claims[index], pod_uid)
    ]


def _taken_in(state: CycleState) -> set[str]:
    """UIDs of the claims for which members of the group take devices in this cycle."""
    cycle = state.group_cycle
    return set() if cycle is None else cycle.shared.setdefault(DynamicResources.name, set[str]())


# Shared: an attempt without claims is never changed.
_NO_CLAIMS_AT_ALL: Final = DeviceAttempt()


def _filter_timeout_s(args: DynamicResourcesArgs, gates: FeatureGates) -> float:
    """0 means none."""
    if not gates.enabled("DRASchedulerFilterTimeout"):
        return 0
    return _duration_ns("filterTimeout", args.filter_timeout) / NANOSECONDS


def _binding_timeout_ns(args: DynamicResourcesArgs, gates: FeatureGates) -> int | None:
    """None if binding conditions are off."""
    if not has_binding_conditions(gates):
        return None
    return _duration_ns("bindingTimeout", args.binding_timeout)


def _duration_ns(field: str, text: str) -> int:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise ConfigError(f"DynamicResourcesArgs: {field}: {error}") from error


def _is_unused_by_others(claim: ResourceClaim, pod_uid: str) -> bool:
    return all(consumer.uid == pod_uid for consumer in claim.status.reserved_for)


def _has_alternatives(claim: ResourceClaim) -> bool:
    return any(request.first_available for request in claim.spec.devices.requests)
