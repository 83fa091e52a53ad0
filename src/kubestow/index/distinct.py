"""Rules that depend on few distinct values, evaluated once per value instead of once per node."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from kubestow.arrays import IdArray

T = TypeVar("T")
S = TypeVar("S", bound=np.generic)


def per_distinct(
    ids: IdArray, values: Sequence[T], rule: Callable[[T], int], dtype: type[S]
) -> npt.NDArray[S]:
    """`rule(values[id])` for each id, as an array of that type.

    Calls the rule once per value, or, where there are fewer nodes than values, once per node: a
    single changed node must not cost a loop over all host names.
    """
    if len(ids) < len(values):
        numbers: list[int] = ids.tolist()
        return np.array([rule(values[number]) for number in numbers], dtype)
    return np.array([rule(value) for value in values], dtype)[ids]
