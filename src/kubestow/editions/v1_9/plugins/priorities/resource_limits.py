"""ResourceLimitsPriority: nodes large enough for the limits, too (spec 05 §18)."""

import numpy as np

from kubestow.api.quantity import ZERO
from kubestow.api.resources import CPU as CPU_NAME
from kubestow.api.resources import MEMORY as MEMORY_NAME
from kubestow.arrays import BoolArray, IntArray
from kubestow.cache.columns import CPU, MEMORY
from kubestow.editions.v1_9.plugins.contract import Attempt, NamedRule
from kubestow.index.nodes import Nodes


class ResourceLimitsPriority(NamedRule):
    """Needed a feature gate in v1.9; here every Policy may name it."""

    def map(self, attempt: Attempt, nodes: Nodes) -> IntArray:
        limits = attempt.limits
        cpu = limits.get(CPU_NAME, ZERO).milli_value()
        memory = limits.get(MEMORY_NAME, ZERO).value()
        fits = _fits(cpu, nodes.allocatable(CPU)) | _fits(memory, nodes.allocatable(MEMORY))
        return fits.astype(np.int64)


def _fits(limit: int, allocatable: IntArray) -> BoolArray:
    return (limit != 0) & (allocatable != 0) & (limit <= allocatable)
