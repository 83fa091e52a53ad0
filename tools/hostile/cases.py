"""All hostile cases, by name."""

from tools.hostile import devices, evictions, groups, products, volumes
from tools.hostile.objects import CASES, NOTHING, Case

ALL_CASES = (
    *CASES,
    *products.CASES,
    *volumes.CASES,
    *evictions.CASES,
    *devices.CASES,
    *groups.CASES,
)


def find_case(name: str) -> Case:
    return next(case for case in (NOTHING, *ALL_CASES) if case.name == name)
