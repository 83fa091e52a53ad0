"""Devices for the claims of one pod on one node (spec 08 B7)."""

from collections.abc import Callable, Sequence
from typing import Final

from kubestow.api.node import Node
from kubestow.clock import Clock
from kubestow.index.devices import KnownDevices
from kubestow.index.devices.selectors import Waiter
from kubestow.plugins.dynamic_resources.features import Features
from kubestow.plugins.dynamic_resources.pools import PoolCache
from kubestow.plugins.dynamic_resources.requests import ClaimPlan
from kubestow.plugins.dynamic_resources.results import ClaimAllocation, make_allocation
from kubestow.plugins.dynamic_resources.search import Search

# Shorter than any search, whatever the resolution of the clock.
TIMEOUT_S_MIN: Final = 1e-6


class InvalidPools(Exception):
    """No allocation was found, but some pool is invalid (B6)."""


class TimedOut(Exception):
    """The search on one node took too long."""


class DeviceAllocator:
    def __init__(
        self, known: KnownDevices, features: Features, timeout_s: float, clock: Clock
    ) -> None:
        """`timeout_s` 0 means no timeout. `clock` shows real time: it limits how long a search
        keeps the process busy, also where all else happens in simulated time (B1)."""
        self._allocated = known.claims.allocated
        self._features = features
        self._clock = clock
        self._timeout_s = timeout_s
        self._pools = PoolCache(known.inventory, partitionable=features.partitionable)

    @property
    def never_finishes(self) -> bool:
        """Whether the timeout is too short for any search."""
        return 0 < self._timeout_s < TIMEOUT_S_MIN

    def allocate(
        self, node: Node, plans: Sequence[ClaimPlan], waiter: Waiter | None = None
    ) -> tuple[ClaimAllocation, ...] | None:
        """The allocation of each claim on the node, None if there is none.

        Raises TimedOut, InvalidPools, or PluginError for what ends the attempt of the pod.
        """
        pools = self._pools.of(node)
        check_time = self._deadline()
        choices = Search(
            plans,
            pools,
            self._allocated,
            lambda published: published.reach.includes(node),
            self._features,
            self._time_out if self.never_finishes else check_time,
            check_time,
            waiter,
        ).run()
        if choices is not None:
            return tuple(
                [
                    make_allocation(plan, choice, node.metadata.name, self._features)
                    for plan, choice in zip(plans, choices, strict=True)
                ]
            )
        if pools.has_invalid:
            raise InvalidPools
        return None

    def _deadline(self) -> Callable[[], None]:
        timeout_s = self._timeout_s
        # A timeout that is too short for any search is not measured.
        is_measured = timeout_s > 0 and not self.never_finishes
        end_s = self._clock.monotonic_s() + timeout_s

        def check() -> None:
            if is_measured and self._clock.monotonic_s() > end_s:
                raise TimedOut

        return check

    def _time_out(self) -> None:
        raise TimedOut
