"""VolumeZone of v1.17 and v1.20 (spec 07 §7.2).

A node without any of the labels fits before a claim is looked at, and today's label does not stand
in for the older one.
"""

import numpy as np

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import BoolArray, IntArray
from kubestow.cache.change_log import Depends
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.status import Status
from kubestow.index.distinct import per_distinct
from kubestow.index.nodes import Nodes
from kubestow.plugins.volume_zone import (
    TOPOLOGY_LABELS,
    UNREADABLE,
    WRONG_ZONE_CODE,
    Entry,
    VolumeZone,
)


class VolumeZone120(VolumeZone):
    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Status | None:
        return Status.skip() if not pod.pod.spec.volumes else None

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        if not pod.pod.spec.volumes:
            return None
        entries: tuple[Entry, ...] | Status | None = state.get(self.name)
        if entries is None:
            entries = self._entries_of(pod)
            state.write(self.name, entries)
        if isinstance(entries, Status):
            return _is_labelled(nodes) * np.int64(UNREADABLE)
        if not entries:
            return None
        found = entries
        key = ("v1.20", self.name, found)
        return nodes.tracked(key, Depends.NODE, lambda nodes: _codes(nodes, found))


def _is_labelled(nodes: Nodes) -> BoolArray:
    return np.any([nodes.label_ids(key) != 0 for key in TOPOLOGY_LABELS], axis=0)


def _codes(nodes: Nodes, entries: tuple[Entry, ...]) -> IntArray:
    is_elsewhere = np.zeros(len(nodes), np.bool_)
    for key, values in entries:
        matches = per_distinct(
            nodes.label_ids(key), nodes.label_values(key), values.__contains__, np.bool_
        )
        is_elsewhere |= ~matches
    return (is_elsewhere & _is_labelled(nodes)) * np.int64(WRONG_ZONE_CODE)
