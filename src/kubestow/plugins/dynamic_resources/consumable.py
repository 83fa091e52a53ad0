"""How much of a device's capacities a request takes (spec 08 B7.6)."""

from typing import Final

from kubestow.api.device import CapacityRequestPolicyRange, DeviceCapacity
from kubestow.api.quantity import Format, Quantity
from kubestow.index.devices.allocated import Consumed
from kubestow.index.devices.inventory import PublishedDevice
from kubestow.plugins.dynamic_resources.requests import RequestPlan

# Capacity name → what a request takes of it, in the form in which the claim will list it.
Amounts = dict[str, Quantity]

_NANO: Final = 10**9


def amounts_taken(plan: RequestPlan, published: PublishedDevice) -> Amounts | None:
    """What the request takes of each capacity of the device; None if the policy forbids it."""
    capacity = published.device.capacity
    if not plan.capacity.keys() <= capacity.keys():
        return None
    taken: Amounts = {}
    for name, entry in capacity.items():
        amount = _amount(entry, plan.capacity.get(name))
        if amount is None:
            return None
        taken[name] = amount
    return taken


def is_enough(
    published: PublishedDevice, taken: Amounts, allocated: Consumed, attempted: Consumed
) -> bool:
    """Whether the amounts are free besides what others have and what this attempt took."""
    return all(
        allocated.get(name, 0) + attempted.get(name, 0) + amount.nano
        <= published.device.capacity[name].value.nano
        for name, amount in taken.items()
    )


def _amount(entry: DeviceCapacity, wanted: Quantity | None) -> Quantity | None:
    policy = entry.request_policy
    if wanted is None:
        default = None if policy is None else policy.default
        return entry.value if default is None else default
    if policy is None:
        return wanted
    amount = wanted
    if policy.valid_range is not None:
        amount = _rounded_in_range(amount, policy.valid_range)
    elif policy.valid_values:
        amount = next((value for value in policy.valid_values if value >= amount), amount)
    if policy.default is not None and amount == policy.default:
        return amount
    if policy.valid_range is not None and not _is_in_range(amount, policy.valid_range):
        return None
    if policy.valid_values and amount not in policy.valid_values:
        return None
    return amount


def _rounded_in_range(amount: Quantity, valid: CapacityRequestPolicyRange) -> Quantity:
    if valid.min is None:
        return amount
    if amount < valid.min:
        return valid.min
    if valid.step is None:
        return amount
    # Whole units from here on, as in the specification.
    lowest, step = valid.min.value(), valid.step.value()
    above = amount.value() - lowest
    return Quantity((lowest + -(-above // step) * step) * _NANO, Format.BINARY_SI)


def _is_in_range(amount: Quantity, valid: CapacityRequestPolicyRange) -> bool:
    if valid.max is not None and amount > valid.max:
        return False
    if valid.step is None or valid.min is None:
        return True
    return (amount.value() - valid.min.value()) % valid.step.value() == 0
