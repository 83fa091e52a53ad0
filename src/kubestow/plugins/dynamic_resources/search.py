"""Chooses devices for all claims of a pod on one node: a depth-first search (spec 08 B7.3, B7.4).

    claim ─ request ─ (alternative) ─ slot ─ device
       the first complete choice wins; what fails is undone and the next device tried

Upstream does not stop impossible searches: for a request with more devices than exist it tries all
subsets. Here a request fails as soon as too few devices are left for it. The result is the same,
unless a selector would fail on a device first. So all selectors are evaluated beforehand; if one
fails, the search is that of upstream.

Not here: what makes a device fit (`consumable`, `counters`, `constraints`, `tolerations`).
"""

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Final, NamedTuple

from kubestow.errors import PluginError
from kubestow.index.devices.allocated import AllocatedDevices, Consumed
from kubestow.index.devices.inventory import DeviceId, PublishedDevice
from kubestow.index.devices.node_match import NodeSelectionError
from kubestow.plugins.dynamic_resources.constraints import ConstraintCheck, make_constraints
from kubestow.plugins.dynamic_resources.consumable import amounts_taken, is_enough
from kubestow.plugins.dynamic_resources.counters import PoolCounters
from kubestow.plugins.dynamic_resources.pools import NodePools, Pool
from kubestow.plugins.dynamic_resources.requests import ClaimPlan, RequestEntry, RequestPlan
from kubestow.plugins.dynamic_resources.tolerations import tolerates_all

RESULTS_MAX: Final = 32  # devices per claim
STEPS_PER_CHECK: Final = 64  # of the deadline

# Raises if the search has taken too long.
Deadline = Callable[[], None]
PooledDevice = tuple[PublishedDevice, Pool]
# Whether the device can be used on the node; called with per-device node selection only.
Reaches = Callable[[PublishedDevice], bool]


class Features(NamedTuple):
    """Feature gates of the search."""

    consumable_capacity: bool = True
    partitionable: bool = True
    taints: bool = True


class Pick(NamedTuple):
    """A device for a request. `taken` is set where the device is shared."""

    plan: RequestPlan
    published: PublishedDevice
    taken: Consumed | None


class _Outcome(Enum):
    FOUND = auto()
    FAILED = auto()
    # The claim would get too many devices, so other devices would not help (B7.3, size limit).
    TOO_MANY = auto()


class Search:
    """One attempt on one node; used once."""

    def __init__(
        self,
        claims: Sequence[ClaimPlan],
        pools: NodePools,
        allocated: AllocatedDevices,
        reaches: Reaches,
        features: Features,
        deadline: Deadline,
    ) -> None:
        self._claims = claims
        self._pools = pools
        self._allocated = allocated
        self._reaches = reaches
        self._features = features
        self._deadline = deadline
        self._steps = 0
        self._picks: list[list[Pick]] = [[] for _ in claims]
        self._taken: dict[DeviceId, set[int]] = {}
        self._consumed: dict[DeviceId, Consumed] = {}
        self._counters = PoolCounters(allocated)
        self._constraints: list[list[ConstraintCheck]] = []
        self._all: dict[RequestPlan, list[PooledDevice]] = {}
        # Per request the positions of usable devices; None if they are not known for all requests.
        self._usable: dict[RequestPlan, list[int]] | None = None

    def run(self) -> Sequence[Sequence[Pick]] | None:
        """The devices of each claim in the order chosen, None if there is no choice.

        Raises PluginError for what ends the attempt of the pod.
        """
        for plan in self._claims:
            self._prepare(plan)
        self._deadline()
        self._find_usable()
        outcome = self._claim(0)
        return self._picks if outcome is _Outcome.FOUND else None

    # --- preparation (B7.2) ---

    def _prepare(self, plan: ClaimPlan) -> None:
        count_min = 0
        for entry in plan.requests:
            count_min += min(map(self._count_of, entry.plans), default=0)
        if count_min > RESULTS_MAX:
            raise PluginError(
                f"claim {plan.name}: number of requested devices {count_min} "
                f"exceeds the claim limit of {RESULTS_MAX}"
            )
        self._constraints.append(make_constraints(plan))

    def _count_of(self, plan: RequestPlan) -> int:
        if not plan.is_all:
            return plan.count
        devices = self._all[plan] = self._all_devices(plan)
        return len(devices)

    def _all_devices(self, plan: RequestPlan) -> list[PooledDevice]:
        """Every device the request selects, in use or not."""
        found: list[PooledDevice] = []
        for pool in self._pools.pools:
            if not pool.is_usable:
                state = "being updated" if not pool.is_complete else "invalid"
                raise plan.error(
                    f"asks for all devices, but resource pool {'/'.join(pool.key)} "
                    f"is currently {state}"
                )
            found += [
                (published, pool)
                for published in pool.devices
                if self._is_selectable(plan, published) and self._has_capacity(plan, published)
            ]
        return found

    # --- usable devices ---

    def _find_usable(self) -> None:
        """Find the usable devices of every request; none are set if some selector fails."""
        if self._needs_one_device():
            return  # One pass over the devices finds it, without backtracking.
        usable: dict[RequestPlan, list[int]] = {}
        try:
            for claim in self._claims:
                for entry in claim.requests:
                    for plan in entry.plans:
                        if not plan.is_all:
                            usable[plan] = self._usable_positions(plan)
        except PluginError:
            return
        self._usable = usable

    def _needs_one_device(self) -> bool:
        entries = [entry for claim in self._claims for entry in claim.requests]
        return len(entries) == 1 and not any(
            plan.is_all or plan.count > 1 for plan in entries[0].plans
        )

    def _usable_positions(self, plan: RequestPlan) -> list[int]:
        return [
            position
            for position, (published, _) in enumerate(self._pools.devices)
            if (plan.admin_access or not self._allocated.is_dedicated(published.id))
            and self._is_selectable(plan, published)
            and self._has_capacity(plan, published)
            and self._tolerates(plan, published)
        ]

    def _is_impossible(self, claim_index: int) -> bool:
        """Whether some request of this or a later claim cannot have enough devices."""
        usable = self._usable
        if usable is None or (self._all and any(self._constraints)):
            return False  # A request for all devices may violate a constraint, which is an error.
        return any(
            all(self._lacks_devices(plan, usable) for plan in entry.plans)
            for claim in self._claims[claim_index:]
            for entry in claim.requests
        )

    def _lacks_devices(self, plan: RequestPlan, usable: dict[RequestPlan, list[int]]) -> bool:
        return not plan.is_all and len(usable[plan]) < plan.count

    # --- the search (B7.3) ---

    def _claim(self, index: int) -> _Outcome:
        if index == len(self._claims):
            return _Outcome.FOUND
        if self._is_impossible(index):
            return _Outcome.FAILED
        outcome = self._request(index, 0)
        # Too many devices for this claim do not end the search of the earlier claims.
        return _Outcome.FAILED if outcome is _Outcome.TOO_MANY else outcome

    def _request(self, claim_index: int, request_index: int) -> _Outcome:
        self._check_deadline()
        requests = self._claims[claim_index].requests
        if request_index == len(requests):
            return self._claim(claim_index + 1)
        entry: RequestEntry = requests[request_index]
        if not entry.is_list:
            return self._plan(claim_index, request_index, entry.plans[0])
        for plan in entry.plans:
            if self._plan(claim_index, request_index, plan) is _Outcome.FOUND:
                return _Outcome.FOUND
        return _Outcome.FAILED

    def _plan(self, claim_index: int, request_index: int, plan: RequestPlan) -> _Outcome:
        slots = _Slots(claim_index, request_index, plan)
        if not plan.is_all:
            return self._slot(slots, 0, 0)
        devices = self._all[plan]
        return self._every(slots, devices, 0) if devices else _Outcome.FAILED

    def _slot(self, slots: "_Slots", slot: int, start: int) -> _Outcome:
        """Fill one slot of a request, and everything after it, with devices from `start` on."""
        self._check_deadline()
        claim_index, request_index, plan = slots
        if slot == plan.count:
            return self._request(claim_index, request_index + 1)
        if len(self._picks[claim_index]) + plan.count - slot > RESULTS_MAX:
            return _Outcome.TOO_MANY
        for position in self._positions(plan, start, plan.count - slot):
            published, pool = self._pools.devices[position]
            undo = self._try(slots, published, pool)
            if undo is None:
                continue
            outcome = self._slot(slots, slot + 1, position + 1)
            if outcome is _Outcome.FOUND:
                return outcome
            undo()
            if outcome is _Outcome.TOO_MANY:
                return outcome
        return _Outcome.FAILED

    def _every(self, slots: "_Slots", devices: Sequence[PooledDevice], slot: int) -> _Outcome:
        """Take every device of the list; one that cannot be taken fails the request."""
        self._check_deadline()
        claim_index, request_index, _ = slots
        if slot == len(devices):
            return self._request(claim_index, request_index + 1)
        if len(self._picks[claim_index]) + len(devices) - slot > RESULTS_MAX:
            return _Outcome.TOO_MANY
        undo = self._try(slots, *devices[slot], must_satisfy=True)
        if undo is None:
            return _Outcome.FAILED
        outcome = self._every(slots, devices, slot + 1)
        if outcome is not _Outcome.FOUND:
            undo()
        return outcome

    def _positions(self, plan: RequestPlan, start: int, needed: int) -> Sequence[int]:
        """The positions to try; none if too few devices are left to fill all slots."""
        if self._usable is None:
            return range(start, len(self._pools.devices))
        usable = self._usable[plan]
        positions = [position for position in usable if position >= start] if start else usable
        return positions if len(positions) >= needed else ()

    def _check_deadline(self) -> None:
        self._steps += 1
        if self._steps % STEPS_PER_CHECK == 0:
            self._deadline()

    # --- one device (B7.4) ---

    def _try(
        self, slots: "_Slots", published: PublishedDevice, pool: Pool, *, must_satisfy: bool = False
    ) -> Callable[[], None] | None:
        """Assign the device to the request; returns a function that undoes it, None on failure."""
        claim_index, _, plan = slots
        if self._is_taken(claim_index, plan, published):
            return None
        if not must_satisfy and not self._is_selectable(plan, published):
            return None
        taken = self._take_capacity(plan, published)
        if taken is None:
            return None
        charges = self._needs_counters(published)
        if charges and not self._counters.charge(pool, published):
            return None
        added: list[ConstraintCheck] = []

        def undo() -> None:
            for constraint in reversed(added):
                constraint.remove(plan, published)
            if charges:
                self._counters.refund(pool, published)

        if not self._tolerates(plan, published):
            undo()
            return None
        for constraint in self._constraints[claim_index]:
            if constraint.add(plan, published):
                added.append(constraint)
                continue
            undo()
            if must_satisfy:
                raise plan.error(
                    f"cannot add device {published} because a claim constraint "
                    "would not be satisfied"
                )
            return None
        forget = self._record(claim_index, plan, published, taken)

        def undo_all() -> None:
            forget()
            undo()

        return undo_all

    def _is_taken(self, claim_index: int, plan: RequestPlan, published: PublishedDevice) -> bool:
        takers = self._taken.get(published.id)
        if plan.admin_access:
            return takers is not None and claim_index in takers
        return takers is not None or self._allocated.is_dedicated(published.id)

    def _is_selectable(self, plan: RequestPlan, published: PublishedDevice) -> bool:
        if not plan.selects(published):
            return False
        try:
            return not published.of.per_device or self._reaches(published)
        except NodeSelectionError as error:
            raise PluginError(str(error)) from error

    def _has_capacity(self, plan: RequestPlan, published: PublishedDevice) -> bool:
        return self._take_capacity(plan, published) is not None

    def _take_capacity(self, plan: RequestPlan, published: PublishedDevice) -> Consumed | None:
        """What the request takes of the device's capacities; None if that is not free."""
        if not self._features.consumable_capacity:
            return {}
        taken = amounts_taken(plan, published)
        if taken is None:
            return None
        allocated = self._allocated.consumed(published.id)
        attempted = self._consumed.get(published.id, _NOTHING)
        return taken if is_enough(published, taken, allocated, attempted) else None

    def _needs_counters(self, published: PublishedDevice) -> bool:
        if not self._features.partitionable or not published.device.consumes_counters:
            return False
        # The counters of a device that is shared already are charged.
        consumed = self._consumed.get(published.id, _NOTHING)
        is_shared = any(self._allocated.consumed(published.id).values()) or any(consumed.values())
        return not (self._is_shareable(published) and is_shared)

    def _tolerates(self, plan: RequestPlan, published: PublishedDevice) -> bool:
        if not self._features.taints or not published.device.taints:
            return True
        return tolerates_all(published.device.taints, plan.tolerations)

    def _is_shareable(self, published: PublishedDevice) -> bool:
        return self._features.consumable_capacity and bool(
            published.device.allow_multiple_allocations
        )

    def _record(
        self, claim_index: int, plan: RequestPlan, published: PublishedDevice, taken: Consumed
    ) -> Callable[[], None]:
        picks = self._picks[claim_index]
        if self._is_shareable(published):
            picks.append(Pick(plan, published, taken))
            consumed = self._consumed.setdefault(published.id, {})
            _add(consumed, taken, 1)

            def forget_share() -> None:
                picks.pop()
                _add(consumed, taken, -1)

            return forget_share
        picks.append(Pick(plan, published, None))
        takers = self._taken.setdefault(published.id, set())
        takers.add(claim_index)

        def forget() -> None:
            picks.pop()
            takers.discard(claim_index)
            if not takers:
                self._taken.pop(published.id, None)

        return forget


class _Slots(NamedTuple):
    """The request whose slots are being filled."""

    claim_index: int
    request_index: int
    plan: RequestPlan


_NOTHING: Final[Consumed] = {}


def _add(totals: Consumed, amounts: Consumed, sign: int) -> None:
    for name, amount in amounts.items():
        totals[name] = totals.get(name, 0) + sign * amount
