"""Which devices a search need not try (spec 08 B7.3).

Upstream tries every combination, so a hopeless search takes 2ⁿ steps. Where no step can end in an
error, two things never change what is found first:

- A request is not given devices that fail a check which does not depend on the other choices, nor
  tried at all once too few of the others are left.
- If a device failed in a slot, an equivalent one fails too: exchanging the two in a solution with
  the second gives a solution with the first, which would have been found.

Devices are equivalent if all requests and constraints treat them alike, they draw the same from the
same counters, and the attempt has the same of both.
"""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Final

from kubestow.errors import PluginError
from kubestow.index.devices.inventory import PublishedDevice
from kubestow.plugins.dynamic_resources.constraints import lookup_attribute, value_of
from kubestow.plugins.dynamic_resources.draft import Fitness
from kubestow.plugins.dynamic_resources.pools import NodePools, Pool
from kubestow.plugins.dynamic_resources.requests import ClaimPlan, RequestPlan
from kubestow.plugins.dynamic_resources.sizes import Sizes

DEVICES_PER_CHECK: Final = 64  # of the deadline

# Raises if the search has taken too long.
Deadline = Callable[[], None]


class Pruning:
    """The devices worth trying on one node.

    kinds          per position in `NodePools.devices` the kind of device; equivalent ones are equal
    is_hopeless    some request cannot have enough devices, whatever the others get
    """

    def __init__(
        self,
        claims: Sequence[ClaimPlan],
        pools: NodePools,
        sizes: Sizes,
        fitness: Fitness,
        deadline: Deadline,
    ) -> None:
        """Raises PluginError if a selector fails for a device: then the order of steps matters."""
        self._usable: dict[Hashable, list[int]] = {}
        for plan in _exact_plans(claims):
            if plan.profile not in self._usable:
                self._usable[plan.profile] = list(_usable(plan, pools, fitness, deadline))
        self.is_hopeless = any(
            all(self._lacks_devices(plan, sizes) for plan in entry.plans)
            for claim in claims
            for entry in claim.requests
        )
        self.kinds = self._find_kinds(claims, pools, sizes, fitness)

    def positions(self, plan: RequestPlan, start: int, needed: int) -> Sequence[int]:
        """Positions to try from `start` on that leave enough devices for `needed` slots."""
        usable = self._usable[plan.profile]
        return usable[bisect_left(usable, start) : max(0, len(usable) - needed + 1)]

    def _lacks_devices(self, plan: RequestPlan, sizes: Sizes) -> bool:
        if plan.is_all:
            return not sizes.all_devices[plan]
        return len(self._usable[plan.profile]) < plan.count

    def _find_kinds(
        self, claims: Sequence[ClaimPlan], pools: NodePools, sizes: Sizes, fitness: Fitness
    ) -> list[Hashable]:
        compared = {
            fitness.compared_attribute(constraint)
            for claim in claims
            for constraint in claim.constraints
        }
        if None in compared:
            return list(range(len(pools.devices)))
        matched = sorted(name for name in compared if name is not None)
        requested_by: list[list[int]] = [[] for _ in pools.devices]
        for index, positions in enumerate(self._usable.values()):
            for position in positions:
                requested_by[position].append(index)
        required_by: dict[PublishedDevice, list[int]] = {}
        for index, devices in enumerate(sizes.all_devices.values()):
            for published, _ in devices:
                required_by.setdefault(published, []).append(index)
        return [
            (
                tuple(requested_by[position]),
                tuple(required_by.get(published, ())),
                _kind(published, pool, matched, fitness),
            )
            for position, (published, pool) in enumerate(pools.devices)
        ]


def can_prune(claims: Sequence[ClaimPlan]) -> bool:
    """Whether no order of steps ends in an error, apart from selectors that fail.

    A request for all devices does if one of them violates a constraint of its claim.
    """
    return not any(
        claim.constraints and any(plan.is_all for entry in claim.requests for plan in entry.plans)
        for claim in claims
    )


def find_pruning(
    claims: Sequence[ClaimPlan],
    pools: NodePools,
    sizes: Sizes,
    fitness: Fitness,
    deadline: Deadline,
) -> Pruning | None:
    """None if every step has to be made, because one of them may end in an error."""
    if not can_prune(claims):
        return None
    try:
        return Pruning(claims, pools, sizes, fitness, deadline)
    except PluginError:
        return None  # The search reports it, if it comes to that device.


def _exact_plans(claims: Sequence[ClaimPlan]) -> Iterator[RequestPlan]:
    for claim in claims:
        for entry in claim.requests:
            yield from (plan for plan in entry.plans if not plan.is_all)


def _usable(
    plan: RequestPlan, pools: NodePools, fitness: Fitness, deadline: Deadline
) -> Iterator[int]:
    """Positions of devices that the request could have if no other took them."""
    for position, (published, _) in enumerate(pools.devices):
        if position % DEVICES_PER_CHECK == 0:
            deadline()
        if _is_usable(plan, published, fitness):
            yield position


def _is_usable(plan: RequestPlan, published: PublishedDevice, fitness: Fitness) -> bool:
    return (
        fitness.is_free(plan, published)
        and fitness.is_selectable(plan, published)
        and fitness.has_capacity(plan, published, {})
        and fitness.is_supported(published)
        and fitness.tolerates(plan, published)
    )


def _kind(
    published: PublishedDevice, pool: Pool, matched: Sequence[str], fitness: Fitness
) -> Hashable:
    """What devices must have in common, besides the requests that could use them."""
    device = published.device
    values: list[Hashable] = []
    for name in matched:
        attribute = lookup_attribute(published, name)
        value = None if attribute is None else value_of(attribute)
        if attribute is not None and value is None:
            return published  # A list: it can only be the first device, so the order matters.
        values.append(value)
    draws: Hashable = None
    if device.consumes_counters:
        draws = (
            pool,
            frozenset(
                (entry.counter_set, frozenset(entry.counters.items()), entry.compatibility_groups)
                for entry in device.consumes_counters
            ),
        )
    share: Hashable = None
    if fitness.is_shareable(published):
        share = (
            frozenset(device.capacity.items()),
            frozenset(fitness.allocated.consumed(published.id).items()),
            fitness.is_charged(published),
        )
    return tuple(values), draws, share
