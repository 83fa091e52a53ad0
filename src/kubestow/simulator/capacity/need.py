"""The fewest, or the cheapest, nodes of given shapes on which no pod of a cluster waits.

Whether a fleet suffices is found by placing all pods on it. A larger fleet is not always better
for a scheduler that spreads pods, so no fleet is left out because a larger one did not suffice:

1. a fleet that suffices is looked for by doubling, then reduced shape by shape
2. all fleets that cost less are tried, the cheapest first, except those that are too small in sum

If there are too many to try all, the result is the best that was found, and says so.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec
import numpy as np

from kubestow.api.files import Document
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.simulator.capacity.amounts import allocatable, requested, total
from kubestow.simulator.capacity.placing import PlacingCluster, PlacingSetup
from kubestow.simulator.capacity.shapes import PricedShape
from kubestow.simulator.defaults import NODES_PER_CLUSTER
from kubestow.simulator.input.pods import PodKey
from kubestow.simulator.virtual_time import run_in_virtual_time

TRIES_MAX: Final = 200  # fleets that are tried, by default
FLEETS_MAX: Final = 200_000  # fleets that are looked at, most of which are too small in sum

_PRICE_DIGITS: Final = 9

Fleet = tuple[int, ...]  # how many nodes of each shape


class ShapeCount(msgspec.Struct, frozen=True, rename="camel"):
    shape: str
    count: int


class UnplacedPod(msgspec.Struct, frozen=True, rename="camel"):
    pod: str  # namespace and name
    message: str


class Need(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The result.

    nodes       how many of each shape; empty if none is needed, or if no fleet suffices
    price       of all of them; None without prices
    pods        pods that had no node before
    is_proven   whether every fleet that costs less was tried or is too small in sum
    tried       how many fleets were tried
    waiting     pods that find no node on any fleet
    """

    nodes: list[ShapeCount]
    price: float | None
    pods: int
    is_proven: bool
    tried: int
    waiting: list[UnplacedPod]

    @property
    def node_count(self) -> int:
        return sum(entry.count for entry in self.nodes)


def need(
    cluster: Sequence[Document],
    shapes: Sequence[PricedShape],
    setup: PlacingSetup | None = None,
    *,
    tries_max: int = TRIES_MAX,
    on_try: Callable[[], None] = lambda: None,
) -> Need:
    """The nodes to add so that every pod has one; raises InputError and PluginError."""
    return _Search(cluster, shapes, setup or PlacingSetup(), tries_max, on_try).run()


class _Search:
    def __init__(
        self,
        cluster: Sequence[Document],
        shapes: Sequence[PricedShape],
        setup: PlacingSetup,
        tries_max: int,
        on_try: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._shapes = shapes
        self._setup = setup
        self._tries_max = tries_max
        self._on_try = on_try
        self._waiting: dict[Fleet, list[UnplacedPod]] = {}  # by fleet that was tried
        self._sizes = np.array([shape.amounts() for shape in shapes])  # int64[shape, 4]
        self._missing, self._pod_count = self._demand()

    def run(self) -> Need:
        nothing = (0,) * len(self._shapes)
        if self._suffices(nothing):
            return self._result(nothing, is_proven=True)
        large = self._large_enough()
        if not self._suffices(large):
            return self._result(nothing, is_proven=False, waiting=self._waiting[large])
        best = self._reduced(large)
        cheaper, is_proven = self._cheaper_than(best)
        for fleet in sorted(cheaper, key=self._cost):
            if fleet not in self._waiting and len(self._waiting) >= self._tries_max:
                is_proven = False
                break
            if self._suffices(fleet):
                best = fleet
                break
        return self._result(best, is_proven=is_proven)

    def _suffices(self, fleet: Fleet) -> bool:
        if fleet not in self._waiting:
            self._waiting[fleet] = run_in_virtual_time(self._place_on(fleet))
            self._on_try()
        return not self._waiting[fleet]

    async def _place_on(self, fleet: Fleet) -> list[UnplacedPod]:
        pairs = zip(self._shapes, fleet, strict=True)
        nodes = [node for shape, count in pairs for node in shape.nodes(count)]
        async with PlacingCluster([*self._cluster, *nodes], self._setup).running() as placing:
            names = map(PodKey.of, placing.waiting())
            return [UnplacedPod("/".join(name), placing.message_of(name)) for name in names]

    # --- bounds ---

    def _demand(self) -> tuple[IntArray, int]:
        """int64[4]: what the waiting pods lack in sum; and how many they are."""

        async def run() -> tuple[IntArray, int]:
            cluster = PlacingCluster(self._cluster, self._setup)
            waiting = cluster.waiting()
            names = {PodKey.of(pod) for pod in waiting}
            async with cluster.running() as placing:
                infos = placing.snapshot().node_infos
                if not placing.counts_resources:
                    return np.zeros(4, np.int64), len(waiting)
                free = np.zeros(4, np.int64)
                for info in infos:
                    before = (pod for pod in info.pods if PodKey.of(pod.pod) not in names)
                    free += np.maximum(allocatable(info) - total(map(requested, before)), 0)
                return np.maximum(total(_requests(waiting)) - free, 0), len(waiting)

        return run_in_virtual_time(run())

    def _is_too_small(self, fleet: Fleet) -> bool:
        return bool((self._missing > np.array(fleet) @ self._sizes).any())

    # --- a fleet that suffices ---

    def _large_enough(self) -> Fleet:
        """A fleet with enough nodes: doubled until they suffice or each pod could have one."""
        count, limit = 1, max(min(self._pod_count, NODES_PER_CLUSTER // len(self._shapes)), 1)
        while count < limit and self._is_too_small((count,) * len(self._shapes)):
            count += 1
        while count < limit and not self._suffices((count,) * len(self._shapes)):
            count = min(count * 2, limit)
        return (count,) * len(self._shapes)

    def _reduced(self, fleet: Fleet) -> Fleet:
        """The fleet with as few nodes of each shape as suffice, the most expensive shape first."""
        order = sorted(range(len(fleet)), key=lambda index: -self._price(index))
        for index in order:
            low, high = 0, fleet[index]
            while low < high:
                middle = (low + high) // 2
                smaller = (*fleet[:index], middle, *fleet[index + 1 :])
                if not self._is_too_small(smaller) and self._suffices(smaller):
                    high, fleet = middle, smaller
                else:
                    low = middle + 1
        return fleet

    # --- all fleets that cost less ---

    def _price(self, index: int) -> float:
        price = self._shapes[index].price
        return 1.0 if price is None else price

    def _cost(self, fleet: Fleet) -> tuple[float, int, Fleet]:
        """The key that orders fleets: price, then number. Prices are rounded."""
        price = math.fsum(self._price(index) * count for index, count in enumerate(fleet))
        return round(price, _PRICE_DIGITS), sum(fleet), fleet

    def _cheaper_than(self, best: Fleet) -> tuple[list[Fleet], bool]:
        """Fleets that cost less and are not too small in sum; whether these are all of them."""
        limit = self._cost(best)
        starts: list[Fleet] = [()]
        for index in range(len(best)):
            is_last, rest = index == len(best) - 1, (0,) * (len(best) - index - 1)
            longer: list[Fleet] = []
            for start in starts:
                for count in itertools.count(self._fewest_of_last(start) if is_last else 0):
                    if self._cost((*start, count, *rest)) >= limit:
                        break
                    longer.append((*start, count))
                if len(longer) > FLEETS_MAX:
                    return (longer, False) if is_last else ([], False)
            starts = longer
        return starts, True

    def _fewest_of_last(self, start: Fleet) -> int:
        """The fewest nodes of the last shape with which the fleet is not too small in sum."""
        size = self._sizes[-1]
        lacking = np.maximum(self._missing - np.array(start, np.int64) @ self._sizes[:-1], 0)
        if (lacking[size == 0] > 0).any():
            return NODES_PER_CLUSTER
        return int((-(-lacking // np.maximum(size, 1))).max())

    def _result(
        self, fleet: Fleet, *, is_proven: bool, waiting: Sequence[UnplacedPod] = ()
    ) -> Need:
        has_prices = self._shapes[0].price is not None
        return Need(
            nodes=[
                ShapeCount(shape.name, count)
                for shape, count in zip(self._shapes, fleet, strict=True)
                if count
            ],
            price=self._cost(fleet)[0] if has_prices else None,
            pods=self._pod_count,
            is_proven=is_proven,
            tried=len(self._waiting),
            waiting=list(waiting),
        )


def _requests(pods: Sequence[Pod]) -> Iterator[IntArray]:
    return (requested(PodInfo(pod)) for pod in pods)
