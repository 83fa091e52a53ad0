"""A cluster from documents that stands still, to explain pods in it.

Objects are created as in a simulation (`loading`): what was read from a server is there as it was,
new workloads become pods, controllers make and bind the claims of new pods. Then time stops, before
any pod is placed.
"""

import asyncio
from collections.abc import Sequence

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
from kubestow.explain.jobs import jobs_in, note_jobs
from kubestow.simulator.gang_definitions import definitions_for
from kubestow.simulator.loading import load_cluster, make, settle_new
from kubestow.simulator.still_origins import origins_of
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time


def still_cluster(
    documents: Sequence[Document | JsonObject],
    config: SchedulerConfig,
    clock: Clock,
    *,
    registry: Registry | None = None,
    gates: FeatureGates = DEFAULT_GATES,
) -> StillCluster:
    """The cluster of the documents; raises InputError with the place of one that cannot be used."""
    with collector.paused():
        sourced = [
            document if isinstance(document, Document) else Document(document, f"document {number}")
            for number, document in enumerate(documents, start=1)
        ]
        definitions = definitions_for(config, [document.raw for document in sourced])
        objects, made = run_in_virtual_time(_settled_objects([*definitions, *sourced], gates))
        # An empty cluster behind the client: nothing is sent to it.
        client = MemoryClient(MemoryCluster(clock))
        cluster = StillCluster(config, client, clock, registry=registry, gates=gates)
        cluster.load(objects)
        cluster.origins = origins_of(objects, sourced, made)
        note_jobs(cluster, jobs_in(document.raw for document in sourced))
    return cluster


async def _settled_objects(
    documents: Sequence[Document | JsonObject], gates: FeatureGates
) -> tuple[list[ApiObject], list[Document]]:
    """The objects, and what was made of workloads."""
    store = MemoryCluster(
        VirtualClock(asyncio.get_running_loop()), gates=gates, lists_as_created=True
    )
    loaded = load_cluster(store, documents)
    # Pods that wait have no effect on others: they are there to be explained.
    make(store, loaded.to_make)
    await settle_new(store, loaded._replace(has_new=loaded.has_new or bool(loaded.to_make)))
    return objects_of(store), [each.document for each in loaded.made]


def objects_of(store: MemoryCluster) -> list[ApiObject]:
    """All objects that a scheduler reads, each kind in the order in which it is listed."""
    return [
        stored.typed
        for cls in ClusterObjects().types()
        if store.resources.has_type(cls)
        for stored in store.list(store.resources.of_type(cls)).items
        if isinstance(stored.typed, cls)
    ]
