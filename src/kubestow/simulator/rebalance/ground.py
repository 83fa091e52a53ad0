"""The cluster that a plan is made for: every pod on its node, and time stands still.

Pods that wait in the input are placed first, as `simulate` places them. Then the scheduler is built
once more without preemption: a replacement that would have to evict another pod finds no place.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kubestow.api.decode import quoted
from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.api.quantity import parse_quantity
from kubestow.api.resources import Resources
from kubestow.clock import Clock, SystemClock
from kubestow.cluster.documents import as_object, namespace_of, objects_in, value_at
from kubestow.errors import InputError
from kubestow.explain.cluster import StillCluster
from kubestow.simulator.capacity.placing import (
    PlacingCluster,
    PlacingSetup,
    without_preemption,
)
from kubestow.simulator.input.pods import PodKey, key_of
from kubestow.simulator.loading import stands
from kubestow.simulator.still import still_cluster
from kubestow.simulator.virtual_time import run_in_virtual_time

METRICS_KIND: Final = "PodMetrics"
AUTOSCALER_KIND: Final = "HorizontalPodAutoscaler"
# No scheduler reads them.
_SET_APART: Final = (METRICS_KIND, AUTOSCALER_KIND)
_TERMINAL: Final = ("Succeeded", "Failed")
# Owners that the rules and the budgets read.
_OWNER_KINDS: Final = frozenset(
    ("Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet")
)


class OwnerName(NamedTuple):
    kind: str
    namespace: str
    name: str


class Ground(NamedTuple):
    """The cluster, and what its documents have that a scheduler does not read.

    local_volumes   the names of volumes that are lost with the node, of pods that have such
    budgets         PodDisruptionBudgets
    owners          what makes pods
    usage           what pods were measured to use
    autoscaled      what HorizontalPodAutoscalers scale
    placed_count    pods of the input that waited, and were placed first
    """

    cluster: StillCluster
    local_volumes: Mapping[PodKey, tuple[str, ...]]
    budgets: Sequence[JsonObject]
    owners: Mapping[OwnerName, JsonObject]
    usage: Mapping[PodKey, Resources]
    autoscaled: frozenset[OwnerName]
    placed_count: int


def ground_of(
    documents: Sequence[Document], setup: PlacingSetup, clock: Clock | None = None
) -> Ground:
    """Raises InputError with the place of a document that cannot be used."""
    apart = [one for one in documents if one.raw["kind"] in _SET_APART]
    read = [one for one in documents if one.raw["kind"] not in _SET_APART]
    if not _needs_placing(read):
        return standing_ground(documents, setup, clock)
    before = sum(_is_placed(one.raw) for one in read)
    read = run_in_virtual_time(_placed(read, setup))
    placed_count = sum(_is_placed(one.raw) for one in read) - before
    ground = standing_ground([*read, *apart], setup, clock)
    return ground._replace(placed_count=placed_count)


def standing_ground(
    documents: Sequence[Document], setup: PlacingSetup, clock: Clock | None = None
) -> Ground:
    """The cluster as it is; pods that wait are left waiting."""
    metrics = [one for one in documents if one.raw["kind"] == METRICS_KIND]
    autoscalers = (one.raw for one in documents if one.raw["kind"] == AUTOSCALER_KIND)
    read = [one for one in documents if one.raw["kind"] not in _SET_APART]
    cluster = still_cluster(
        read,
        without_preemption(setup.config),
        clock or SystemClock(),
        registry=setup.registry,
        gates=setup.gates,
    )
    pods = (one.raw for one in read if one.raw["kind"] == "Pod")
    return Ground(
        cluster,
        {key_of(raw): names for raw in pods if (names := tuple(_local_volumes(raw)))},
        [one.raw for one in read if one.raw["kind"] == "PodDisruptionBudget"],
        {_owner_key(one.raw): one.raw for one in read if one.raw["kind"] in _OWNER_KINDS},
        dict(map(_measured, metrics)),
        frozenset(map(_autoscaled, autoscalers)),
        placed_count=0,
    )


def _needs_placing(documents: Sequence[Document]) -> bool:
    """Whether something is new, or a pod waits."""
    return any(
        not stands(one.raw)
        or (
            one.raw["kind"] == "Pod"
            and not value_at(one.raw, "spec", "nodeName")
            and value_at(one.raw, "status", "phase") not in _TERMINAL
        )
        for one in documents
    )


async def _placed(documents: Sequence[Document], setup: PlacingSetup) -> list[Document]:
    async with PlacingCluster(documents, setup).running() as placing:
        return placing.documents()


def _is_placed(raw: JsonObject) -> bool:
    return raw["kind"] == "Pod" and bool(value_at(raw, "spec", "nodeName"))


def _local_volumes(pod: JsonObject) -> Iterator[str]:
    """Volumes on the disk of the node. One in memory is lost with the pod in any case."""
    for volume in objects_in(value_at(pod, "spec", "volumes")):
        directory = volume.get("emptyDir")
        is_on_disk = directory is not None and directory.get("medium") != "Memory"
        if is_on_disk or "hostPath" in volume:
            yield volume.get("name", "")


def _owner_key(raw: JsonObject) -> OwnerName:
    namespace = namespace_of(raw)
    return OwnerName(raw["kind"], namespace, value_at(raw, "metadata", "name") or "")


def _autoscaled(raw: JsonObject) -> OwnerName:
    target = as_object(value_at(raw, "spec", "scaleTargetRef"))
    namespace = namespace_of(raw)
    return OwnerName(target.get("kind", ""), namespace, target.get("name", ""))


def _measured(document: Document) -> tuple[PodKey, Resources]:
    """What the containers of a pod use, together; InputError for what is no quantity."""
    used = Resources()
    for number, container in enumerate(objects_in(document.raw.get("containers"))):
        for name, amount in as_object(container.get("usage")).items():
            try:
                used.add_list({name: parse_quantity(amount)})
            except ValueError as error:
                raise InputError(
                    f"{document.source}: containers[{number}].usage.{name} is {quoted(amount)}, "
                    "expected a quantity"
                ) from error
    return key_of(document.raw), used
