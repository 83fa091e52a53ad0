"""PodFitsResources: enough of everything must be free (spec 05 §17.1)."""

from collections.abc import Iterable
from typing import ClassVar, Final

import numpy as np

from kubestow.api.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resources
from kubestow.arrays import IntArray
from kubestow.editions.v1_9.plugins.contract import Attempt, NamedRule, Reads, Verdicts
from kubestow.editions.v1_9.plugins.pod import NVIDIA_GPU
from kubestow.editions.v1_9.plugins.reasons import code_of, failing_where, joined
from kubestow.index.nodes import Nodes

_FIXED: Final = (CPU, MEMORY, NVIDIA_GPU, EPHEMERAL_STORAGE)


class PodFitsResources(NamedRule):
    reads: ClassVar[Reads] = Reads.PODS

    def check(self, attempt: Attempt, nodes: Nodes) -> Verdicts:
        codes = failing_where(nodes.pod_count + 1 > nodes.allowed_pods, _insufficient(PODS))
        for name, amount in _wanted(attempt.request):
            codes = joined(codes, _short_of(nodes, name, amount))
        return Verdicts(codes)


def _wanted(request: Resources) -> Iterable[tuple[str, int]]:
    """The requested amounts, in the order of the reasons; none for an empty request."""
    scalar = request.scalar
    amounts = (
        request.milli_cpu,
        request.memory,
        scalar.get(NVIDIA_GPU, 0),
        request.ephemeral_storage,
    )
    # The GPU was a separate field, and counted as absent when zero.
    others = sorted(name for name in scalar if name != NVIDIA_GPU)
    if not any(amounts) and not others:
        return ()
    # Spec 05 §17.1: if any resource is requested, all four are compared.
    return (*zip(_FIXED, amounts, strict=True), *((name, scalar[name]) for name in others))


def _short_of(nodes: Nodes, name: str, amount: int) -> IntArray | None:
    column = nodes.resource_column(name)
    if column is None:
        # Neither offered nor used anywhere.
        return failing_where(np.full(len(nodes), amount > 0), _insufficient(name))
    is_short = nodes.allocatable(column) < amount + nodes.requested(column)
    return failing_where(is_short, _insufficient(name))


def _insufficient(name: str) -> int:
    return code_of(f"Insufficient {name}")
