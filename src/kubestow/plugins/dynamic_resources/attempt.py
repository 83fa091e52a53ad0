"""What DynamicResources stores during one attempt.

Not copied for simulations: the result of a dry run for a node replaces the earlier one (spec 08
A6).
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from kubestow.api.device import (
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from kubestow.api.node_selector import CompiledNodeSelector
from kubestow.framework.attempt_timer import NO_TIMER, AttemptTimer, NoTimer
from kubestow.framework.plugin import StatusCodes
from kubestow.plugins.dynamic_resources.extended_resources import Mappings
from kubestow.plugins.dynamic_resources.requests import ClaimPlan
from kubestow.plugins.dynamic_resources.results import ClaimAllocation


class NodeAllocation(NamedTuple):
    """What the claims of the pod would get on one node.

    claims        the claims that need devices, in the pod's order
    allocations   what each of them gets
    mappings      which container the requests of the special claim are for
    """

    claims: tuple[ResourceClaim, ...]
    allocations: tuple[ClaimAllocation, ...]
    mappings: Mappings = ()


class DeviceDemand(NamedTuple):
    """What to search for on a node; depends on which resources devices serve there."""

    claims: tuple[ResourceClaim, ...]
    plans: tuple[ClaimPlan, ...]
    mappings: Mappings


class NodeAllocations(Protocol):
    """What the pod would get on the nodes that passed; valid during the cycle."""

    def get(self, node_name: str, /) -> NodeAllocation | None: ...


_NOTHING: Final[NodeAllocations] = dict[str, NodeAllocation]()


class TakenDevices(NamedTuple):
    """What Reserve took on a node: claims and their devices by index."""

    claims: dict[int, ResourceClaim]
    results: dict[int, AllocationResult]
    mappings: Mappings


class DeviceAttempt:
    """One pod's claims and their state, in one attempt.

    claims          of the pod, as at PreFilter; those that PreBind wrote, as written
    special         index of the claim for extended resources, the last one; -1 if there is none
    selectors       index → nodes on which an allocated claim can be used
    unallocated     indices of claims that need devices
    shared          index → devices of a claim that another member of the pod's group takes as well
    consumers       what the claims are reserved for, in their order; the pod itself for others
    broken          indices of claims whose devices will not become ready
    unavailable     indices of claims because of which some node was rejected
    allocations     what the pod would get on each node
    reserved        index → what the claim got on the node that was chosen
    taken           the same by node, for a pod that is reserved in a trial and again in earnest
    """

    __slots__ = (
        "allocations",
        "bound",
        "broken",
        "claims",
        "codes",
        "consumers",
        "demands",
        "extended",
        "has_timed_out",
        "mappings",
        "reserved",
        "selectors",
        "shared",
        "special",
        "special_uid",
        "taken",
        "timer",
        "unallocated",
        "unavailable",
    )

    def __init__(self) -> None:
        self.claims: list[ResourceClaim] = []
        self.special = -1
        # UID under which the special claim is in flight; it gets another one when it is created.
        self.special_uid = ""
        self.selectors: dict[int, CompiledNodeSelector] = {}
        self.unallocated: list[int] = []
        self.shared: dict[int, AllocationResult] = {}
        self.consumers: Sequence[ResourceClaimConsumerReference] = ()
        self.taken: dict[str, TakenDevices] = {}
        # UIDs of claims that are written; an edition that ends their flight later reads them.
        self.bound: list[str] = []
        self.broken: set[int] = set()
        self.unavailable: set[int] = set()
        self.allocations: NodeAllocations = _NOTHING
        self.reserved: dict[int, AllocationResult] = {}
        self.mappings: Mappings = ()
        # The requested resources that devices may serve.
        self.extended: tuple[str, ...] = ()
        # By the resources that devices serve on a node.
        self.demands: dict[tuple[str, ...], DeviceDemand] = {}
        # The search took too long on some node, which ends the attempt.
        self.has_timed_out = False
        # Lets the attempt be interrupted: what is found out about nodes and devices is kept.
        self.timer: AttemptTimer | NoTimer = NO_TIMER
        # Numbers of errors; rejections have fixed ones.
        self.codes = StatusCodes()

    @property
    def searched(self) -> list[int]:
        """Indices of claims for which devices are searched."""
        if not self.shared:
            return self.unallocated
        return [index for index in self.unallocated if index not in self.shared]

    @property
    def special_claim(self) -> ResourceClaim | None:
        return self.claims[self.special] if self.special >= 0 else None

    @property
    def has_user_claims(self) -> bool:
        return len(self.claims) > (self.special >= 0)
