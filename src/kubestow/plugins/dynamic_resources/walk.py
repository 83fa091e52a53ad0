"""The order in which devices are tried for the claims of a pod: depth first (spec 08 B7.3).

    claim ─ request ─ (alternative) ─ slot ─ device
       the first complete choice wins; what fails is put back and the next device tried

Open choices are on a stack of their own, not on that of the interpreter: a pod may have more
devices than Python allows nested calls.
"""

from collections.abc import Hashable, Sequence
from enum import Enum, auto
from typing import Final, NamedTuple

from kubestow.plugins.dynamic_resources.draft import Draft, Fitness, Pick, Taken
from kubestow.plugins.dynamic_resources.pools import NodePools
from kubestow.plugins.dynamic_resources.pruning import Deadline, Pruning
from kubestow.plugins.dynamic_resources.requests import ClaimPlan, RequestEntry, RequestPlan
from kubestow.plugins.dynamic_resources.sizes import RESULTS_MAX, Sizes

STEPS_PER_CHECK: Final = 64  # of the deadline


class Choice(NamedTuple):
    """What a claim gets. `plans` has for each request the alternative chosen."""

    plans: tuple[RequestPlan, ...]
    picks: tuple[Pick, ...]


class Ending(Enum):
    FOUND = auto()
    FAILED = auto()
    # The claim would get too many devices, so other devices would not help (B7.3, size limit).
    TOO_MANY = auto()


class Walk:
    """One walk through the possible choices.

    steps   devices tried, and choices opened

    The deadline may raise what interrupts the walk: it can be continued.
    """

    def __init__(
        self,
        claims: Sequence[ClaimPlan],
        pools: NodePools,
        sizes: Sizes,
        fitness: Fitness,
        deadline: Deadline,
        pruning: Pruning | None = None,
    ) -> None:
        self.steps = 0
        self.pools = pools
        self.sizes = sizes
        self.pruning = pruning
        self.draft = Draft(fitness, [fitness.new_constraints(claim) for claim in claims])
        self._claims = claims
        self._deadline = deadline
        self._next_check = STEPS_PER_CHECK
        self._open: list[_OpenChoice] = []
        # Where to go on: None is the begin, `_WITHIN` within the latest choice.
        self._step: Step | _Within | None = None
        self._first_retry: int | None = None

    def run(self, *, retries_max: int | None = None) -> Ending | None:
        """How it ends; None if that is not known this many steps after the first one that failed.
        Then it can be continued."""
        if self.pruning is not None and self.pruning.is_hopeless:
            return Ending.FAILED
        if self._step is None:
            self._step = self.request(0, 0)
        step = self._open[-1].begin() if isinstance(self._step, _Within) else self._step
        while step is not Ending.FOUND:
            self._step = step
            self._check_deadline()
            if isinstance(step, _OpenChoice):
                self.steps += 1
                self._open.append(step)
                step = step.begin()
            elif self._open:
                step = self._open[-1].resume(step)
            else:
                return step
            if retries_max is not None and self._retries > retries_max:
                self._step = step
                return None
        return step

    def choices(self) -> list[Choice]:
        """What was found, for each claim."""
        chosen = {
            (choice.claim_index, choice.request_index): choice.plan
            for choice in self._open
            if isinstance(choice, _Alternatives)
        }
        return [
            Choice(
                tuple(
                    [
                        chosen.get((claim_index, request_index), entry.plans[0])
                        for request_index, entry in enumerate(claim.requests)
                    ]
                ),
                tuple(self.draft.picks[claim_index]),
            )
            for claim_index, claim in enumerate(self._claims)
        ]

    def put_back(self, taken: Taken) -> None:
        """The device did not lead to a choice for all claims."""
        if self._first_retry is None:
            self._first_retry = self.steps
        self.draft.put_back(taken)

    @property
    def _retries(self) -> int:
        return 0 if self._first_retry is None else self.steps - self._first_retry

    def before_device(self) -> None:
        """The latest choice tries another device, and would try it again if it is interrupted, also
        by an expression that takes long."""
        self._step = _WITHIN
        self._check_deadline()

    def _check_deadline(self) -> None:
        if self.steps >= self._next_check:
            self._next_check = self.steps + STEPS_PER_CHECK
            self._deadline()

    # --- steps ---

    def request(self, claim_index: int, request_index: int) -> "Step":
        """Begin with a request; behind the last one of a claim is the next claim."""
        claims = self._claims
        if request_index < len(claims[claim_index].requests):
            entry = claims[claim_index].requests[request_index]
            if entry.is_list:
                return _Alternatives(self, claim_index, request_index, entry)
            return self.plan(claim_index, request_index, entry.plans[0])
        for later in range(claim_index + 1, len(claims)):
            if claims[later].requests:
                return _within_claim(self.request(later, 0))
        return Ending.FOUND

    def plan(self, claim_index: int, request_index: int, plan: RequestPlan) -> "Step":
        """Begin with a request, or with an alternative of one."""
        if plan.is_all and not self.sizes.all_devices[plan]:
            return Ending.FAILED
        return self.slot(_Slots(claim_index, request_index, plan), 0, 0)

    def slot(self, slots: "_Slots", slot: int, start: int) -> "Step":
        """Fill one slot of a request, and everything after it, with devices from `start` on."""
        claim_index, request_index, plan = slots
        missing = self.sizes.count_of(plan) - slot
        if missing <= 0:
            return self.request(claim_index, request_index + 1)
        if len(self.draft.picks[claim_index]) + missing > RESULTS_MAX:
            return Ending.TOO_MANY
        if plan.is_all:
            return _Required(self, slots, slot)
        return _Slot(self, slots, slot, start, missing)

    def close(self, choice: "_OpenChoice", ending: Ending) -> "Step":
        """The choice has no other way to go on."""
        closed = self._open.pop()
        assert closed is choice
        if self._open and self._open[-1].claim_index != choice.claim_index:
            return _within_claim(ending)
        return ending


class _Slots(NamedTuple):
    """The request whose slots are being filled."""

    claim_index: int
    request_index: int
    plan: RequestPlan


class _OpenChoice:
    """A decision with more than one way to go on."""

    __slots__ = ("claim_index", "walk")

    def __init__(self, walk: Walk, claim_index: int) -> None:
        self.walk = walk
        self.claim_index = claim_index

    def begin(self) -> "Step":
        """Decide in the first way."""
        raise NotImplementedError

    def resume(self, ending: Ending) -> "Step":
        """The latest way led to this ending: decide in another way, or close."""
        raise NotImplementedError


# Another decision, or the ending of the latest one.
Step = _OpenChoice | Ending


class _Within:
    """The latest choice goes on with the next device."""


_WITHIN: Final = _Within()


def _within_claim(step: Step) -> Step:
    """Too many devices for one claim do not end the search of the earlier claims."""
    return Ending.FAILED if step is Ending.TOO_MANY else step


class _Alternatives(_OpenChoice):
    """Which alternative of a request is used."""

    __slots__ = ("_are_all_too_large", "_index", "_plans", "request_index")

    def __init__(
        self, walk: Walk, claim_index: int, request_index: int, entry: RequestEntry
    ) -> None:
        super().__init__(walk, claim_index)
        self.request_index = request_index
        self._plans = entry.plans
        self._index = 0
        self._are_all_too_large = True

    @property
    def plan(self) -> RequestPlan:
        return self._plans[self._index]

    def begin(self) -> Step:
        return self.walk.plan(self.claim_index, self.request_index, self.plan)

    def resume(self, ending: Ending) -> Step:
        if ending is not Ending.TOO_MANY:
            self._are_all_too_large = False
        if self._index + 1 < len(self._plans):
            self._index += 1
            return self.begin()
        last = Ending.TOO_MANY if self._are_all_too_large else Ending.FAILED
        return self.walk.close(self, last)


class _Slot(_OpenChoice):
    """Which device fills a slot."""

    __slots__ = ("_failed_kinds", "_next", "_positions", "_slot", "_slots", "_taken")

    def __init__(self, walk: Walk, slots: _Slots, slot: int, start: int, missing: int) -> None:
        super().__init__(walk, slots.claim_index)
        self._slots = slots
        self._slot = slot
        pruning = walk.pruning
        self._positions: Sequence[int] = (
            range(start, len(walk.pools.devices))
            if pruning is None
            else pruning.positions(slots.plan, start, missing)
        )
        self._next = 0
        self._taken: Taken | None = None
        self._failed_kinds: set[Hashable] = set()

    def begin(self) -> Step:
        walk, (claim_index, _, plan) = self.walk, self._slots
        devices, draft = walk.pools.devices, walk.draft
        while self._next < len(self._positions):
            walk.before_device()
            position = self._positions[self._next]
            kind = self._kind(position)
            if kind is None or kind not in self._failed_kinds:
                taken = draft.take(claim_index, plan, devices[position], is_required=False)
                if kind is not None:
                    self._failed_kinds.add(kind)
                self._taken = taken
            else:
                taken = None
            self._next += 1
            walk.steps += 1
            if taken is not None:
                return walk.slot(self._slots, self._slot + 1, position + 1)
        return walk.close(self, Ending.FAILED)

    def resume(self, ending: Ending) -> Step:
        assert self._taken is not None
        self.walk.put_back(self._taken)
        if ending is Ending.TOO_MANY:
            return self.walk.close(self, ending)
        return self.begin()

    def _kind(self, position: int) -> Hashable | None:
        """Equal for devices of which one is enough to try in this slot; None if each is tried."""
        pruning = self.walk.pruning
        if pruning is None:
            return None
        published, _ = self.walk.pools.devices[position]
        return pruning.kinds[position], self.walk.draft.holding(published)


class _Required(_OpenChoice):
    """One device of a request for all: if it cannot be taken, the request fails."""

    __slots__ = ("_slot", "_slots", "_taken")

    def __init__(self, walk: Walk, slots: _Slots, slot: int) -> None:
        super().__init__(walk, slots.claim_index)
        self._slots = slots
        self._slot = slot
        self._taken: Taken | None = None

    def begin(self) -> Step:
        walk, slots = self.walk, self._slots
        device = walk.sizes.all_devices[slots.plan][self._slot]
        walk.steps += 1
        self._taken = walk.draft.take(slots.claim_index, slots.plan, device, is_required=True)
        if self._taken is None:
            return walk.close(self, Ending.FAILED)
        return walk.slot(slots, self._slot + 1, 0)

    def resume(self, ending: Ending) -> Step:
        assert self._taken is not None
        self.walk.put_back(self._taken)
        return self.walk.close(self, ending)
