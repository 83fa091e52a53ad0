"""The devices chosen so far on one node, and what they use up (spec 08 B7.4).

The search takes devices and puts them back as it goes. A device is checked in a fixed order, since
some checks end the attempt with an error while others only reject the device.

Invariant: `put_back` of the latest `take` restores the draft exactly.
Not here: which device is tried next (`search`), the rules of single checks (`consumable`,
`constraints`).
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Final, NamedTuple

from kubestow.api.device import DeviceConstraint
from kubestow.api.node import Node
from kubestow.api.taints import first_untolerated
from kubestow.errors import PluginError
from kubestow.index.devices.allocated import AllocatedDevices, Consumed
from kubestow.index.devices.inventory import PublishedDevice
from kubestow.index.devices.node_match import NodeSelectionError
from kubestow.index.devices.selectors import Waiter
from kubestow.plugins.dynamic_resources.constraints import (
    ConstraintCheck,
    DistinctAttribute,
    MatchAttribute,
    make_constraints,
)
from kubestow.plugins.dynamic_resources.consumable import Amounts, amounts_taken, is_enough
from kubestow.plugins.dynamic_resources.features import Features
from kubestow.plugins.dynamic_resources.pools import Counters, Pool
from kubestow.plugins.dynamic_resources.requests import ClaimPlan, FailedSelector, RequestPlan

PooledDevice = tuple[PublishedDevice, Pool]


class Pick(NamedTuple):
    """A device for a request. `taken` is set where the device is shared."""

    plan: RequestPlan
    published: PublishedDevice
    taken: Amounts | None


class Fitness:
    """What of the checks depends on request and device alone; computed once per search.

    An edition with other checks derives from this.
    """

    def __init__(
        self,
        allocated: AllocatedDevices,
        node: Node,
        features: Features,
        check_time: Callable[[], None],
        waiter: Waiter | None = None,
    ) -> None:
        self.allocated = allocated
        self.features = features
        self._check_time = check_time
        self._waiter = waiter
        self.node = node
        self._by_plan: dict[RequestPlan, _Known] = {}
        self._by_profile: dict[Hashable, _Known] = {}

    def is_selectable(self, plan: RequestPlan, published: PublishedDevice) -> bool:
        """Whether the request selects the device; raises PluginError if a selector fails."""
        known = self._known(plan).selectable
        answer = known.get(published)
        if answer is None:
            answer = known[published] = self._selects(plan, published)
        return answer

    def check(self, plan: RequestPlan) -> None:
        """Raises PluginError if the request cannot be served at all."""
        if plan.problem is not None:
            raise plan.problem

    def amounts(self, plan: RequestPlan, published: PublishedDevice) -> Amounts | None:
        """What the request takes of the device's capacities; None if it cannot have that."""
        if not self.features.consumable_capacity:
            return _NO_AMOUNTS
        known = self._known(plan).amounts
        if published not in known:
            known[published] = self._amounts(plan, published)
        return known[published]

    def has_capacity(
        self, plan: RequestPlan, published: PublishedDevice, attempted: Consumed
    ) -> bool:
        consumed = self.allocated.consumed(published.id)
        if not plan.capacity and published.is_taken_as_whole and not consumed and not attempted:
            return True
        amounts = self.amounts(plan, published)
        return amounts is not None and is_enough(published, amounts, consumed, attempted)

    def may_have_capacity(self, plan: RequestPlan, published: PublishedDevice) -> bool:
        """Whether a request for all devices is for this one as well, with regard to capacity."""
        return self.has_capacity(plan, published, _NOTHING)

    def is_free(self, plan: RequestPlan, published: PublishedDevice) -> bool:
        """Whether no other pod has the device for itself, or that does not matter."""
        return plan.admin_access or published.id not in self.allocated.dedicated

    def tolerates(self, plan: RequestPlan, published: PublishedDevice) -> bool:
        taints = published.taints
        if not taints or not self.features.taints:
            return True
        # Taints of other effects do not count.
        return first_untolerated(taints, plan.tolerations) is None

    def is_supported(self, published: PublishedDevice) -> bool:
        """Without the gate a device that draws from counters cannot be allocated at all."""
        return self.features.partitionable or not published.device.consumes_counters

    def is_shareable(self, published: PublishedDevice) -> bool:
        return self.features.consumable_capacity and bool(
            published.device.allow_multiple_allocations
        )

    def is_charged(self, published: PublishedDevice) -> bool:
        """Whether other pods have shares for which counters are charged already (B7.5)."""
        return self.allocated.lists_capacities(published.id)

    def new_constraints(self, claim: ClaimPlan) -> list[ConstraintCheck]:
        """The constraints of a claim, without devices; raises PluginError for an unknown one."""
        if not claim.constraints:
            return []
        distinct = None if self.features.is_basic else DistinctAttribute
        return make_constraints(claim, MatchAttribute, distinct)

    def new_counters(self) -> "PoolCounters":
        """What is left in the counters of pools."""
        return PoolCounters(self.allocated)

    def compared_attribute(self, constraint: DeviceConstraint) -> str | None:
        """The attribute whose equality makes devices equivalent for the constraint; None if there
        is no such attribute. B7.7: what is distinct depends on the order of devices."""
        return constraint.match_attribute

    def _amounts(self, plan: RequestPlan, published: PublishedDevice) -> Amounts | None:
        return amounts_taken(plan, published)

    def _selector_error(self, failed: FailedSelector, published: PublishedDevice) -> str:
        return str(failed)

    def _known(self, plan: RequestPlan) -> "_Known":
        known = self._by_plan.get(plan)
        if known is None:
            known = self._by_profile.setdefault(plan.profile, _Known())
            self._by_plan[plan] = known
        return known

    def _selects(self, plan: RequestPlan, published: PublishedDevice) -> bool:
        if published.device.binding_conditions and not self.features.binding_conditions:
            return False
        try:
            return plan.selects(published, self._check_time, self._waiter) and (
                not published.of.per_device or published.reach.includes(self.node)
            )
        except FailedSelector as failed:
            raise PluginError(self._selector_error(failed, published)) from failed
        except NodeSelectionError as error:
            raise PluginError(str(error)) from error


class _Known:
    """Answers for requests of one profile."""

    __slots__ = ("amounts", "selectable")

    def __init__(self) -> None:
        self.selectable: dict[PublishedDevice, bool] = {}
        self.amounts: dict[PublishedDevice, Amounts | None] = {}


class Draft:
    """One attempt on one node.

    picks   per claim, in the order chosen
    """

    def __init__(self, fitness: Fitness, constraints: Sequence[Sequence[ConstraintCheck]]) -> None:
        self.picks: list[list[Pick]] = [[] for _ in constraints]
        self._fitness = fitness
        self._constraints = constraints
        self._dedicated = fitness.allocated.dedicated
        # Device → indices of the claims that have it for themselves.
        self._takers: dict[PublishedDevice, set[int]] = {}
        self._shares: dict[PublishedDevice, _Shares] = {}
        self._counters = fitness.new_counters()

    def take(
        self, claim_index: int, plan: RequestPlan, device: PooledDevice, *, is_required: bool
    ) -> "Taken | None":
        """Assign the device to the request; None if it cannot be.

        `is_required`: the request is for all devices. Raises PluginError if a selector fails, or if
        a required device would violate a constraint.
        """
        published, pool = device
        takers = self._takers.get(published)
        if plan.admin_access:
            if takers is not None and claim_index in takers:
                return None
        elif takers is not None or published.id in self._dedicated:
            return None
        fitness = self._fitness
        if not is_required and not (
            fitness.is_selectable(plan, published) and self._has_capacity(plan, published)
        ):
            return None
        if not fitness.is_supported(published):
            return None
        draws = self._draws(published)
        if draws and not self._counters.charge(pool, published):
            return None
        is_accepted = False
        try:
            is_accepted = fitness.tolerates(plan, published) and self._satisfies(
                claim_index, plan, published, is_required=is_required
            )
        finally:
            if draws and not is_accepted:
                self._counters.refund(pool, published)
        if not is_accepted:
            return None
        taken = Taken(claim_index, plan, published, pool, draws)
        # Spec 08 B7.4: required devices come to this only now, so that of a device that is over
        # capacity and violates a constraint the constraint is reported.
        if is_required and not self._has_capacity(plan, published):
            self._release(taken)
            return None
        self._record(taken)
        return taken

    def put_back(self, taken: "Taken") -> None:
        published = taken.published
        pick = self.picks[taken.claim_index].pop()
        if pick.taken is not None:
            self._shares[published].remove(pick.taken)
            if not self._shares[published].count:
                del self._shares[published]
        else:
            takers = self._takers[published]
            takers.discard(taken.claim_index)
            if not takers:
                del self._takers[published]
        self._release(taken)

    def holding(self, published: PublishedDevice) -> Hashable:
        """What this attempt has of the device; equal for devices that are in the same state."""
        takers, shares = self._takers.get(published), self._shares.get(published)
        return (
            None if takers is None else frozenset(takers),
            None if shares is None else frozenset(shares.consumed.items()),
        )

    def _has_capacity(self, plan: RequestPlan, published: PublishedDevice) -> bool:
        shares = self._shares.get(published)
        attempted = _NOTHING if shares is None else shares.consumed
        return self._fitness.has_capacity(plan, published, attempted)

    def _draws(self, published: PublishedDevice) -> bool:
        """Whether the device has to be charged to the counters of its pool."""
        if not published.device.consumes_counters:
            return False
        if not self._fitness.is_shareable(published):
            return True
        # Spec 08 B7.5: not again for another share. Whether the shares add up to nothing does not
        # matter, but of those allocated before only the ones that list capacities count.
        return published not in self._shares and not self._fitness.is_charged(published)

    def _satisfies(
        self, claim_index: int, plan: RequestPlan, published: PublishedDevice, *, is_required: bool
    ) -> bool:
        """Add the device to the constraints of the claim; if one is violated, to none of them."""
        constraints = self._constraints[claim_index]
        for index, constraint in enumerate(constraints):
            is_satisfied = False
            try:
                is_satisfied = constraint.add(plan, published)
            finally:  # Also if it has to wait for an expression: then it is added again.
                if not is_satisfied:
                    for added in reversed(constraints[:index]):
                        added.remove(plan, published)
            if is_satisfied:
                continue
            if is_required:
                raise plan.error(
                    f"cannot add device {published} because a claim constraint "
                    "would not be satisfied"
                )
            return False
        return True

    def _record(self, taken: "Taken") -> None:
        claim_index, plan, published, _, _ = taken
        amounts: Amounts | None = None
        if self._fitness.is_shareable(published):
            amounts = self._fitness.amounts(plan, published)
            assert amounts is not None, published
            self._shares.setdefault(published, _Shares()).add(amounts)
        else:
            self._takers.setdefault(published, set()).add(claim_index)
        self.picks[claim_index].append(Pick(plan, published, amounts))

    def _release(self, taken: "Taken") -> None:
        """Undo counters and constraints."""
        for constraint in reversed(self._constraints[taken.claim_index]):
            constraint.remove(taken.plan, taken.published)
        if taken.draws:
            self._counters.refund(taken.pool, taken.published)


class Taken(NamedTuple):
    """A device that was taken. `draws`: it was charged to counters."""

    claim_index: int
    plan: RequestPlan
    published: PublishedDevice
    pool: Pool
    draws: bool


class _Shares:
    """The shares of one device that this attempt holds, and what they add up to."""

    __slots__ = ("consumed", "count")

    def __init__(self) -> None:
        self.count = 0
        self.consumed: Consumed = {}

    def add(self, amounts: Amounts) -> None:
        self.count += 1
        self._sum(amounts, 1)

    def remove(self, amounts: Amounts) -> None:
        self.count -= 1
        self._sum(amounts, -1)

    def _sum(self, amounts: Amounts, sign: int) -> None:
        for name, amount in amounts.items():
            self.consumed[name] = self.consumed.get(name, 0) + sign * amount.nano


_NOTHING: Final[Consumed] = {}
_NO_AMOUNTS: Final[Amounts] = {}


class PoolCounters:
    """What one attempt draws from the counters that devices of a pool share (spec 08 B7.5), besides
    what is drawn already. Amounts are in nano-units."""

    def __init__(self, allocated: AllocatedDevices) -> None:
        self._allocated = allocated
        # What is left in each pool, after this attempt's own consumption.
        self._left: dict[Pool, Counters] = {}

    def charge(self, pool: Pool, published: PublishedDevice) -> bool:
        """Draw what the device needs; False, and nothing is drawn, if some counter is too low.

        Spec 08 B7.5: all counters of the pool are checked, so one that is negative already blocks
        every device that draws from any.
        """
        left = self._left.get(pool)
        if left is None:
            left = self._left[pool] = self._available(pool)
        _draw(left, published, 1)
        if all(amount >= 0 for counters in left.values() for amount in counters.values()):
            return True
        _draw(left, published, -1)
        return False

    def refund(self, pool: Pool, published: PublishedDevice) -> None:
        _draw(self._left[pool], published, -1)

    def _available(self, pool: Pool) -> Counters:
        left = {name: dict(counters) for name, counters in pool.counters.items()}
        for published in (*pool.devices, *pool.elsewhere):
            if self._allocated.is_in_use(published.id):
                _draw(left, published, 1)
        return left


def _draw(left: Counters, published: PublishedDevice, sign: int) -> None:
    for consumption in published.device.consumes_counters:
        counters = left[consumption.counter_set]
        for name, counter in consumption.counters.items():
            counters[name] -= sign * counter.value.nano
