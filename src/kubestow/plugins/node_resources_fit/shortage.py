"""What a pod requests compared with what is free on the nodes (spec 05 §8.3).

Every shortage is a bit of the filter's code; texts are made only for the codes that occur.

    bit   0           1     2        3                   4              5, 6, …
          pod count   cpu   memory   ephemeral storage   unresolvable   scalars in order of name
"""

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import numpy as np

from kubestow.api.resources import CPU, EPHEMERAL_STORAGE, MEMORY, Resources, amount_of, is_extended
from kubestow.arrays import BoolArray, IntArray
from kubestow.framework.status import Status
from kubestow.index.devices.classes import DeviceClassMap
from kubestow.index.nodes import Nodes

TOO_MANY_PODS: Final = 1 << 0
UNRESOLVABLE: Final = 1 << 4
_BASIC_BITS: Final = {CPU: 1, MEMORY: 2, EPHEMERAL_STORAGE: 3}
CPU_SHORT: Final = 1 << _BASIC_BITS[CPU]
MEMORY_SHORT: Final = 1 << _BASIC_BITS[MEMORY]
_BITS: Final = tuple(_BASIC_BITS.values())
_NO_AMOUNTS: Final = [None] * len(_BITS)
_FIRST_SCALAR_BIT: Final = 5
# Codes are positive int64. If a pod has more scalars than bits, the last ones share a bit: the
# verdicts stay right, but a message may name a resource that is not short.
_LAST_BIT: Final = 62


class Demand(NamedTuple):
    """One resource the pod needs. `by_devices`: devices may serve it where a node has none."""

    name: str
    amount: int
    bit: int
    by_devices: bool = False


class FitRequest:
    """What Filter compares: the non-zero parts of a pod's request, in the order of the reasons.

    amounts   requests of the basic resources; None if there is no demand
    scalars   the demands for other resources
    """

    __slots__ = ("_demands", "amounts", "scalars")

    def __init__(self, amounts: Sequence[int | None], scalars: tuple[Demand, ...]) -> None:
        self.amounts = amounts
        self.scalars = scalars
        self._demands: tuple[Demand, ...] | None = None

    @property
    def basic_demands(self) -> list[Demand | None]:
        """The demands for basic resources, in their order."""
        return [
            None if amount is None else Demand(name, amount, bit)
            for (name, bit), amount in zip(_BASIC_BITS.items(), self.amounts, strict=True)
        ]

    @property
    def demands(self) -> tuple[Demand, ...]:
        """All of them; made when first needed, since most pods fit."""
        if self._demands is None:
            basics = (demand for demand in self.basic_demands if demand is not None)
            self._demands = *basics, *self.scalars
        return self._demands

    @classmethod
    def of(
        cls,
        resources: Resources,
        *,
        device_classes: DeviceClassMap | None,
        ignored_resources: Collection[str] = (),
        ignored_groups: Collection[str] = (),
    ) -> "FitRequest":
        """No map of device classes means that devices serve no extended resources."""
        amounts = [
            resources.milli_cpu or None,
            resources.memory or None,
            resources.ephemeral_storage or None,
        ]
        others: list[Demand] = []
        if resources.scalar:
            scalars = (
                (name, amount)
                for name, amount in sorted(resources.scalar.items())
                if amount and not _is_ignored(name, ignored_resources, ignored_groups)
            )
            for bit, (name, amount) in enumerate(scalars, _FIRST_SCALAR_BIT):
                by_devices = (
                    device_classes is not None and device_classes.class_of(name) is not None
                )
                others.append(Demand(name, amount, min(bit, _LAST_BIT), by_devices))
        return cls(amounts, tuple(others))


def shortages(request: FitRequest, nodes: Nodes) -> IntArray | None:
    """int64[node]: what is lacking on each node, as bits; None if nothing is."""
    codes: IntArray | None = None
    is_full = nodes.pod_count >= nodes.allowed_pods
    if np.count_nonzero(is_full):
        codes = is_full * np.int64(TOO_MANY_PODS)
    if request.amounts != _NO_AMOUNTS:
        offered, requested = nodes.basic_allocatable, nodes.basic_requested
        # An overcommitted node has enough for no request (None).
        for place, (bit, amount) in enumerate(zip(_BITS, request.amounts, strict=True)):
            if amount is not None:
                is_short = offered[place] - requested[place] < amount
                codes = _add_lacking(codes, is_short, offered[place], amount, bit)
    lacking = 0
    for demand in request.scalars:
        column = nodes.resource_column(demand.name)
        if column is not None:
            codes = _add_shortage(codes, demand, column, nodes)
        elif not demand.by_devices and demand.amount > 0:
            # No node and no pod has it: it is short on every node, whatever is evicted.
            lacking |= 1 << demand.bit | UNRESOLVABLE
    if lacking:
        codes = np.full(len(nodes), lacking, np.int64) if codes is None else codes | lacking
    return codes


def shortage_status(request: FitRequest, code: int) -> Status:
    """The status of a code."""
    reasons = ["Too many pods"] if code & TOO_MANY_PODS else []
    reasons += [
        f"Insufficient {demand.name}" for demand in request.demands if code >> demand.bit & 1
    ]
    if code & UNRESOLVABLE:
        return Status.unresolvable(*reasons)
    return Status.unschedulable(*reasons)


def fits_empty(request: FitRequest, allocatable: Resources) -> bool:
    """Whether the pod would fit a node that offers this and has no pods."""
    return allocatable.allowed_pods >= 1 and all(
        _is_met(demand, amount_of(demand.name, allocatable)) for demand in request.demands
    )


def _is_met(demand: Demand, offered: int) -> bool:
    return demand.amount <= offered or (demand.by_devices and offered <= 0)


def _is_ignored(name: str, resources: Collection[str], groups: Collection[str]) -> bool:
    return is_extended(name) and (name in resources or name.partition("/")[0] in groups)


def _add_lacking(
    codes: IntArray | None, is_short: BoolArray, allocatable: IntArray, amount: int, bit: int
) -> IntArray | None:
    """Enter where a resource is short, and where the node's allocatable is: there evicting pods
    would not help."""
    if not np.count_nonzero(is_short):
        return codes
    lacking = is_short * np.int64(1 << bit)
    is_beyond = (allocatable < amount) & is_short
    if np.count_nonzero(is_beyond):
        lacking |= is_beyond * np.int64(UNRESOLVABLE)
    return lacking if codes is None else codes | lacking


def _add_shortage(
    codes: IntArray | None, demand: Demand, column: int, nodes: Nodes
) -> IntArray | None:
    few = nodes.few_with(column) if demand.amount > 0 and not demand.by_devices else None
    if few is not None:
        lacking = _shortage_but_on(few, demand, len(nodes))
        return lacking if codes is None else codes | lacking
    allocatable = nodes.allocatable(column)
    is_short: BoolArray = allocatable - nodes.requested(column) < demand.amount
    if demand.by_devices:
        is_short &= allocatable != 0
    return _add_lacking(codes, is_short, allocatable, demand.amount, demand.bit)


def _shortage_but_on(few: list[tuple[int, int, int]], demand: Demand, count: int) -> IntArray:
    """int64[node]: the codes where nodes have nothing of a resource, but for these few."""
    lacking: IntArray = np.full(count, 1 << demand.bit | UNRESOLVABLE, np.int64)
    for position, offered, requested in few:
        if offered - requested >= demand.amount:
            lacking[position] = 0
        elif offered >= demand.amount:
            lacking[position] = 1 << demand.bit
    return lacking
