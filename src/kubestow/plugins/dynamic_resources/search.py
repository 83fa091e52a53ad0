"""Chooses devices for all claims of a pod on one node (spec 08 B7).

The first steps are those of upstream. A search that has to try many devices again goes on with
fewer of them (`pruning`), unless some step may end in an error: then every step is made, in
upstream's order.

Not here: the order of decisions (`walk`), what makes a device fit (`draft`), how many devices are
needed (`sizes`).
"""

from collections.abc import Callable, Sequence
from typing import Final

from kubestow.plugins.dynamic_resources.draft import Fitness
from kubestow.plugins.dynamic_resources.pools import NodePools
from kubestow.plugins.dynamic_resources.pruning import Deadline, Pruning, find_pruning
from kubestow.plugins.dynamic_resources.requests import ClaimPlan
from kubestow.plugins.dynamic_resources.sizes import Sizes
from kubestow.plugins.dynamic_resources.walk import Choice, Ending, Walk

RETRIES_PER_DEVICE: Final = 1  # steps after the first that failed, before a search is pruned


class Search:
    """One search on one node. If it is interrupted, `run` goes on with it.

    steps   devices tried, and choices opened
    """

    def __init__(
        self,
        claims: Sequence[ClaimPlan],
        pools: NodePools,
        fitness: Fitness,
        deadline: Deadline,
        rest: Callable[[], None] | None = None,
    ) -> None:
        """`rest` is the deadline of work that begins again if it is interrupted; without it, that
        is `deadline`."""
        self.steps = 0
        self._claims = claims
        self._pools = pools
        self._fitness = fitness
        self._deadline = deadline
        self._rest = rest or deadline
        self._sizes: Sizes | None = None
        self._walk: Walk | None = None
        self._is_whole = False  # The walk goes on to its end.

    def run(self) -> Sequence[Choice] | None:
        """What each claim gets, None if there is no way.

        Raises PluginError for what ends the attempt of the pod.
        """
        if self._sizes is None:
            self._sizes = Sizes(self._claims, self._pools, self._fitness, self._rest)
            self._deadline()
        if self._walk is None:
            self._walk = self._new_walk(self._sizes)
        walk, ending = self._walk, None
        if not self._is_whole:
            ending = walk.run(retries_max=len(self._pools.devices) * RETRIES_PER_DEVICE)
        if ending is None:
            if not self._is_whole:
                walk = self._prune(self._sizes, walk)
            ending = walk.run()
        self.steps += walk.steps
        return walk.choices() if ending is Ending.FOUND else None

    def _prune(self, sizes: Sizes, walk: Walk) -> Walk:
        """Another walk with fewer devices; the same one if every step has to be made."""
        pruning = find_pruning(self._claims, self._pools, sizes, self._fitness, self._rest)
        if pruning is not None:
            self.steps = walk.steps
            walk = self._walk = self._new_walk(sizes, pruning)
        self._is_whole = True
        return walk

    def _new_walk(self, sizes: Sizes, pruning: Pruning | None = None) -> Walk:
        return Walk(self._claims, self._pools, sizes, self._fitness, self._deadline, pruning)
