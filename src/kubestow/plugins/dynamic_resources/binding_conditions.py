"""Devices that have to be prepared before a pod may be bound to them (spec 08 B10)."""

from collections.abc import Iterable
from enum import Enum, auto
from typing import Final, NamedTuple

from kubestow.api.device import AllocatedDeviceStatus, DeviceRequestAllocationResult, ResourceClaim
from kubestow.api.meta import Condition
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
    """Whether all devices of a claim are ready.

    Devices are looked at in the order of the results: the first that is not ready decides, and what
    became of later ones is not seen.
    """
    if claim.status.allocation is None:
        return BindingState(Readiness.PENDING)
    for result in waiting_results(claim):
        status = _status_of(claim, result)
        if status is None:
            return BindingState(Readiness.PENDING)
        true = _true_conditions(status.conditions)
        for kind in result.binding_failure_conditions:
            if kind in true:
                failure = true[kind]
                return BindingState(
                    Readiness.FAILED,
                    f"{FAILED_PREFIX}: claim={claim.metadata.name}, "
                    f"reason={failure.reason}, message={quoted(failure.message)}",
                )
        if not true.keys() >= set(result.binding_conditions):
            return BindingState(Readiness.PENDING)
    return BindingState(Readiness.READY)


def waiting_results(claim: ResourceClaim) -> list[DeviceRequestAllocationResult]:
    """The devices of the claim that have binding conditions."""
    allocation = claim.status.allocation
    results = () if allocation is None else allocation.devices.results
    return [result for result in results if result.binding_conditions]


def has_timed_out(claim: ResourceClaim, *, now_ns: int, timeout_ns: int) -> bool:
    """Whether the timeout since the allocation has passed."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None:
        return False
    allocated_ns = round(allocation.allocation_timestamp.timestamp()) * NANOSECONDS
    return bool(waiting_results(claim)) and allocated_ns + timeout_ns < now_ns


def _status_of(
    claim: ResourceClaim, result: DeviceRequestAllocationResult
) -> AllocatedDeviceStatus | None:
    wanted = (result.driver, result.pool, result.device)
    return next(
        (each for each in claim.status.devices if (each.driver, each.pool, each.device) == wanted),
        None,
    )


def _true_conditions(conditions: Iterable[Condition]) -> dict[str, Condition]:
    """The conditions that are true; of several with one type the first counts."""
    first = {each.type: each for each in reversed(tuple(conditions))}
    return {kind: each for kind, each in first.items() if each.status == "True"}


_ESCAPES: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}


def quoted(text: str) -> str:
    """The text in quotes as Go prints it with %q, which recorded messages contain."""
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    escape = _ESCAPES.get(character)
    if escape is not None:
        return escape
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
