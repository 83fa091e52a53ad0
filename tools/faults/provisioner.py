"""A volume controller whose provisioner is late, refuses a node, or takes another one."""

import asyncio
from functools import partial
from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.api.node import Node
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kubestow.api.volume_claims import SELECTED_NODE_ANNOTATION
from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.resources import NODES, PERSISTENT_VOLUME_CLAIMS
from kubestow.simulator.volume_controller import VolumeController
from tools.faults.fault import Fault, FaultRates

LATE_S: Final = 30.0


class FaultyVolumeController(VolumeController):
    def __init__(self, cluster: MemoryCluster, faults: FaultRates) -> None:
        super().__init__(cluster)
        self._faults = faults
        # Claims whose volume is being made, by UID; these have had their faults.
        self._late: set[str] = set()

    def _volume_for(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        uid = claim.metadata.uid
        if uid in self._late:
            return None
        if not claim.spec.volume_name and self._faults.happens(Fault.PROVISION_LATE):
            self._late.add(uid)
            delay_s = LATE_S * float(self._faults.rng.random())
            asyncio.get_running_loop().call_later(delay_s, self._go_on, claim)
            return None
        return super()._volume_for(claim)

    def _go_on(self, claim: PersistentVolumeClaim) -> None:
        self._late.discard(claim.metadata.uid)
        metadata = claim.metadata
        stored = self._cluster.find(PERSISTENT_VOLUME_CLAIMS, metadata.namespace, metadata.name)
        if stored is not None and isinstance(stored.typed, PersistentVolumeClaim):
            self._guard.run(stored, partial(self._sync_claim, stored.typed))

    def _provision_on_selected_node(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass
    ) -> PersistentVolume | None:
        selected = claim.metadata.annotations.get(SELECTED_NODE_ANNOTATION)
        if selected is not None and self._faults.happens(Fault.PROVISION_FAILS):
            # As a provisioner does that has no room there: the scheduler has to choose again.
            patch: JsonObject = {"metadata": {"annotations": {SELECTED_NODE_ANNOTATION: None}}}
            metadata = claim.metadata
            self._cluster.patch(
                PERSISTENT_VOLUME_CLAIMS, metadata.namespace, metadata.name, patch, "merge"
            )
            return None
        if selected is not None and self._faults.happens(Fault.PROVISION_ELSEWHERE):
            others = [stored.typed for stored in self._cluster.objects_of(NODES)]
            nodes = [node for node in others if isinstance(node, Node)]
            if nodes:
                node = nodes[int(self._faults.rng.integers(len(nodes)))]
                return self._provision(claim, storage_class, node)
        return super()._provision_on_selected_node(claim, storage_class)
