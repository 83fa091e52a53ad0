"""Chooses devices for all claims of a pod on one node (spec 08 B7).

The first steps are those of upstream. A search that has to try many devices again goes on with
fewer of them (`pruning`), unless some step may end in an error: then every step is made, in
upstream's order.

Not here: the order of decisions (`walk`), what makes a device fit (`draft`), how many devices are
needed (`sizes`).
"""

from collections.abc import Sequence
from typing import Final

from kubestow.index.devices.allocated import AllocatedDevices
from kubestow.index.devices.selectors import Waiter
from kubestow.plugins.dynamic_resources.draft import Fitness, Reaches
from kubestow.plugins.dynamic_resources.features import Features
from kubestow.plugins.dynamic_resources.pools import NodePools
from kubestow.plugins.dynamic_resources.pruning import Deadline, find_pruning
from kubestow.plugins.dynamic_resources.requests import ClaimPlan
from kubestow.plugins.dynamic_resources.sizes import Sizes
from kubestow.plugins.dynamic_resources.walk import Choice, Ending, Walk

RETRIES_PER_DEVICE: Final = 1  # steps after the first that failed, before a search is pruned


class Search:
    """One attempt on one node; used once.

    steps   devices tried, and choices opened
    """

    def __init__(
        self,
        claims: Sequence[ClaimPlan],
        pools: NodePools,
        allocated: AllocatedDevices,
        reaches: Reaches,
        features: Features,
        deadline: Deadline,
        check_time: Deadline | None = None,
        waiter: Waiter | None = None,
    ) -> None:
        """`check_time` is for preparations, which end in other errors before the deadline counts;
        without it, that is `deadline`. `waiter` is for expensive expressions."""
        self.steps = 0
        self._claims = claims
        self._pools = pools
        self._fitness = Fitness(allocated, reaches, features, check_time or deadline, waiter)
        self._deadline = deadline

    def run(self) -> Sequence[Choice] | None:
        """What each claim gets, None if there is no way.

        Raises PluginError for what ends the attempt of the pod.
        """
        claims, pools, fitness = self._claims, self._pools, self._fitness
        sizes = Sizes(claims, pools, fitness)
        self._deadline()
        walk = Walk(claims, pools, sizes, fitness, self._deadline)
        ending = walk.run(retries_max=len(pools.devices) * RETRIES_PER_DEVICE)
        if ending is None:
            pruning = find_pruning(claims, pools, sizes, fitness, self._deadline)
            if pruning is not None:
                self.steps = walk.steps
                walk = Walk(claims, pools, sizes, fitness, self._deadline, pruning)
            ending = walk.run()
        self.steps += walk.steps
        return walk.choices() if ending is Ending.FOUND else None
