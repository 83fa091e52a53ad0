"""How much of a device's capacities a request takes in v1.37 (spec 12 §10.2 d, i).

Ranges are computed in thousandths where these are exact, else in whole units. An amount that does
not fit 64 bits ends the attempt of the pod: it would be wrong on all other devices as well.
"""

from collections.abc import Mapping
from typing import Final

from kubestow.api.device import CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity
from kubestow.api.quantity import INT64_MAX, INT64_MIN, Quantity
from kubestow.plugins.dynamic_resources.consumable import Amounts

_MILLI: Final = 10**6  # in nano-units
_ONE: Final = 10**9
_NOT_REPRESENTABLE: Final = (
    "capacity request cannot be represented in the device's range arithmetic"
)


class CapacityError(Exception):
    """An amount that no device can be asked for."""


def amounts_taken(
    requested: Mapping[str, Quantity], capacity: Mapping[str, DeviceCapacity], *, fractional: bool
) -> Amounts | None:
    """What a request takes of each capacity of a device; None if it cannot have that.

    `fractional` is the gate of amounts in thousandths. Raises CapacityError, which comes before
    what makes this one device unsuitable.
    """
    if not requested.keys() <= capacity.keys():
        return None
    taken: Amounts = {}
    for name, entry in capacity.items():
        try:
            amount = _amount(entry, requested.get(name), fractional=fractional)
        except CapacityError as error:
            raise CapacityError(f'capacity "{name}": {error}') from error
        if amount.nano < 0:
            raise CapacityError(f'capacity "{name}": capacity value is negative')
        taken[name] = amount
    for name, amount in taken.items():
        policy = capacity[name].request_policy
        if policy is not None and not _is_allowed(amount, policy, fractional=fractional):
            return None
    return taken


def _amount(entry: DeviceCapacity, wanted: Quantity | None, *, fractional: bool) -> Quantity:
    policy = entry.request_policy
    if wanted is None:
        default = None if policy is None else policy.default
        return entry.value if default is None else default
    if policy is None:
        return wanted
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded_in_range(wanted, policy.valid_range, fractional=fractional)
    return next((value for value in policy.valid_values if value >= wanted), wanted)


def _rounded_in_range(
    wanted: Quantity, valid: CapacityRequestPolicyRange, *, fractional: bool
) -> Quantity:
    assert valid.min is not None
    if wanted < valid.min:
        return valid.min
    if valid.step is None:
        return wanted
    is_milli = fractional and _is_exact_in_milli(valid)
    if is_milli and not _fits_milli(wanted):
        raise CapacityError(
            f"{_NOT_REPRESENTABLE}: request {wanted} is not a representable milli value"
        )
    if not is_milli and wanted.nano > INT64_MAX * _ONE:
        raise CapacityError(f"{_NOT_REPRESENTABLE}: request {wanted} exceeds MaxInt64")
    lowest, step, amount = (_units(each, is_milli) for each in (valid.min, valid.step, wanted))
    rounded = lowest + -(-(amount - lowest) // step) * step
    if rounded > INT64_MAX:
        what = "the milli-value range" if is_milli else "MaxInt64"
        raise CapacityError(
            f"{_NOT_REPRESENTABLE}: rounding request {wanted} up to the next step passes {what}"
        )
    return Quantity(rounded * (_MILLI if is_milli else _ONE), valid.step.format)


def _is_allowed(amount: Quantity, policy: CapacityRequestPolicy, *, fractional: bool) -> bool:
    if policy.default is not None and amount == policy.default:
        return True
    valid = policy.valid_range
    if valid is not None:
        return _is_in_range(amount, valid, fractional=fractional)
    return not policy.valid_values or amount in policy.valid_values


def _is_in_range(amount: Quantity, valid: CapacityRequestPolicyRange, *, fractional: bool) -> bool:
    if valid.max is not None and amount > valid.max:
        return False
    if valid.step is None or valid.min is None:
        return True
    is_milli = fractional and _is_exact_in_milli(valid)
    if is_milli and not _fits_milli(amount):
        return False
    lowest, step, given = (_units(each, is_milli) for each in (valid.min, valid.step, amount))
    return (given - lowest) % step == 0


def _is_exact_in_milli(valid: CapacityRequestPolicyRange) -> bool:
    """Whether the whole range is in thousandths, and the step at least one of them."""
    assert valid.step is not None
    given = (each for each in (valid.min, valid.max, valid.step) if each is not None)
    return all(map(_fits_milli, given)) and valid.step.nano >= _MILLI


def _fits_milli(quantity: Quantity) -> bool:
    milli, rest = divmod(quantity.nano, _MILLI)
    return rest == 0 and INT64_MIN <= milli <= INT64_MAX


def _units(quantity: Quantity, is_milli: bool) -> int:
    return quantity.milli_value() if is_milli else quantity.value()
