"""What an event makes stale in the equivalence cache (spec 04 §19.1, 07 §7.1).

Two sets of rules:

- `SoundRules`, the default: by what each predicate says it reads, so that decisions are the same
  with the cache and without it.
- `ReleasedRules`: the table of v1.9.11, by the names of predicates. It misses cases: a pod that
  comes leaves MatchInterPodAffinity standing, taints are looked for in an annotation of old, and
  PodFitsResources on its own is never dropped. For those who want to see what v1.9 did.
"""

from collections.abc import Iterable, Iterator
from typing import ClassVar, Final, NamedTuple, Protocol

from kubestow.api.meta import Condition
from kubestow.api.node import Node
from kubestow.api.pod import Pod, Volume
from kubestow.api.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
)
from kubestow.api.topology import BETA_REGION_LABEL, BETA_ZONE_LABEL
from kubestow.api.workload import Service
from kubestow.plugins.legacy.contract import Reads
from kubestow.plugins.legacy.pod import fit_request

TAINTS_ANNOTATION: Final = "scheduler.alpha.kubernetes.io/taints"

_GENERAL: Final = "GeneralPredicates"
_INTER_POD: Final = "MatchInterPodAffinity"
_ZONE: Final = "NoVolumeZoneConflict"
_SERVICE: Final = "ServiceAffinity"
_EBS: Final = "MaxEBSVolumeCount"
_GCE_PD: Final = "MaxGCEPDVolumeCount"
_AZURE: Final = "MaxAzureDiskVolumeCount"
_ZONE_LABELS: Final = (BETA_ZONE_LABEL, BETA_REGION_LABEL)


class Drop(NamedTuple):
    """Verdicts to forget: of the predicates with one of the names, or that read any of this; on one
    node, or everywhere."""

    names: frozenset[str] = frozenset()
    reads: Reads = Reads.NOTHING_ELSE
    is_any_predicate: bool = False
    node_name: str | None = None

    def concerns(self, name: str, reads: Reads) -> bool:
        return self.is_any_predicate or name in self.names or bool(reads & self.reads)


class InvalidationRules(Protocol):
    """What each event drops. `old` or `new` None: the object came, or is gone.

    `is_by_shape`: whether pods of one controller share verdicts only while they ask for the same.
    """

    is_by_shape: ClassVar[bool]

    def pod_assumed(self, pod: Pod) -> Iterable[Drop]: ...

    def pod_changed(self, old: Pod | None, new: Pod | None) -> Iterable[Drop]:
        """A pod with a node."""
        ...

    def node_changed(self, old: Node | None, new: Node | None) -> Iterable[Drop]: ...

    def volume_changed(
        self, old: PersistentVolume | None, new: PersistentVolume | None
    ) -> Iterable[Drop]: ...

    def claim_changed(
        self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None
    ) -> Iterable[Drop]: ...

    def service_changed(self, old: Service | None, new: Service | None) -> Iterable[Drop]: ...


class SoundRules:
    is_by_shape: ClassVar[bool] = True

    def pod_assumed(self, pod: Pod) -> Iterable[Drop]:
        return self.pod_changed(None, pod)

    def pod_changed(self, old: Pod | None, new: Pod | None) -> Iterable[Drop]:
        yield Drop(reads=Reads.CLUSTER)
        for pod in (old, new):
            if pod is not None:
                yield Drop(reads=Reads.PODS, node_name=pod.spec.node_name)

    def node_changed(self, old: Node | None, new: Node | None) -> Iterable[Drop]:
        yield Drop(reads=Reads.CLUSTER)
        node = new if new is not None else old
        assert node is not None
        yield Drop(is_any_predicate=True, node_name=node.metadata.name)

    def volume_changed(
        self, old: PersistentVolume | None, new: PersistentVolume | None
    ) -> Iterable[Drop]:
        yield Drop(reads=Reads.VOLUMES)

    def claim_changed(
        self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None
    ) -> Iterable[Drop]:
        yield Drop(reads=Reads.VOLUMES)

    def service_changed(self, old: Service | None, new: Service | None) -> Iterable[Drop]:
        yield Drop(reads=Reads.SERVICES)


class ReleasedRules:
    is_by_shape: ClassVar[bool] = False

    def pod_assumed(self, pod: Pod) -> Iterable[Drop]:
        names = {_GENERAL, *_counting_predicates(pod.spec.volumes)}
        yield Drop(frozenset(names), node_name=pod.spec.node_name)

    def pod_changed(self, old: Pod | None, new: Pod | None) -> Iterable[Drop]:
        if new is None:
            assert old is not None
            yield from self._pod_deleted(old)
        elif old is not None and old.spec.node_name == new.spec.node_name:
            if old.metadata.labels != new.metadata.labels:
                yield Drop(frozenset((_INTER_POD,)))
            if fit_request(old) != fit_request(new):
                yield Drop(frozenset((_GENERAL,)), node_name=new.spec.node_name)

    def _pod_deleted(self, pod: Pod) -> Iterable[Drop]:
        yield from self.pod_assumed(pod)
        yield Drop(frozenset((_INTER_POD,)))
        if any(_is_exclusive_disk(volume) for volume in pod.spec.volumes):
            yield Drop(frozenset(("NoDiskConflict",)), node_name=pod.spec.node_name)

    def node_changed(self, old: Node | None, new: Node | None) -> Iterable[Drop]:
        if old is None:
            return
        name = old.metadata.name
        if new is None:
            yield Drop(is_any_predicate=True, node_name=name)
        else:
            yield Drop(frozenset(_stale_after_update(old, new)), node_name=name)

    def volume_changed(
        self, old: PersistentVolume | None, new: PersistentVolume | None
    ) -> Iterable[Drop]:
        volume = old if new is None else new
        if volume is None or (old is not None and new is not None):
            return  # Updates drop nothing.
        names = set(_counting_predicates((volume.spec,)))
        if any(label in volume.metadata.labels for label in _ZONE_LABELS):
            names.add(_ZONE)
        yield Drop(frozenset(names))

    def claim_changed(
        self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None
    ) -> Iterable[Drop]:
        if old is None or new is None:
            yield Drop(frozenset((_EBS, _GCE_PD, _AZURE, _ZONE)))

    def service_changed(self, old: Service | None, new: Service | None) -> Iterable[Drop]:
        if old is None or new is None or old.spec.selector != new.spec.selector:
            yield Drop(frozenset((_SERVICE,)))


def _counting_predicates(volumes: Iterable[Volume | PersistentVolumeSpec]) -> Iterator[str]:
    """The predicates that count such volumes; what is behind a claim may be of any kind."""
    for volume in volumes:
        if isinstance(volume, Volume) and volume.persistent_volume_claim is not None:
            yield from (_EBS, _GCE_PD, _AZURE)
        if volume.aws_elastic_block_store is not None:
            yield _EBS
        if volume.gce_persistent_disk is not None:
            yield _GCE_PD
        if volume.azure_disk is not None:
            yield _AZURE


def _is_exclusive_disk(volume: Volume) -> bool:
    return (
        volume.gce_persistent_disk is not None
        or volume.aws_elastic_block_store is not None
        or volume.rbd is not None
        or volume.iscsi is not None
    )


def _stale_after_update(old: Node, new: Node) -> Iterator[str]:
    if old.status.allocatable != new.status.allocatable:
        yield _GENERAL
    if old.metadata.labels != new.metadata.labels:
        yield from _stale_after_relabelling(old.metadata.labels, new.metadata.labels)
    if old.metadata.annotations.get(TAINTS_ANNOTATION) != (
        new.metadata.annotations.get(TAINTS_ANNOTATION)
    ):
        yield "PodToleratesNodeTaints"
    if old.status.conditions != new.status.conditions:
        before, after = _statuses(old.status.conditions), _statuses(new.status.conditions)
        if before.get("MemoryPressure") != after.get("MemoryPressure"):
            yield "CheckNodeMemoryPressure"
        if before.get("DiskPressure") != after.get("DiskPressure"):
            yield "CheckNodeDiskPressure"
        is_other = any(
            before.get(kind) != after.get(kind)
            for kind in ("Ready", "OutOfDisk", "NetworkUnavailable")
        )
        if is_other or old.spec.unschedulable != new.spec.unschedulable:
            yield "CheckNodeCondition"


def _stale_after_relabelling(old: dict[str, str], new: dict[str, str]) -> Iterator[str]:
    yield from (_GENERAL, _SERVICE)
    lost = [key for key, value in old.items() if new.get(key) != value]
    if lost:
        yield _INTER_POD
    if any(key in _ZONE_LABELS for key in lost):
        yield _ZONE


def _statuses(conditions: Iterable[Condition]) -> dict[str, str]:
    return {condition.type: condition.status for condition in conditions}
