"""When claims are in flight in v1.37 (spec 12 §10.2 j), and devices that a group shares (§18)."""

import asyncio

import msgspec
import pytest

from kubestow.api.device import AllocationResult, ResourceClaim, ResourceSlice
from kubestow.api.pod import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodResourceClaim,
)
from kubestow.api.pod_info import PodInfo
from kubestow.cache.objects import ClusterObjects, ObjectStore
from kubestow.editions.v1_37.plugins.dynamic_resources.binding import ClaimBinderV137
from kubestow.errors import PluginError
from kubestow.index.devices import KnownDevices
from kubestow.index.devices.allocated import AllocatedDevices
from kubestow.index.devices.claims import Claims
from kubestow.index.devices.inventory import DeviceInventory
from kubestow.index.devices.per_node import NodeSlots
from kubestow.plugins.dynamic_resources.attempt import DeviceAttempt, TakenDevices
from kubestow.plugins.dynamic_resources.binding import ClaimBinder, as_allocated
from kubestow.plugins.dynamic_resources.group_claims import GroupClaims
from kubestow.plugins.dynamic_resources.preparation import Preparation
from kubestow.plugins.dynamic_resources.writes import ClaimWriter
from kubestow.testing import ManualClock, RecordedEvents, make_handle, make_pod
from kubestow.testing.devices import make_allocation, make_claim

POD = PodInfo(make_pod("p")).pod


class NoGroups:
    def is_reserved(self, claim: ResourceClaim, pod: object) -> bool:
        return False


class Writer:
    """Writes the first claims; the next one fails."""

    def __init__(self, writes: int) -> None:
        self._left = writes

    async def bind(
        self, claim: ResourceClaim, allocation: AllocationResult | None, consumer: object
    ) -> ResourceClaim:
        self._left -= 1
        if self._left < 0:
            raise PluginError("no")
        assert allocation is not None
        return as_allocated(claim, allocation)


class Lab:
    def __init__(self, binder: type[ClaimBinder], writes: int) -> None:
        store = ObjectStore[ResourceClaim]()
        self.made = [make_claim("a", version="1"), make_claim("b", version="1")]
        for claim in self.made:
            store.put(claim)
        inventory = DeviceInventory(ObjectStore[ResourceSlice](), NodeSlots())
        self.claims = Claims(store, AllocatedDevices(inventory.note_change))
        self.binder = binder(
            self.claims,
            NoGroups(),  # type: ignore[arg-type]
            Writer(writes),  # type: ignore[arg-type]
            ManualClock(),
            RecordedEvents(),
            binding_timeout_ns=None,
        )
        self.attempt = DeviceAttempt()
        self.attempt.claims = list(self.made)
        for index, claim in enumerate(self.made):
            self.attempt.reserved[index] = make_allocation(f"p/{claim.metadata.name}")
            self.claims.start_allocation(as_allocated(claim, self.attempt.reserved[index]))

    def bind(self) -> None:
        asyncio.run(self.binder.bind(self.attempt, POD, "n1"))

    def in_flight(self) -> list[str]:
        made = self.made
        return [each.metadata.name for each in made if self.claims.in_flight(each.metadata.uid)]


def test_nothing_is_in_flight_after_all_was_written() -> None:
    lab = Lab(ClaimBinderV137, writes=2)
    lab.bind()
    assert lab.in_flight() == []


@pytest.mark.parametrize(
    ("binder", "expected"),
    [
        pytest.param(ClaimBinder, [], id="v1.36"),
        pytest.param(ClaimBinderV137, ["a", "b"], id="v1.37"),
    ],
)
def test_claims_stay_in_flight_if_one_cannot_be_written(
    binder: type[ClaimBinder], expected: list[str]
) -> None:
    lab = Lab(binder, writes=1)
    with pytest.raises(PluginError):
        lab.bind()
    assert lab.in_flight() == expected


def test_a_claim_that_was_allocated_meanwhile_is_not_in_flight() -> None:
    lab = Lab(ClaimBinderV137, writes=0)
    first = lab.made[0]
    lab.claims.end_allocation(first.metadata.uid)
    allocated = as_allocated(first, make_allocation("p/a"))
    metadata = msgspec.structs.replace(allocated.metadata, resource_version="2")
    lab.claims.assume(msgspec.structs.replace(allocated, metadata=metadata))
    lab.attempt.unallocated = [0]
    lab.attempt.taken["n1"] = TakenDevices({0: first}, {0: make_allocation("p/a")}, ())
    lab.binder.reserve(lab.attempt, "n1")
    assert lab.in_flight() == ["b"]


@pytest.mark.parametrize(
    ("checks_shared", "expected"),
    [pytest.param(False, [], id="v1.36"), pytest.param(True, [0], id="v1.37")],
)
def test_devices_of_another_member_can_be_used_on_their_nodes(
    checks_shared: bool, expected: list[int]
) -> None:
    objects = ClusterObjects()
    claim = make_claim("c")
    objects.put(claim)
    handle = make_handle(objects=objects)
    known = KnownDevices.of(objects, handle.feature_gates)
    requirement = NodeSelectorRequirement(key="metadata.name", operator="In", values=("n1",))
    only_n1 = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(requirement,)),))
    allocation = make_allocation("p/d", node_selector=only_n1)
    known.claims.start_allocation(as_allocated(claim, allocation))
    writer = ClaimWriter(handle.client, handle.clock, handle.spawn, sets_timestamp=False)
    preparation = Preparation(
        known,
        handle.clock,
        extended_resources=False,
        prioritized_list=True,
        binding_timeout_ns=None,
        group_claims=GroupClaims(handle.groups, known.claims, writer, is_enabled=False),
        checks_shared=checks_shared,
    )
    entry = PodResourceClaim(name="c", resource_claim_name="c")
    pod = PodInfo(make_pod("p", resource_claims=[entry]))
    attempt = preparation.prepare(pod, {claim.metadata.uid})
    assert isinstance(attempt, DeviceAttempt)
    assert attempt.shared == {0: allocation}
    assert list(attempt.selectors) == expected
