"""How much of a device's capacities a request takes (spec 08 B7.6). Amounts are in nano-units."""

from typing import Final

from kubestow.api.device import CapacityRequestPolicyRange, DeviceCapacity
from kubestow.api.quantity import Quantity
from kubestow.index.devices.allocated import Consumed
from kubestow.index.devices.inventory import PublishedDevice
from kubestow.plugins.dynamic_resources.requests import RequestPlan

_NANO: Final = 10**9


def amounts_taken(plan: RequestPlan, published: PublishedDevice) -> Consumed | None:
    """What the request takes of each capacity of the device; None if the policy forbids it."""
    capacity = published.device.capacity
    if not plan.capacity.keys() <= capacity.keys():
        return None
    taken: Consumed = {}
    for name, entry in capacity.items():
        amount = _amount(entry, plan.capacity.get(name))
        if amount is None:
            return None
        taken[name] = amount
    return taken


def is_enough(
    published: PublishedDevice, taken: Consumed, allocated: Consumed, attempted: Consumed
) -> bool:
    """Whether the amounts are free besides what others have and what this attempt took."""
    return all(
        allocated.get(name, 0) + attempted.get(name, 0) + amount
        <= published.device.capacity[name].value.nano
        for name, amount in taken.items()
    )


def _amount(entry: DeviceCapacity, wanted: Quantity | None) -> int | None:
    policy = entry.request_policy
    if wanted is None:
        default = None if policy is None else policy.default
        return (entry.value if default is None else default).nano
    if policy is None:
        return wanted.nano
    amount = wanted.nano
    if policy.valid_range is not None:
        amount = _rounded_in_range(amount, policy.valid_range)
    elif policy.valid_values:
        larger = (value.nano for value in policy.valid_values if value.nano >= amount)
        amount = next(larger, amount)
    if policy.default is not None and amount == policy.default.nano:
        return amount
    if policy.valid_range is not None and not _is_in_range(amount, policy.valid_range):
        return None
    if policy.valid_values and all(amount != value.nano for value in policy.valid_values):
        return None
    return amount


def _rounded_in_range(amount: int, valid: CapacityRequestPolicyRange) -> int:
    if valid.min is None:
        return amount
    if amount < valid.min.nano:
        return valid.min.nano
    if valid.step is None:
        return amount
    # Whole units from here on, as in the specification.
    lowest, step = valid.min.value(), valid.step.value()
    above = -(-amount // _NANO) - lowest
    return (lowest + -(-above // step) * step) * _NANO


def _is_in_range(amount: int, valid: CapacityRequestPolicyRange) -> bool:
    if valid.max is not None and amount > valid.max.nano:
        return False
    if valid.step is None or valid.min is None:
        return True
    units = -(-amount // _NANO)
    return (units - valid.min.value()) % valid.step.value() == 0
