"""A cluster from documents that stands still, to explain pods in it.

Objects are created as in a simulation: defaults are filled in, workloads become pods, controllers
make and bind the claims of pods. Then time stops, before any pod is placed.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from kubestow import collector
from kubestow.api.files import Document
from kubestow.api.meta import ApiObject, JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cache.objects import ClusterObjects
from kubestow.clock import Clock
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.profiles import Registry
from kubestow.explain.cluster import StillCluster
from kubestow.plugins.registry import REGISTRY
from kubestow.simulator.embedded import SETTLE_CHECK_S, run_part
from kubestow.simulator.ephemeral_volume_controller import EphemeralVolumeController
from kubestow.simulator.gang_definitions import definitions_for
from kubestow.simulator.resource_claim_controller import ResourceClaimController
from kubestow.simulator.simulation import load_cluster
from kubestow.simulator.still_origins import origins_of
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time
from kubestow.simulator.volume_controller import VolumeController
from kubestow.simulator.workloads import expand_workloads


def still_cluster(
    documents: Sequence[Document | JsonObject],
    config: SchedulerConfig,
    clock: Clock,
    *,
    registry: Registry = REGISTRY,
    gates: FeatureGates = DEFAULT_GATES,
) -> StillCluster:
    """The cluster of the documents; raises InputError with the place of one that cannot be used."""
    with collector.paused():
        sourced = [
            document if isinstance(document, Document) else Document(document, f"document {number}")
            for number, document in enumerate(documents, start=1)
        ]
        expanded = expand_workloads(sourced)
        definitions = definitions_for(config, [document.raw for document in sourced])
        objects = run_in_virtual_time(_settled_objects([*definitions, *expanded], gates))
        # An empty cluster behind the client: nothing is sent to it.
        client = MemoryClient(MemoryCluster(clock))
        cluster = StillCluster(config, client, clock, registry=registry, gates=gates)
        cluster.load(objects)
        cluster.origins = origins_of(objects, sourced, expanded[len(sourced) :])
    return cluster


async def _settled_objects(
    documents: Sequence[Document | JsonObject], gates: FeatureGates
) -> list[ApiObject]:
    store = MemoryCluster(VirtualClock(asyncio.get_running_loop()), gates=gates)
    load_cluster(store, documents)
    controllers = (
        VolumeController(store),
        EphemeralVolumeController(store),
        ResourceClaimController(store),
    )
    tasks = [asyncio.create_task(run_part(controller)) for controller in controllers]
    try:
        # Virtual time advances when nothing is left to do.
        await asyncio.sleep(SETTLE_CHECK_S)
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
    return objects_of(store)


def objects_of(store: MemoryCluster) -> list[ApiObject]:
    """All objects that a scheduler reads, each kind in the order in which it is listed."""
    return [
        stored.typed
        for cls in ClusterObjects().types()
        for stored in store.list(store.resources.of_type(cls)).items
        if isinstance(stored.typed, cls)
    ]
