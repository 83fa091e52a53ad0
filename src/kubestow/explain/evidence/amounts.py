"""Amounts of resources: exact as data, short for people."""

from typing import Final

from kubestow.api.quantity import Format, Quantity, parse_quantity
from kubestow.api.resources import CPU, EPHEMERAL_STORAGE, MEMORY, is_hugepage
from kubestow.api.volume_claims import STORAGE

_OF_BYTES: Final = (MEMORY, EPHEMERAL_STORAGE, STORAGE)
_UNITS: Final = ((2**40, "Ti"), (2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki"))


def is_of_bytes(name: str) -> bool:
    return name in _OF_BYTES or is_hugepage(name)


def quantity_of(name: str, units: int) -> Quantity:
    """An amount of a resource, in the form in which most people write it."""
    if name == CPU:
        return parse_quantity(f"{units}m") if units % 1000 else parse_quantity(units // 1000)
    if is_of_bytes(name):
        return parse_quantity(str(Quantity(units * 10**9, Format.BINARY_SI, 0)))
    return parse_quantity(units)


def amount_text(name: str, units: int) -> str:
    """An exact amount, as data."""
    return str(quantity_of(name, units))


def amount_words(name: str, text: str, *, up: bool = False) -> str:
    """A quantity with few digits: cores, or the largest unit of bytes with two decimals.

    Rounded down, or `up`, so that what is wanted never looks as if it were free.
    """
    quantity = parse_quantity(text)
    if name == CPU:
        return _plain(quantity.milli_value() / 1000)
    if not is_of_bytes(name):
        return text
    value = quantity.value()
    for size, unit in _UNITS:
        if abs(value) >= size:
            hundredths = -(-value * 100 // size) if up else value * 100 // size
            return f"{_plain(hundredths / 100)}{unit}"
    return str(value)


def _plain(number: float) -> str:
    return f"{number:.3f}".rstrip("0").rstrip(".")
