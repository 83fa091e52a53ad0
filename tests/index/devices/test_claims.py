"""Claims ahead of the informer, and which devices they have (spec 08 B3, 03 §11.7)."""

from datetime import UTC, datetime

import msgspec
import pytest

from kubestow.api.device import AllocationResult, ResourceClaim
from kubestow.api.quantity import parse_quantity
from kubestow.cache.objects import ObjectStore
from kubestow.index.devices.allocated import AllocatedDevices
from kubestow.index.devices.claims import Claims
from kubestow.index.devices.inventory import PoolKey
from kubestow.testing import make_pod
from kubestow.testing.devices import make_allocation, make_claim

DEVICE = ("d.com", "p", "a")


def with_version(claim: ResourceClaim, version: str, **status: object) -> ResourceClaim:
    return msgspec.structs.replace(
        claim,
        metadata=msgspec.structs.replace(claim.metadata, resource_version=version),
        status=msgspec.structs.replace(claim.status, **status),
    )


def make_claims(*stored: ResourceClaim) -> tuple[ObjectStore[ResourceClaim], Claims]:
    store = ObjectStore[ResourceClaim]()
    for claim in stored:
        store.put(claim)
    return store, Claims(store, AllocatedDevices(ignore))


def ignore(pool: PoolKey) -> None:
    """Nothing about pools is kept here."""


Change = tuple[str | None, str | None]


def record_versions(claims: Claims) -> list[Change]:
    changes: list[Change] = []

    def record(old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        changes.append(
            (
                None if old is None else old.metadata.resource_version,
                None if new is None else new.metadata.resource_version,
            )
        )

    claims.subscribe(record)
    return changes


def test_an_assumed_claim_stays_until_the_informer_is_newer() -> None:
    claim = make_claim(version="1")
    store, claims = make_claims(claim)
    changes = record_versions(claims)
    claims.assume(with_version(claim, "5"))
    store.put(with_version(claim, "4"))  # an older write arrives late
    store.put(with_version(claim, "5"))  # our own write arrives
    assert changes == [("1", "5")]
    store.put(with_version(claim, "6"))
    assert changes == [("1", "5"), ("5", "6")]


@pytest.mark.parametrize(("version", "is_taken"), [("9", False), ("10", True), ("11", True)])
def test_versions_are_numbers(version: str, is_taken: bool) -> None:
    claim = make_claim(version="9")
    _, claims = make_claims(claim)
    claims.assume(with_version(claim, version))
    found = claims.get("default", "claim")
    assert found is not None
    assert (found is not claim) == is_taken


def test_restore_goes_back_to_the_informer() -> None:
    claim = make_claim(version="1")
    _, claims = make_claims(claim)
    changes = record_versions(claims)
    claims.assume(with_version(claim, "2"))
    claims.restore("default", "claim")
    claims.restore("default", "claim")  # nothing left to undo
    assert claims.get("default", "claim") is claim
    assert changes == [("1", "2"), ("2", "1")]


def test_deletion_ends_an_assumed_claim() -> None:
    claim = make_claim(version="1")
    store, claims = make_claims(claim)
    changes = record_versions(claims)
    claims.assume(with_version(claim, "2"))
    store.remove("default", "claim")
    assert claims.get("default", "claim") is None
    assert changes[-1] == ("2", None)


def test_a_claim_of_the_same_name_starts_over() -> None:
    store, claims = make_claims(make_claim(version="9"))
    again = make_claim(version="8")
    store.put(again)
    assert claims.get("default", "claim") is again


def test_a_write_confirmed_after_the_end_is_dropped() -> None:
    old = make_claim(version="1")
    store, claims = make_claims(old)
    again = make_claim(version="3")
    store.put(again)
    claims.assume(with_version(old, "5"))
    assert claims.get("default", "claim") is again


# --- Devices ----------------------------------------------------------------------------------


def test_devices_follow_the_claims() -> None:
    claim = make_claim(version="1")
    store, claims = make_claims(claim)
    assert not claims.allocated.is_in_use(DEVICE)
    store.put(with_version(claim, "2", allocation=make_allocation("p/a")))
    assert DEVICE in claims.allocated.dedicated
    store.put(with_version(claim, "3", allocation=None))
    assert not claims.allocated.is_in_use(DEVICE)


def test_devices_of_deleted_claims_are_free() -> None:
    store, claims = make_claims(make_claim(allocation=make_allocation("p/a")))
    assert DEVICE in claims.allocated.dedicated
    store.remove("default", "claim")
    assert not claims.allocated.is_in_use(DEVICE)


def test_an_allocation_that_changes_is_not_looked_at_again() -> None:
    claim = make_claim(version="1", allocation=make_allocation("p/a"))
    store, claims = make_claims(claim)
    store.put(with_version(claim, "2", allocation=make_allocation("p/b")))
    assert DEVICE in claims.allocated.dedicated
    store.put(with_version(claim, "3", allocation=None))
    assert not claims.allocated.is_in_use(DEVICE)
    assert not claims.allocated.is_in_use(("d.com", "p", "b"))


def share(amount: str, share_id: str) -> AllocationResult:
    allocation = make_allocation("p/a")
    result = msgspec.structs.replace(
        allocation.devices.results[0],
        share_id=share_id,
        consumed_capacity={"memory": parse_quantity(amount)},
    )
    devices = msgspec.structs.replace(allocation.devices, results=(result,))
    return msgspec.structs.replace(allocation, devices=devices)


def test_shares_add_up() -> None:
    store, claims = make_claims(
        make_claim("one", allocation=share("1Gi", "a")),
        make_claim("two", allocation=share("2Gi", "b")),
    )
    allocated = claims.allocated
    assert allocated.is_in_use(DEVICE)
    assert DEVICE not in allocated.dedicated
    assert allocated.consumed(DEVICE) == {"memory": parse_quantity("3Gi").nano}
    store.remove("default", "one")
    assert allocated.consumed(DEVICE) == {"memory": parse_quantity("2Gi").nano}
    store.remove("default", "two")
    assert not allocated.is_in_use(DEVICE)
    assert allocated.consumed(DEVICE) == {}


def test_without_consumable_capacity_a_share_is_the_whole_device() -> None:
    store = ObjectStore[ResourceClaim]()
    store.put(make_claim(allocation=share("1Gi", "a")))
    claims = Claims(store, AllocatedDevices(ignore, consumable_capacity=False))
    assert DEVICE in claims.allocated.dedicated


def test_administrators_do_not_use_devices_up() -> None:
    allocation = make_allocation("p/a")
    result = msgspec.structs.replace(allocation.devices.results[0], admin_access=True)
    devices = msgspec.structs.replace(allocation.devices, results=(result,))
    _, claims = make_claims(
        make_claim(allocation=msgspec.structs.replace(allocation, devices=devices))
    )
    assert not claims.allocated.is_in_use(DEVICE)


def test_changes_are_reported_by_pool() -> None:
    store = ObjectStore[ResourceClaim]()
    changed: list[PoolKey] = []
    Claims(store, AllocatedDevices(changed.append))
    claim = make_claim(version="1")
    store.put(claim)
    assert changed == []
    store.put(with_version(claim, "2", allocation=make_allocation("p/a", "p/b", "q/c")))
    assert sorted(changed) == [("d.com", "p"), ("d.com", "q")]
    changed.clear()
    store.remove("default", "claim")
    assert sorted(changed) == [("d.com", "p"), ("d.com", "q")]


# --- In flight --------------------------------------------------------------------------------


def in_flight(claim: ResourceClaim) -> ResourceClaim:
    status = msgspec.structs.replace(claim.status, allocation=make_allocation("p/a"))
    return msgspec.structs.replace(claim, status=status)


def test_devices_in_flight_are_taken() -> None:
    claim = make_claim()
    _, claims = make_claims(claim)
    claims.start_allocation(in_flight(claim))
    assert claims.in_flight(claim.metadata.uid) is not None
    assert DEVICE in claims.allocated.dedicated
    assert claims.end_allocation(claim.metadata.uid)
    assert claims.in_flight(claim.metadata.uid) is None
    assert not claims.allocated.is_in_use(DEVICE)
    assert not claims.end_allocation(claim.metadata.uid)


def test_the_last_sharer_ends_the_flight() -> None:
    claim = make_claim()
    _, claims = make_claims(claim)
    claims.start_allocation(in_flight(claim))
    claims.start_allocation(in_flight(claim))
    assert not claims.end_allocation(claim.metadata.uid)
    assert DEVICE in claims.allocated.dedicated
    assert claims.end_allocation(claim.metadata.uid)


def test_force_ends_the_flight_for_all_sharers() -> None:
    claim = make_claim()
    _, claims = make_claims(claim)
    claims.start_allocation(in_flight(claim))
    claims.start_allocation(in_flight(claim))
    assert claims.end_allocation(claim.metadata.uid, force=True)


def test_a_claim_in_flight_and_written_counts_once() -> None:
    claim = make_claim(version="1")
    store, claims = make_claims(claim)
    claims.start_allocation(in_flight(claim))
    store.put(with_version(in_flight(claim), "2"))
    claims.end_allocation(claim.metadata.uid, force=True)
    assert DEVICE in claims.allocated.dedicated
    store.remove("default", "claim")
    assert not claims.allocated.is_in_use(DEVICE)


def test_a_claim_written_with_other_devices_than_those_in_flight_has_both() -> None:
    claim = make_claim(version="1")
    store, claims = make_claims(claim)
    claims.start_allocation(in_flight(claim))
    store.put(with_version(claim, "2", allocation=make_allocation("p/b")))
    other = ("d.com", "p", "b")
    assert claims.allocated.dedicated.keys() == {DEVICE, other}
    claims.end_allocation(claim.metadata.uid, force=True)
    assert claims.allocated.dedicated.keys() == {other}
    store.remove("default", "claim")
    assert not claims.allocated.dedicated


def test_claims_made_for_extended_resources_are_found_by_pod() -> None:
    pod = make_pod()
    marked = {"resource.kubernetes.io/extended-resource-claim": "true"}
    claim = make_claim("made", owner=pod, annotations=marked)
    store, claims = make_claims(make_claim("other", owner=pod))
    assert list(claims.made_for(pod.metadata.uid)) == []
    store.put(claim)
    deleted = msgspec.structs.replace(
        claim.metadata, deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC)
    )
    store.put(msgspec.structs.replace(claim, metadata=deleted))
    assert [each.metadata.name for each in claims.made_for(pod.metadata.uid)] == ["made"]
    store.remove("default", "made")
    assert list(claims.made_for(pod.metadata.uid)) == []
