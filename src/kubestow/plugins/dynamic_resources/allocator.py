"""Devices for the claims of one pod, node by node (spec 08 B7).

Most pods ask for the same as the pod before, and most nodes are as they were then. So an answer is
kept with what it rests on: the pools the node saw, and how often a device in them changed hands.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Final

from kubestow.api.decode import encode_json
from kubestow.api.device import ResourceClaim
from kubestow.api.node import Node
from kubestow.clock import Clock
from kubestow.plugins._shared.devices import KnownDevices
from kubestow.plugins.dynamic_resources.pools import NodePools, PoolCache
from kubestow.plugins.dynamic_resources.requests import ClaimPlan, plan_claim
from kubestow.plugins.dynamic_resources.results import ClaimAllocation, make_allocation
from kubestow.plugins.dynamic_resources.search import Features, Search

# Shorter than any search can take, whatever the clock shows.
TIMEOUT_S_MIN: Final = 1e-6
SHAPES_MAX: Final = 64  # different sets of claims for which answers are kept

# The allocation of each claim, or None if there is no way.
Allocations = tuple[ClaimAllocation, ...] | None


class InvalidPools(Exception):
    """There is no way, but some pool could not be looked into (B6)."""


class TimedOut(Exception):
    """The search on one node took too long."""


class _Answers:
    """Answers for one set of claims, by node."""

    __slots__ = ("by_node", "class_version")

    def __init__(self, class_version: int) -> None:
        self.class_version = class_version
        self.by_node: dict[str, tuple[NodePools, tuple[int, ...], Allocations]] = {}


class DeviceAllocator:
    """Finds devices, and keeps what it found out."""

    def __init__(
        self, known: KnownDevices, features: Features, clock: Clock, timeout_s: float
    ) -> None:
        """`timeout_s` 0 means that a search may take as long as it takes."""
        self._known = known
        self._features = features
        self._clock = clock
        self._timeout_s = timeout_s
        self._pools = PoolCache(known.inventory)
        self._answers: OrderedDict[Hashable, _Answers] = OrderedDict()

    def allocate(self, node: Node, shape: "ClaimShape") -> Allocations:
        """Devices for the claims on the node.

        Raises TimedOut, InvalidPools, or PluginError for what ends the attempt of the pod.
        """
        pools = self._pools.of(node)
        allocated = self._known.claims.allocated
        stamps = tuple([allocated.stamp_of(pool.key) for pool in pools.pools])
        answers = self._answers_for(shape)
        kept = answers.by_node.get(node.metadata.name)
        # Where no time is given nothing is ever found, not even what is known already.
        if kept is not None and kept[0] is pools and kept[1] == stamps and not self._is_instant:
            found = kept[2]
        else:
            found = self._search(node, shape, pools)
            answers.by_node[node.metadata.name] = pools, stamps, found
        if found is None and pools.has_invalid:
            raise InvalidPools
        return found

    @property
    def _is_instant(self) -> bool:
        return 0 < self._timeout_s < TIMEOUT_S_MIN

    def _search(self, node: Node, shape: "ClaimShape", pools: NodePools) -> Allocations:
        plans = shape.plans(self._known)
        picks = Search(
            plans,
            pools,
            self._known.claims.allocated,
            lambda published: published.reach.includes(node),
            self._features,
            self._deadline(),
        ).run()
        if picks is None:
            return None
        return tuple(
            make_allocation(plan, picked, node.metadata.name)
            for plan, picked in zip(plans, picks, strict=True)
        )

    def _deadline(self) -> Callable[[], None]:
        timeout_s = self._timeout_s
        end_s = self._clock.monotonic_s() + timeout_s

        def check() -> None:
            if timeout_s and (self._is_instant or self._clock.monotonic_s() > end_s):
                raise TimedOut

        return check

    def _answers_for(self, shape: "ClaimShape") -> _Answers:
        version = self._known.classes.version
        answers = self._answers.get(shape.key)
        if answers is None or answers.class_version != version:
            answers = self._answers[shape.key] = _Answers(version)
            if len(self._answers) > SHAPES_MAX:
                self._answers.popitem(last=False)
        self._answers.move_to_end(shape.key)
        return answers


class ClaimShape:
    """Some claims that are to be allocated together. Equal specs have an equal `key`."""

    __slots__ = ("_plans", "claims", "key")

    def __init__(self, claims: Sequence[ResourceClaim]) -> None:
        self.claims = tuple(claims)
        self.key: Hashable = tuple(encode_json(claim.spec) for claim in claims)
        self._plans: Sequence[ClaimPlan] | None = None

    def plans(self, known: KnownDevices) -> Sequence[ClaimPlan]:
        if self._plans is None:
            self._plans = [plan_claim(claim, known.classes.get) for claim in self.claims]
        return self._plans
