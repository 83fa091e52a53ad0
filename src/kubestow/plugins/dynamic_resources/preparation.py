"""PreFilter: which claims the pod has, and the state of each (spec 08 B5)."""

from collections.abc import Set

from kubestow.api.device import AllocationResult, DeviceRequest, ResourceClaim
from kubestow.api.labels import SelectorError
from kubestow.api.meta import object_ref
from kubestow.api.node_selector import compile_node_selector
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.api.requests import filter_request
from kubestow.api.resources import is_dra_extended
from kubestow.clock import Clock
from kubestow.errors import PluginError
from kubestow.framework.status import Status
from kubestow.index.devices import KnownDevices
from kubestow.plugins.dynamic_resources.attempt import DeviceAttempt
from kubestow.plugins.dynamic_resources.binding_conditions import (
    Readiness,
    binding_state,
    has_timed_out,
)
from kubestow.plugins.dynamic_resources.extended_resources import special_claim
from kubestow.plugins.dynamic_resources.group_claims import GroupClaims
from kubestow.plugins.dynamic_resources.resolve import ClaimError, claims_of


class Preparation:
    def __init__(
        self,
        known: KnownDevices,
        clock: Clock,
        *,
        extended_resources: bool,
        prioritized_list: bool,
        binding_timeout_ns: int | None,
        group_claims: GroupClaims,
        checks_shared: bool = False,
    ) -> None:
        """`binding_timeout_ns` None: binding conditions are off.

        `checks_shared`: devices that another member of the group takes are used on nodes that have
        them only.
        """
        self._known = known
        self._group_claims = group_claims
        self._checks_shared = checks_shared
        self._clock = clock
        self._extended_resources = extended_resources
        self._prioritized_list = prioritized_list
        self._binding_timeout_ns = binding_timeout_ns

    def is_needed(self, pod: PodInfo) -> bool:
        """Whether the pod may have claims, or may be rejected because of its group's."""
        return bool(
            pod.pod.spec.resource_claims
            or self._group_claims.is_enabled
            or self._may_be_served(pod)
        )

    def _may_be_served(self, pod: PodInfo) -> bool:
        """Whether devices may serve resources that the pod requests."""
        return (
            self._extended_resources
            and self._known.class_map.serves_resources
            and bool(pod.accounted.requested.scalar)
        )

    def prepare(self, pod: PodInfo, taken: Set[str] = frozenset()) -> DeviceAttempt | Status:
        """The pod's claims by state, or why it cannot be tried; raises PluginError.

        `taken` are UIDs of claims for which other members of the pod's group take devices in the
        same cycle.
        """
        attempt = DeviceAttempt()
        accepts_groups = self._group_claims.is_enabled
        try:
            claims = claims_of(pod.pod, self._known.claims, accepts_groups=accepts_groups)
            attempt.consumers = self._group_claims.consumers(pod.pod)
        except ClaimError as error:
            return Status.unresolvable(str(error))
        if self._may_be_served(pod):
            attempt.extended = _extended_requests(pod.pod)
            if any(map(self._known.class_map.class_of, attempt.extended)):
                attempt.special = len(claims)
                claims.append(special_claim(pod.pod, self._known.claims))
                attempt.special_uid = claims[-1].metadata.uid
        for index, claim in enumerate(claims):
            status = self._sort(attempt, index, claim, taken)
            if status is not None:
                return status
        # Only now: PostFilter must not change claims of a pod that was rejected here.
        attempt.claims = claims
        return attempt

    def _sort(
        self, attempt: DeviceAttempt, index: int, claim: ResourceClaim, taken: Set[str]
    ) -> Status | None:
        if claim.status.allocation is None:
            attempt.unallocated.append(index)
            in_flight = self._known.claims.in_flight(claim.metadata.uid)
            if claim.metadata.uid in taken and in_flight is not None:
                assert in_flight.status.allocation is not None, claim
                attempt.shared[index] = in_flight.status.allocation
                if self._checks_shared:
                    self._note_selector(attempt, index, in_flight.status.allocation)
                return None
            return self._check_unallocated(claim, is_special=index == attempt.special)
        self._note_selector(attempt, index, claim.status.allocation)
        if self._is_broken(claim):
            attempt.broken.add(index)
        return None

    @staticmethod
    def _note_selector(attempt: DeviceAttempt, index: int, allocation: AllocationResult) -> None:
        if allocation.node_selector is None:
            return
        try:
            attempt.selectors[index] = compile_node_selector(allocation.node_selector, strict=True)
        except SelectorError as error:
            raise PluginError(str(error)) from error

    def _is_broken(self, claim: ResourceClaim) -> bool:
        timeout_ns = self._binding_timeout_ns
        if timeout_ns is None:
            return False
        match binding_state(claim).readiness:
            case Readiness.FAILED:
                return True
            case Readiness.PENDING:
                return has_timed_out(claim, now_ns=self._clock.now_ns(), timeout_ns=timeout_ns)
            case Readiness.READY:
                return False

    def _check_unallocated(self, claim: ResourceClaim, *, is_special: bool) -> Status | None:
        if self._known.claims.in_flight(claim.metadata.uid) is not None:
            return Status.unresolvable(
                f"resource claim {object_ref(claim.metadata)} is in the process of being allocated"
            )
        if is_special:
            return None
        for request in claim.spec.devices.requests:
            status = self._check_classes(claim, request)
            if status is not None:
                return status
        return None

    def _check_classes(self, claim: ResourceClaim, request: DeviceRequest) -> Status | None:
        if request.exactly is not None:
            return self._check_class(request.name, request.exactly.device_class_name)
        if not request.first_available:
            return Status.unresolvable(
                f"resource claim {object_ref(claim.metadata)}, request {request.name}: "
                "unknown request type"
            )
        if not self._prioritized_list:
            return Status.unresolvable(
                f"resource claim {object_ref(claim.metadata)}, request {request.name}: "
                "has subrequests, but the DRAPrioritizedList feature is disabled"
            )
        for alternative in request.first_available:
            name = f"{request.name}/{alternative.name}"
            status = self._check_class(name, alternative.device_class_name)
            if status is not None:
                return status
        return None

    def _check_class(self, request_name: str, class_name: str) -> Status | None:
        if not class_name:
            raise PluginError(f"request {request_name}: unsupported request type")
        if self._known.classes.get(class_name) is None:
            return Status.unresolvable(
                f"request {request_name}: device class {class_name} does not exist"
            )
        return None


def _extended_requests(pod: Pod) -> tuple[str, ...]:
    """The extended resources that the pod requests and devices may serve."""
    scalars = filter_request(pod).scalar
    return tuple(sorted(name for name in scalars if scalars[name] and is_dra_extended(name)))
