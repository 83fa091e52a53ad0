"""Numbers of reports as texts for people; files for programs have the plain numbers."""

from typing import Final

_BYTE_RESOURCES: Final = ("memory", "ephemeral-storage")
_BYTE_UNITS: Final = (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))
_TIME_UNITS: Final = (("d", 86400), ("h", 3600), ("min", 60))


def amount_text(amount: int, resource: str) -> str:
    """An amount of a resource, in cores, multiples of bytes, or as a count."""
    if resource == "cpu":
        return f"{amount / 1000:,.10g}"
    if resource in _BYTE_RESOURCES or resource.startswith("hugepages-"):
        for unit, size in _BYTE_UNITS:
            if abs(amount) >= size:
                return f"{amount / size:,.4g} {unit}"
    return f"{amount:,}"


def seconds_text(seconds: float) -> str:
    """A time in the largest unit of which it has at least two."""
    for unit, size in _TIME_UNITS:
        if abs(seconds) >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.3g} s" if abs(seconds) < 10 else f"{seconds:,.1f} s"


def share_text(share: float) -> str:
    return f"{100 * share:.1f} %"
