"""Snapshots for tests, made the way the scheduler makes them: through a cache."""

from collections.abc import Iterable

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.cache.cache import Cache
from kubestow.cache.snapshot import Snapshot


def make_cache(nodes: Iterable[Node] = (), pods: Iterable[Pod] = ()) -> Cache:
    """A cache with these nodes, then these pods, which must have a node name."""
    cache = Cache()
    for node in nodes:
        cache.add_node(node)
    for pod in pods:
        assert pod.spec.node_name, f"pod {pod.metadata.name!r} has no node name"
        cache.add_pod(PodInfo(pod))
    return cache


def make_snapshot(nodes: Iterable[Node] = (), pods: Iterable[Pod] = ()) -> Snapshot:
    """The snapshot of these nodes and pods that a scheduling cycle would decide on.

    Rows are in visiting order: the order given, unless zones make it alternate.
    """
    snapshot = Snapshot()
    snapshot.refresh(make_cache(nodes, pods))
    return snapshot
