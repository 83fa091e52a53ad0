"""How much a cluster has left after all steps, by node pool, and which nodes are missing."""

from collections import Counter
from typing import Final

from kubestow.api.meta import JsonObject
from kubestow.cluster.documents import as_object, value_at
from kubestow.cluster.resources import NODES
from kubestow.simulator.capacity.headroom import headroom
from kubestow.simulator.capacity.need import need
from kubestow.simulator.capacity.placing import PlacingSetup
from kubestow.simulator.capacity.shapes import PricedShape
from kubestow.simulator.input.nodes import node_copy
from kubestow.simulator.placement_tests.results import ClusterRoom, PoolState
from kubestow.simulator.placement_tests.state import PlacedCluster

# More copies are not counted: a pool with so much room is not short of it.
COPIES_COUNTED: Final = 10_000
# Sets of nodes that are tried for pods that wait.
SETS_TRIED: Final = 20


def room_of(cluster: PlacedCluster) -> ClusterRoom | None:
    """The room of every pool; None for a scheduler that cannot be asked."""
    scheduler = cluster.scheduler
    if not scheduler.is_modern:
        return None
    setup = PlacingSetup(scheduler.config, scheduler.registry, scheduler.gates)
    documents = cluster.documents()
    found = headroom(documents, setup=setup, copies_max=COPIES_COUNTED)
    used: Counter[str] = Counter()
    with_pods = {pod.spec.node_name for pod in cluster.all_pods() if pod.spec.node_name}
    for stored in cluster.store.objects_of(NODES):
        pool = as_object(stored.metadata.get("labels")).get(found.label, "") if found.label else ""
        used[pool] += stored.name in with_pods
    pools = tuple(
        PoolState(pool=pool.name, nodes=pool.nodes, used=used[pool.name], copies=pool.copies)
        for pool in found.pools
    )
    if not cluster.history.waiting:
        return ClusterRoom(pools=pools)
    needed = need(documents, _shapes(cluster), setup, tries_max=SETS_TRIED)
    return ClusterRoom(pools=pools, needed=None if needed.waiting else needed.node_count)


def _shapes(cluster: PlacedCluster) -> list[PricedShape]:
    """One for each kind of node that the cluster has."""
    shapes: dict[str, PricedShape] = {}
    for stored in sorted(cluster.store.objects_of(NODES), key=lambda stored: stored.name):
        key = repr(
            (value_at(stored.document, "status", "allocatable"), _kept_labels(stored.document))
        )
        if key not in shapes:
            name = f"{stored.name}-more"
            shapes[key] = PricedShape(
                name, None, lambda name, _, raw=stored.document: node_copy(raw, name)
            )
    return list(shapes.values())


def _kept_labels(node: JsonObject) -> list[tuple[str, str]]:
    """The labels but that of the name, which every node has for itself."""
    labels = as_object(value_at(node, "metadata", "labels"))
    name = value_at(node, "metadata", "name")
    return sorted((key, value) for key, value in labels.items() if value != name)
