"""InterPodAffinity of v1.17 and v1.20 (spec 06 §6.6.6): two reasons, and scores relative to 0.

Namespace selectors, which are newer, are honoured: a term that selected pods of fewer namespaces
than it means would place pods where they must not be.
"""

from collections.abc import Mapping
from typing import ClassVar, Final

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.plugin import MAX_NODE_SCORE
from kubestow.framework.status import Status
from kubestow.plugins.inter_pod_affinity import InterPodAffinity
from kubestow.plugins.inter_pod_affinity.filtering import FAR, FORBIDDEN, NEAR

_EITHER: Final = "node(s) didn't match pod affinity/anti-affinity"
_STATUSES: Final[Mapping[int, Status]] = {
    FAR: Status.unresolvable(_EITHER, "node(s) didn't match pod affinity rules"),
    NEAR: Status.unschedulable(_EITHER, "node(s) didn't match pod anti-affinity rules"),
    FORBIDDEN: Status.unschedulable(
        _EITHER, "node(s) didn't satisfy existing pods anti-affinity rules"
    ),
}


class InterPodAffinity120(InterPodAffinity):
    statuses: ClassVar[Mapping[int, Status]] = _STATUSES

    def filter_status(self, state: CycleState, code: int) -> Status:
        return self.statuses[code]

    def normalize(self, state: CycleState, pod: PodInfo, scores: IntArray) -> IntArray:
        return normalised_from_zero(scores)


def normalised_from_zero(raw: IntArray) -> IntArray:
    """Scale to 0..100; the range always includes 0."""
    lowest, highest = int(raw.min(initial=0)), int(raw.max(initial=0))
    if lowest == highest:
        return np.zeros_like(raw)
    # In doubles, divided first: 29 of 100 gives 28.
    return (float(MAX_NODE_SCORE) * ((raw - lowest) / float(highest - lowest))).astype(np.int64)
