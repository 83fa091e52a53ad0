"""What an event makes stale in the equivalence cache (spec 04 §19.1, 07 §7.1).

Verdicts are dropped by what each predicate declares to read, so that decisions are the same with
and without the cache. The table of v1.9.11 listed names of predicates and missed cases: a new pod
did not drop MatchInterPodAffinity, and taints were compared in an annotation.
"""

from collections.abc import Iterable
from typing import NamedTuple

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.editions.v1_9.plugins.contract import Reads


class Drop(NamedTuple):
    """Verdicts to drop: of the predicates that read any of this; on one node, or on all."""

    reads: Reads = Reads.NOTHING_ELSE
    is_any_predicate: bool = False
    node_name: str | None = None

    def concerns(self, reads: Reads) -> bool:
        return self.is_any_predicate or bool(reads & self.reads)


VOLUME_CHANGED = (Drop(reads=Reads.VOLUMES),)
SERVICE_CHANGED = (Drop(reads=Reads.SERVICES),)


def pod_changed(old: Pod | None, new: Pod | None) -> Iterable[Drop]:
    """A pod with a node; `old` or `new` None: it was added or deleted."""
    yield Drop(reads=Reads.CLUSTER)
    for pod in (old, new):
        if pod is not None:
            yield Drop(reads=Reads.PODS, node_name=pod.spec.node_name)


def node_changed(old: Node | None, new: Node | None) -> Iterable[Drop]:
    yield Drop(reads=Reads.CLUSTER)
    node = new if new is not None else old
    assert node is not None
    yield Drop(is_any_predicate=True, node_name=node.metadata.name)
