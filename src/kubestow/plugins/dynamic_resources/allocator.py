"""Devices for the claims of one pod on one node (spec 08 B7).

A search may have to try every combination, for as long as its timeout allows. It is interrupted in
between, as the attempt is; it can go on where it was, as long as the node and its devices stay the
same. The timeout counts the time in which it was at work.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Final, NamedTuple, NoReturn

from kubestow.api.node import Node
from kubestow.clock import Clock
from kubestow.config.feature_gates import FeatureGates
from kubestow.framework.attempt_timer import NO_TIMER, AttemptTimer, NoTimer
from kubestow.index.devices import KnownDevices
from kubestow.index.devices.selectors import Waiter
from kubestow.plugins.dynamic_resources.draft import Fitness
from kubestow.plugins.dynamic_resources.features import Features, features_of
from kubestow.plugins.dynamic_resources.pools import NodePools, PoolCache, PoolGathering
from kubestow.plugins.dynamic_resources.requests import ClaimPlan
from kubestow.plugins.dynamic_resources.results import AllocationMaker, ClaimAllocation
from kubestow.plugins.dynamic_resources.search import Search

# Shorter than any search, with any resolution of the clock.
TIMEOUT_S_MIN: Final = 1e-6


class InvalidPools(Exception):
    """No allocation was found, but some pool is invalid (B6)."""


class TimedOut(Exception):
    """The search on one node took too long."""


class AllocationRules(NamedTuple):
    """The parts of the search that editions have of their own. These are v1.36's."""

    features_of: Callable[[FeatureGates], Features] = features_of
    gathering: type[PoolGathering] = PoolGathering
    fitness: type[Fitness] = Fitness
    maker: type[AllocationMaker] = AllocationMaker


CORE_ALLOCATION: Final = AllocationRules()


class DeviceAllocator:
    def __init__(
        self,
        known: KnownDevices,
        features: Features,
        timeout_s: float,
        clock: Clock,
        rules: AllocationRules = CORE_ALLOCATION,
    ) -> None:
        """`timeout_s` 0 means no timeout. `clock` shows real time: it limits how long a search
        keeps the process busy, also where all else happens in simulated time (B1)."""
        self._allocated = known.claims.allocated
        self._features = features
        self._clock = clock
        self._timeout_s = timeout_s
        self._rules = rules
        self._maker = rules.maker(features)
        self._pools = PoolCache(rules.gathering(known.inventory, features))

    @property
    def never_finishes(self) -> bool:
        """Whether the timeout is too short for any search."""
        return 0 < self._timeout_s < TIMEOUT_S_MIN

    def pools_of(self, node: Node) -> NodePools:
        """The pools that the node can reach; raises PluginError if a selector does not parse."""
        return self._pools.of(node)

    def allocate(
        self, node: Node, plans: Sequence[ClaimPlan]
    ) -> tuple[ClaimAllocation, ...] | None:
        """As `NodeSearch.run`, without an interruption."""
        return self.search(node, plans).run(NO_TIMER)

    def search(self, node: Node, plans: Sequence[ClaimPlan]) -> "NodeSearch":
        """Raises PluginError if a node selector of a slice does not parse."""
        timeout = _Timeout(self._clock, self._timeout_s)
        new_fitness = partial(self._rules.fitness, self._allocated, node, self._features)
        return NodeSearch(node, plans, self._pools.of(node), new_fitness, self._maker, timeout)


class NodeSearch:
    """The search for the claims of one pod on one node. If it is interrupted, `run` goes on with
    it; that is valid until the node or its devices change."""

    def __init__(
        self,
        node: Node,
        plans: Sequence[ClaimPlan],
        pools: NodePools,
        new_fitness: Callable[[Callable[[], None], Waiter], Fitness],
        maker: AllocationMaker,
        timeout: "_Timeout",
    ) -> None:
        """`new_fitness` takes what is called between expressions, and what waits for them."""
        self._node_name = node.metadata.name
        self._plans = plans
        self._pools = pools
        self._maker = maker
        self._timeout = timeout
        self._timer: AttemptTimer | NoTimer = NO_TIMER
        # Preparations end in other errors before the deadline counts.
        fitness = new_fitness(self._check_preparing, self)
        self._search = Search(plans, pools, fitness, self._check, self._rest)

    def run(self, timer: AttemptTimer | NoTimer) -> tuple[ClaimAllocation, ...] | None:
        """The allocation of each claim on the node, None if there is none.

        Raises TimedOut, InvalidPools, or PluginError for what ends the attempt of the pod; and what
        interrupts the attempt.
        """
        self._timer = timer
        self._timeout.start()
        try:
            choices = self._search.run()
        finally:
            self._timeout.stop()
        if choices is not None:
            return tuple(
                [
                    self._maker.make(plan, choice, self._node_name)
                    for plan, choice in zip(self._plans, choices, strict=True)
                ]
            )
        if self._pools.has_invalid:
            raise InvalidPools
        return None

    # --- for expressions that take long (`Waiter`) ---

    @property
    def may_wait(self) -> bool:
        return self._timer.may_wait

    def wait_for(self, awaited: "Future[Any]") -> NoReturn:
        self._timer.wait_for(awaited)

    # --- while it runs ---

    def _check(self) -> None:
        if self._timeout.is_shortest:
            raise TimedOut
        self._check_preparing()

    def _check_preparing(self) -> None:
        self._timeout.check()
        self._timer.may_interrupt()

    def _rest(self) -> None:
        self._timeout.check()
        self._timer.pause()


class _Timeout:
    """Limits the time in which a search is at work."""

    def __init__(self, clock: Clock, timeout_s: float) -> None:
        """0 means none."""
        self._clock = clock
        self._left_s = timeout_s
        self.is_shortest = 0 < timeout_s < TIMEOUT_S_MIN
        # A timeout that is too short for any search is not measured.
        self._is_measured = timeout_s > 0 and not self.is_shortest
        self._end_s = 0.0

    def start(self) -> None:
        self._end_s = self._clock.monotonic_s() + self._left_s

    def stop(self) -> None:
        self._left_s = self._end_s - self._clock.monotonic_s()

    def check(self) -> None:
        if self._is_measured and self._clock.monotonic_s() > self._end_s:
            raise TimedOut
