"""NoVolumeZoneConflict: a bound volume may be usable in some zones only (spec 07 §7.1)."""

from typing import ClassVar, Final

import numpy as np

from kubestow.api.storage import PersistentVolume
from kubestow.api.topology import BETA_REGION_LABEL, BETA_ZONE_LABEL
from kubestow.arrays import BoolArray
from kubestow.editions.v1_9.plugins.contract import ALL_FIT, Attempt, NamedRule, Reads, Verdicts
from kubestow.editions.v1_9.plugins.predicates.claims import (
    UNNAMED_CLAIM,
    VolumeClaimError,
    claimed_volume,
)
from kubestow.editions.v1_9.plugins.reasons import code_of
from kubestow.index.distinct import per_distinct
from kubestow.index.nodes import Nodes

_CONFLICT: Final = code_of("NoVolumeZoneConflict")
_ERROR: Final = -1
_LABELS: Final = (BETA_ZONE_LABEL, BETA_REGION_LABEL)


class NoVolumeZoneConflict(NamedRule):
    reads: ClassVar[Reads] = Reads.VOLUMES

    def check(self, attempt: Attempt, nodes: Nodes) -> Verdicts:
        pod = attempt.pod
        claims = [
            volume.persistent_volume_claim.claim_name
            for volume in pod.pod.spec.volumes
            if volume.persistent_volume_claim is not None
        ]
        if not claims:
            return ALL_FIT
        codes = np.zeros(len(nodes), np.int64)
        # A node in no zone fits before any claim is checked; a conflict ends the check.
        undecided = _in_some_zone(nodes)
        for claim in claims:
            try:
                if not claim:
                    raise VolumeClaimError(UNNAMED_CLAIM)
                volume = claimed_volume(attempt.cluster.objects, pod.namespace, claim)
            except VolumeClaimError as error:
                codes[undecided] = _ERROR
                return Verdicts(codes, (str(error),))
            conflict = undecided & _is_elsewhere(nodes, volume)
            codes[conflict] = _CONFLICT
            undecided &= ~conflict
        return Verdicts(codes)


def _in_some_zone(nodes: Nodes) -> BoolArray:
    mask = np.zeros(len(nodes), np.bool_)
    for label in _LABELS:
        mask |= nodes.label_ids(label) != 0
    return mask


def _is_elsewhere(nodes: Nodes, volume: PersistentVolume) -> BoolArray:
    mask = np.zeros(len(nodes), np.bool_)
    for label in _LABELS:
        allowed = _zones(volume.metadata.labels.get(label))
        if allowed is not None:
            mask |= _outside(nodes, label, allowed)
    return mask


def _outside(nodes: Nodes, label: str, allowed: frozenset[str]) -> BoolArray:
    # A node without the label counts as having an empty value.
    def is_outside(value: str | None) -> bool:
        return (value or "") not in allowed

    ids = nodes.label_ids(label)
    return per_distinct(ids, nodes.label_values(label), is_outside, np.bool_)


def _zones(value: str | None) -> frozenset[str] | None:
    """The zones a volume's label lists; None without the label or if it is invalid."""
    if value is None:
        return None
    zones = frozenset(zone.strip() for zone in value.split("__"))
    return None if "" in zones else zones
