"""What evidence is read from: the pod, the snapshot of its attempt, and the objects.

A node is looked at as its filters saw it: with the pods that are nominated to it and go first, if
there are any. What needs all nodes is computed once for the pod, at its first use.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from kubestow.api.node import Node
from kubestow.api.pod_info import AffinityTerm, PodClass, PodInfo
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.framework.plugin import Plugin
from kubestow.framework.profile import Profile
from kubestow.framework.runner import nominated_ahead

T = TypeVar("T")
P = TypeVar("P", bound=Plugin)

# The pods nominated to a node, by its name.
Nominated = Callable[[str], Sequence[PodInfo]]


def none_nominated(_: str) -> Sequence[PodInfo]:
    return ()


class EvidenceContext:
    """One pod on one snapshot; valid until the snapshot changes."""

    def __init__(
        self,
        pod: PodInfo,
        profile: Profile,
        snapshot: Snapshot,
        objects: ClusterObjects,
        *,
        gates: FeatureGates = DEFAULT_GATES,
        nominated: Nominated = none_nominated,
    ) -> None:
        self.pod = pod
        self.profile = profile
        self.snapshot = snapshot
        self.objects = objects
        self.gates = gates
        self._nominated = nominated
        self._made: dict[Hashable, object] = {}

    @property
    def compares_taints(self) -> bool:
        return self.gates.enabled("TaintTolerationComparisonOperators")

    def plugin(self, cls: type[P]) -> P | None:
        """The plugin of the profile; None if it has none of this type."""
        found = self.profile.plugins.get(cls.name)
        return found if isinstance(found, cls) else None

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` returns, made once for this context."""
        if key not in self._made:
            self._made[key] = make()
        found: T = self._made[key]  # pyright: ignore[reportAssignmentType]  # one type for each key
        return found

    def ahead_on(self, name: str) -> tuple[PodInfo, ...]:
        """The pods nominated to a node that count for this pod's filters."""
        return tuple(nominated_ahead(self.pod, self._nominated(name)))

    def views(self, row: int) -> "list[NodeView]":
        """The node as filters look at it: with nominated pods first, then without them."""
        ahead = self.ahead_on(self.snapshot.names[row])
        bare = NodeView(self, row, ())
        return [NodeView(self, row, ahead), bare] if ahead else [bare]

    def selects(self, term: AffinityTerm, pod_class: PodClass) -> bool:
        """Whether a term selects pods of a class."""
        namespace = self.objects.namespaces.get(pod_class.namespace)
        labels = {} if namespace is None else namespace.metadata.labels
        return term.matches(pod_class.namespace, pod_class.labels, labels)


class NodeView:
    """One node, with the pods on it and `ahead`, those that are nominated and counted."""

    def __init__(self, context: EvidenceContext, row: int, ahead: tuple[PodInfo, ...]) -> None:
        self.context = context
        self.row = row
        self.ahead = ahead
        self.name: str = context.snapshot.names[row]
        self.node: Node = context.snapshot.nodes[row]
        info = context.snapshot.node_infos[row]
        if ahead:
            info = info.simulated()
            for pod in ahead:
                info.add_pod(pod)
        self.info: NodeInfo = info

    @property
    def pod(self) -> PodInfo:
        return self.context.pod
