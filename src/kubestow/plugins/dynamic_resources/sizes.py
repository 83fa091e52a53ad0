"""How many devices each request of a claim needs on a node (spec 08 B7.2).

A request for all devices needs those that it selects there. What cannot be served at all is found
here, before any device is tried, claim by claim and request by request: the first problem is the
one that is reported.
"""

from collections.abc import Callable, Sequence
from typing import Final

from kubestow.errors import PluginError
from kubestow.plugins.dynamic_resources.draft import Fitness, PooledDevice
from kubestow.plugins.dynamic_resources.pools import NodePools
from kubestow.plugins.dynamic_resources.requests import ClaimPlan, RequestEntry, RequestPlan

RESULTS_MAX: Final = 32  # devices per claim
_CAPACITY_GATE_OFF: Final = (
    "has capacity requests, but the DRAConsumableCapacity feature is disabled"
)


class Sizes:
    """The numbers of devices of all requests, and the devices where all are requested."""

    def __init__(
        self,
        claims: Sequence[ClaimPlan],
        pools: NodePools,
        fitness: Fitness,
        rest: Callable[[], None],
    ) -> None:
        """Raises PluginError for the first request or constraint that cannot be served. `rest` is
        called between pools."""
        self._pools = pools
        self._fitness = fitness
        self._rest = rest
        self.all_devices: dict[RequestPlan, list[PooledDevice]] = {}
        for claim in claims:
            self._check(claim)

    def count_of(self, plan: RequestPlan) -> int:
        return len(self.all_devices[plan]) if plan.is_all else plan.count

    def _check(self, claim: ClaimPlan) -> None:
        count_min = sum(map(self._count_min, claim.requests))
        if count_min > RESULTS_MAX:
            raise PluginError(
                f"claim {claim.name}: number of requested devices {count_min} "
                f"exceeds the claim limit of {RESULTS_MAX}"
            )
        self._fitness.new_constraints(claim)

    def _count_min(self, entry: RequestEntry) -> int:
        features = self._fitness.features
        if not features.consumable_capacity and not features.is_basic:
            _refuse_capacities(entry)
        counts: list[int] = []
        for plan in entry.plans:
            self._fitness.check(plan)
            if plan.is_all:
                self.all_devices[plan] = self._selected(plan)
            counts.append(self.count_of(plan))
        return min(counts)

    def _selected(self, plan: RequestPlan) -> list[PooledDevice]:
        """Every device the request selects, in use or not."""
        fitness = self._fitness
        found: list[PooledDevice] = []
        for pool in self._pools.pools:
            self._rest()
            if not pool.is_usable:
                state = "being updated" if not pool.is_complete else "invalid"
                raise plan.error(
                    f"asks for all devices, but resource pool {'/'.join(pool.key)} "
                    f"is currently {state}"
                )
            found += [
                (published, pool)
                for published in pool.devices
                if fitness.is_selectable(plan, published)
                and fitness.may_have_capacity(plan, published)
            ]
        return found


def _refuse_capacities(entry: RequestEntry) -> None:
    kind = "subrequest" if entry.is_list else "request"
    for plan in entry.plans:
        if plan.names_capacity:
            raise PluginError(f"claim {plan.claim_name}, {kind} {plan.name}: {_CAPACITY_GATE_OFF}")
