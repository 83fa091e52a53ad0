"""Devices that have to be prepared before a pod may be bound to them (spec 08 B10)."""

from collections.abc import Iterable
from enum import Enum, auto
from typing import Final, NamedTuple

from kubestow.api.device import AllocatedDeviceStatus, DeviceRequestAllocationResult, ResourceClaim
from kubestow.api.meta import Condition, object_ref
from kubestow.clock import NANOSECONDS

FAILED_PREFIX: Final = "device binding failed"


class Readiness(Enum):
    READY = auto()
    PENDING = auto()
    FAILED = auto()


class BindingState(NamedTuple):
    """The readiness of the devices of a claim; `error` is why they failed."""

    readiness: Readiness
    error: str = ""


def binding_state(claim: ResourceClaim) -> BindingState:
    """Whether all devices of an allocated claim are ready."""
    readiness = Readiness.READY
    for result in _waiting_results(claim):
        status = _status_of(claim, result)
        if status is None:
            readiness = Readiness.PENDING
            continue
        failure = _first_true(status.conditions, result.binding_failure_conditions)
        if failure is not None:
            return BindingState(
                Readiness.FAILED,
                f"{FAILED_PREFIX}: claim={object_ref(claim.metadata)}, "
                f'reason={failure.reason}, message="{failure.message}"',
            )
        if not all(_first_true(status.conditions, (kind,)) for kind in result.binding_conditions):
            readiness = Readiness.PENDING
    return BindingState(readiness)


def waits_for_devices(claim: ResourceClaim) -> bool:
    """Whether some device of the claim has binding conditions."""
    return any(True for _ in _waiting_results(claim))


def waiting_drivers(claim: ResourceClaim) -> set[str]:
    """Drivers whose devices have binding conditions."""
    return {result.driver for result in _waiting_results(claim)}


def has_timed_out(claim: ResourceClaim, *, now_ns: int, timeout_ns: int) -> bool:
    """Whether the timeout since the allocation has passed."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None:
        return False
    allocated_ns = round(allocation.allocation_timestamp.timestamp()) * NANOSECONDS
    return waits_for_devices(claim) and allocated_ns + timeout_ns < now_ns


def _waiting_results(claim: ResourceClaim) -> Iterable[DeviceRequestAllocationResult]:
    allocation = claim.status.allocation
    results = () if allocation is None else allocation.devices.results
    return (result for result in results if result.binding_conditions)


def _status_of(
    claim: ResourceClaim, result: DeviceRequestAllocationResult
) -> AllocatedDeviceStatus | None:
    wanted = (result.driver, result.pool, result.device)
    return next(
        (each for each in claim.status.devices if (each.driver, each.pool, each.device) == wanted),
        None,
    )


def _first_true(conditions: Iterable[Condition], kinds: Iterable[str]) -> Condition | None:
    """The first of these conditions that is true."""
    true = {each.type: each for each in reversed(tuple(conditions)) if each.status == "True"}
    return next((true[kind] for kind in kinds if kind in true), None)
