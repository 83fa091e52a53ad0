"""Kubernetes quantities."""

import math
import operator
from typing import Final

from kubestow.api.quantity import INT64_MAX, INT64_MIN, Quantity, parse_quantity
from kubestow.cel.errors import CelError
from kubestow.cel.functions import Overload, function, method
from kubestow.cel.static_types import BOOL, DOUBLE, INT, QUANTITY, STRING
from kubestow.cel.values import name_type

_NANO: Final = 10**9

name_type(Quantity, QUANTITY.name)


def _quantity(text: str) -> Quantity:
    try:
        return parse_quantity(text)
    except ValueError as error:
        raise CelError(str(error)) from error


def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except ValueError:
        return False
    return True


def _is_integer(quantity: Quantity) -> bool:
    whole, rest = divmod(quantity.nano, _NANO)
    return not rest and INT64_MIN <= whole <= INT64_MAX


def _as_integer(quantity: Quantity) -> int:
    if not _is_integer(quantity):
        raise CelError("cannot convert value to integer")
    return quantity.nano // _NANO


def _as_float(quantity: Quantity) -> float:
    """The mantissa times a power of ten, both rounded, as upstream does: 0.3 gives 3 * 0.1. Numbers
    beyond all floats are infinite."""
    scale = quantity.small_scale
    if scale is not None:
        base = float(quantity.nano // 10 ** (9 + scale))
        return base * _power_of_ten(scale) if scale else base
    try:
        return quantity.nano / _NANO
    except OverflowError:
        return math.copysign(math.inf, _sign(quantity))


def _power_of_ten(exponent: int) -> float:
    return float(f"1e{exponent}")  # infinite if it is too large


def _minus(quantity: Quantity) -> Quantity:
    return Quantity(-quantity.nano, quantity.format, quantity.small_scale)


def _sub(first: Quantity, second: Quantity) -> Quantity:
    return first + _minus(second)


def _add_whole(quantity: Quantity, number: int) -> Quantity:
    return quantity + parse_quantity(number)


def _sub_whole(quantity: Quantity, number: int) -> Quantity:
    return _sub(quantity, parse_quantity(number))


def _compare(first: Quantity, second: Quantity) -> int:
    return (first.nano > second.nano) - (first.nano < second.nano)


def _sign(quantity: Quantity) -> int:
    return (quantity.nano > 0) - (quantity.nano < 0)


QUANTITIES: Final[tuple[Overload, ...]] = (
    function("quantity", (STRING,), QUANTITY, _quantity),
    function("isQuantity", (STRING,), BOOL, _is_quantity),
    # Spec 08 B8: a function only, not a method.
    function("sign", (QUANTITY,), INT, _sign),
    method("isInteger", (QUANTITY,), BOOL, _is_integer),
    method("asInteger", (QUANTITY,), INT, _as_integer),
    method("asApproximateFloat", (QUANTITY,), DOUBLE, _as_float),
    method("add", (QUANTITY, QUANTITY), QUANTITY, operator.add),
    method("add", (QUANTITY, INT), QUANTITY, _add_whole),
    method("sub", (QUANTITY, QUANTITY), QUANTITY, _sub),
    method("sub", (QUANTITY, INT), QUANTITY, _sub_whole),
    method("isGreaterThan", (QUANTITY, QUANTITY), BOOL, operator.gt),
    method("isLessThan", (QUANTITY, QUANTITY), BOOL, operator.lt),
    method("compareTo", (QUANTITY, QUANTITY), INT, _compare),
)
