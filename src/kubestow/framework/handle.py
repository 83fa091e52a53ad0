"""What a plugin may use: the objects of the cluster, the clock, the client (spec 04 §2.7)."""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from kubestow.api.meta import ApiObject
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.cache.groups import Groups
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.clock import Clock
from kubestow.cluster.client import ClusterClient
from kubestow.cluster.status_writer import ClientStatusWriter, StatusWriter
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.framework.extender import PreemptExtender
from kubestow.framework.metrics import NO_PLUGIN_METRICS, PluginMetrics
from kubestow.framework.profile import Profile
from kubestow.framework.victims import SharedVictims, VictimClient
from kubestow.framework.waiting import PodInPreBind, WaitingPods

if TYPE_CHECKING:  # Loaded by what measures, and by the plugin that reads it.
    from kubestow.usage.view import UsageView


class Nominator(Protocol):
    """Which pods are nominated to which node, though they do not run there yet."""

    def nominated_nodes(self) -> Sequence[str]:
        """The nodes that have nominated pods."""
        ...

    def nominated_pods_for_node(self, node_name: str) -> Sequence[PodInfo]:
        """The pods nominated to the node, in order of nomination."""
        ...

    def add(self, pod: Pod, *, override: str | None = None) -> None: ...

    def delete(self, pod: Pod) -> None: ...


class EventSink(Protocol):
    """Writes events about pods; never delays the caller."""

    def record(
        self,
        regarding: Pod,
        *,
        type: str,
        reason: str,
        action: str,
        note: str,
        related: ApiObject | None = None,
    ) -> None: ...


class NoEvents:
    """An event sink that records nothing."""

    def record(self, regarding: Pod, **details: Any) -> None: ...


@dataclass(kw_only=True)
class Handle:
    """Given to every plugin when it is made.

    `snapshot` is valid during a scheduling cycle only. `objects` are the informers' stores, which
    are up to date outside a cycle, too.
    """

    profile_name: str
    snapshot: Snapshot
    objects: ClusterObjects
    clock: Clock
    client: ClusterClient
    events: EventSink
    # Groups of pods; without members where the gate GenericWorkload is off.
    groups: Groups = field(default=cast(Groups, None))
    # Runs something beside the scheduling loop.
    spawn: Callable[[Coroutine[Any, Any, None]], None]
    # Two kinds of writes that are in order, or made once, only if all plugins make them here.
    status_writer: StatusWriter = field(default=cast(StatusWriter, None))
    victims: VictimClient = field(default=cast(VictimClient, None))
    # The plugin's profile, for plugins that simulate the others; set once all its plugins exist.
    profile: Profile = field(init=False)
    # These two belong to the queue, which is made after the plugins.
    nominator: Nominator = field(init=False)
    activate: Callable[[Iterable[Pod]], None] = field(init=False)
    waiting_pods: WaitingPods = field(default_factory=WaitingPods)
    in_pre_bind: dict[str, PodInPreBind] = field(default_factory=dict[str, PodInPreBind])
    feature_gates: FeatureGates = DEFAULT_GATES
    extenders: Sequence[PreemptExtender] = ()
    metrics: PluginMetrics = NO_PLUGIN_METRICS
    # How many requests of one eviction are made at a time, as `parallelism` of the configuration.
    parallelism: int = 16
    # What nodes and pods use, as measured; None without a source.
    usage: "UsageView | None" = None
    # Awaited before a binding that failed is written again; None: it may always be.
    may_bind: Callable[[], Awaitable[None]] | None = None
    # For what upstream does at random; None takes the first of several.
    rng: np.random.Generator | None = None

    def __post_init__(self) -> None:
        if cast(Groups | None, self.groups) is None:
            self.groups = Groups(self.objects.pod_groups)
        if cast(StatusWriter | None, self.status_writer) is None:
            self.status_writer = ClientStatusWriter(self.client, self.spawn)
        if cast(VictimClient | None, self.victims) is None:
            self.victims = SharedVictims(self.client, self.objects.pods)
