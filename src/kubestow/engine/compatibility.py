"""Which parts of the scheduler are those of an older version.

v1.17 and v1.20 had plugins already, so they share profiles, plugins and cycles with today; queue,
cache, order of nodes and the choice among the best are theirs. v1.9 had neither, and is a scheduler
of its own (`engine.legacy.scheduler_v1_9`).
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import numpy as np

from kubestow.cache.cache import Cache
from kubestow.cache.legacy import Cache117, Cache120, Snapshot117
from kubestow.cache.snapshot import Snapshot
from kubestow.engine.legacy.reservoir import ReservoirSelector
from kubestow.engine.select_host import HostSelector, Selector


class SchedulerParts(NamedTuple):
    """What differs from version to version.

    has_hints             False: the queue wakes all parked pods with every event (spec 02 §19.1)
    expires_assumptions   an assumed pod is forgotten some time after its binding (spec 03 §14.2)
    """

    make_cache: Callable[[], Cache]
    make_snapshot: Callable[[], Snapshot]
    make_selector: Callable[[np.random.Generator], Selector]
    has_hints: bool
    expires_assumptions: bool


def _by_order(_: np.random.Generator) -> Selector:
    return HostSelector()


TODAY: Final = SchedulerParts(Cache, Snapshot, _by_order, True, False)
V1_20: Final = SchedulerParts(Cache120, Snapshot, ReservoirSelector, False, True)
V1_17: Final = SchedulerParts(Cache117, Snapshot117, ReservoirSelector, False, True)

PARTS: Final[Mapping[str, SchedulerParts]] = {"v1.17": V1_17, "v1.20": V1_20, "v1.36": TODAY}
