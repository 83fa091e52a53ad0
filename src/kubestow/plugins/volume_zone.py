"""Rejects nodes outside the zones in the labels of the pod's volumes (spec 07 §3).

A volume made before volumes had node affinity has its zone and region as labels. The entries
(label, allowed values) of all the pod's volumes are found once per pod; which nodes satisfy them
depends on node labels alone, so the answer is kept by the snapshot.
"""

from typing import ClassVar, Final

import numpy as np

from kubestow.api.csi_translation import ZONE_SEPARATOR
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kubestow.api.topology import BETA_REGION_LABEL, BETA_ZONE_LABEL, REGION_LABEL, ZONE_LABEL
from kubestow.api.volume_claims import (
    WAIT_FOR_FIRST_CONSUMER,
    claim_class,
    claim_not_found,
    class_not_found,
    mode_not_set,
    named_claims,
    names_claim,
    volume_not_found,
)
from kubestow.arrays import BoolArray, IntArray
from kubestow.cache.change_log import Depends
from kubestow.config.plugin_args import PluginArgs
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Action, Hint, Registrations, Resource, on
from kubestow.framework.handle import Handle
from kubestow.framework.plugin import Fragments
from kubestow.framework.reuse import PodReads, Reads, Reuse
from kubestow.framework.status import Status
from kubestow.index.distinct import per_distinct
from kubestow.index.nodes import Nodes
from kubestow.plugins._shared import bases

WRONG_ZONE: Final = "node(s) had no available volume zone"

# In the order in which a volume's labels are read.
TOPOLOGY_LABELS: Final = (BETA_ZONE_LABEL, BETA_REGION_LABEL, ZONE_LABEL, REGION_LABEL)
_SUCCESSORS: Final = {BETA_ZONE_LABEL: ZONE_LABEL, BETA_REGION_LABEL: REGION_LABEL}

WRONG_ZONE_CODE: Final = 1
UNREADABLE: Final = 2

# A label and the values of which a node must have one.
Entry = tuple[str, frozenset[str]]


class VolumeZone:
    name: ClassVar[str] = "VolumeZone"
    args_type: ClassVar[type[PluginArgs] | None] = None
    reuse: ClassVar[Reuse] = Reuse(filter=Reads.NODE, pod=PodReads.SPEC, basis=bases.volumes)

    def __init__(self, args: None, handle: Handle) -> None:
        self._objects = handle.objects

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Status | None:
        if not pod.pod.spec.volumes:
            return Status.skip()
        entries = self._entries_of(pod)
        if isinstance(entries, Status):
            return entries
        if not entries:
            return Status.skip()
        state.write(self.name, entries)
        return None

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        if not pod.pod.spec.volumes:
            return None
        entries: tuple[Entry, ...] | Status | None = state.get(self.name)
        if entries is None:
            # Spec 07 §3.2: without PreFilter its work is done here.
            entries = self._entries_of(pod)
            state.write(self.name, entries)
        if isinstance(entries, Status):
            return np.full(len(nodes), UNREADABLE, np.int64)
        if not entries:
            return None
        return nodes.tracked(
            (self.name, entries), Depends.NODE, lambda nodes: _codes(nodes, entries)
        )

    def sign_pod(self, pod: PodInfo) -> Fragments:
        return bases.signed_volumes(pod)

    def filter_status(self, state: CycleState, code: int) -> Status:
        if code == UNREADABLE:
            return state.read(self.name)
        return Status.unresolvable(WRONG_ZONE)

    def events(self) -> Registrations:
        return (
            on(Resource.STORAGE_CLASS, Action.ADD, _after_class_added),
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            on(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD | Action.UPDATE, _after_claim_changed),
            on(Resource.PERSISTENT_VOLUME, Action.ADD | Action.UPDATE, _after_volume_changed),
        )

    def _entries_of(self, pod: PodInfo) -> tuple[Entry, ...] | Status:
        """The entries of all the pod's volumes, equal ones once; a Status if one is unreadable."""
        entries: dict[Entry, None] = {}
        for name in named_claims(pod.pod):
            volume_name = self._volume_name(pod, name)
            if isinstance(volume_name, Status):
                return volume_name
            if not volume_name:
                continue
            volume = self._objects.persistent_volumes.get(volume_name)
            if volume is None:
                return Status.unresolvable(volume_not_found(volume_name))
            entries.update(dict.fromkeys(topology_entries(volume)))
        return tuple(entries)

    def _volume_name(self, pod: PodInfo, name: str) -> str | Status:
        """The volume of a claim, "" if it is bound only later, or a status for any other claim."""
        if not name:
            return Status.unresolvable("PersistentVolumeClaim had no name")
        claim = self._objects.persistent_volume_claims.get(pod.namespace, name)
        if claim is None:
            return Status.unresolvable(claim_not_found(name))
        if claim.spec.volume_name:
            return claim.spec.volume_name
        class_name = claim_class(claim)
        if not class_name:
            return Status.unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
        storage_class = self._objects.storage_classes.get(class_name)
        if storage_class is None:
            return Status.unresolvable(class_not_found(class_name))
        if storage_class.volume_binding_mode is None:
            return Status.unresolvable(mode_not_set(class_name))
        if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
            return ""
        return Status.unresolvable("PersistentVolume had no name")


def topology_entries(volume: PersistentVolume) -> list[Entry]:
    """What the volume's labels require; a label with an empty part is ignored."""
    entries: list[Entry] = []
    for key in TOPOLOGY_LABELS if volume.metadata.labels else ():
        label = volume.metadata.labels.get(key)
        if label is None:
            continue
        values = frozenset(part.strip() for part in label.split(ZONE_SEPARATOR))
        if "" not in values:
            entries.append((key, values))
    return entries


def successor_of(key: str) -> str:
    """The label that is read on nodes without this older one; "" if there is none."""
    return _SUCCESSORS.get(key, "")


def _codes(nodes: Nodes, entries: tuple[Entry, ...]) -> IntArray:
    # A node without any of the labels fits any volume.
    fits = ~np.any([nodes.label_ids(key) != 0 for key in TOPOLOGY_LABELS], axis=0)
    matching = np.ones(len(nodes), np.bool_)
    for key, values in entries:
        matching &= _entry_matches(nodes, key, values)
    return np.where(fits | matching, 0, WRONG_ZONE_CODE)


def _entry_matches(nodes: Nodes, key: str, values: frozenset[str]) -> BoolArray:
    mask = _label_in(nodes, key, values)
    successor = successor_of(key)
    if successor:
        is_absent = nodes.label_ids(key) == 0
        mask |= is_absent & _label_in(nodes, successor, values)
    return mask


def _label_in(nodes: Nodes, key: str, values: frozenset[str]) -> BoolArray:
    ids = nodes.label_ids(key)
    return per_distinct(ids, nodes.label_values(key), values.__contains__, np.bool_)


def _after_class_added(pod: Pod, old: None, new: StorageClass) -> Hint:
    # Only with a class that delays binding is an unbound claim accepted.
    is_waiting = new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    return Hint.QUEUE if is_waiting else Hint.SKIP


def _after_claim_changed(
    pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim
) -> Hint:
    return Hint.QUEUE if names_claim(pod, new) else Hint.SKIP


def _after_volume_changed(pod: Pod, old: PersistentVolume | None, new: PersistentVolume) -> Hint:
    if old is None or topology_entries(old) != topology_entries(new):
        return Hint.QUEUE
    return Hint.SKIP
