"""The half of a scheduler that decides: cache, snapshot, plugins and decider, connected once.

    cache ──► snapshot ──► profiles with their plugins ──► decider ──► Decision
                                      ▲                      ▲
                             queue ── activate ── nominations ──

`engine.factory` completes it to a scheduler, with a queue, bindings and watches. Where the caller
chooses which pod is tried next, `NoQueue` takes the place of the queue.
"""

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np

from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.cache.cache import Cache
from kubestow.cache.groups import Groups
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.clock import Clock
from kubestow.cluster.client import ClusterClient
from kubestow.cluster.status_writer import ClientStatusWriter, StatusWriter
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.decide import Decider
from kubestow.engine.decision import Decision
from kubestow.engine.extenders import ExtenderChain
from kubestow.engine.observer import Observer
from kubestow.engine.profiles import Registry, build_profiles
from kubestow.engine.select_host import HostSelector
from kubestow.framework.attempt_timer import AttemptTimer
from kubestow.framework.handle import EventSink, Handle, NoEvents, Nominator
from kubestow.framework.metrics import NO_PLUGIN_METRICS, PluginMetrics
from kubestow.framework.profile import Profile
from kubestow.framework.victims import SharedVictims, VictimClient
from kubestow.framework.waiting import PodInPreBind, WaitingPods
from kubestow.plugins.registry import REGISTRY
from kubestow.queue.nominator import Nominator as QueueNominator

if TYPE_CHECKING:
    from kubestow.usage.view import UsageView


class DecidingQueue(Protocol):
    """What deciding needs of the queue."""

    @property
    def nominator(self) -> Nominator: ...

    def activate(self, pods: Iterable[Pod], /) -> None: ...


Q = TypeVar("Q", bound=DecidingQueue)


class NoQueue:
    """The caller chooses which pod is tried next; `waiting` pods count where they are nominated."""

    def __init__(self, objects: ClusterObjects) -> None:
        # By namespace/name.
        self.waiting: dict[str, PodInfo] = {}
        self.nominator = QueueNominator(find=self.waiting.get, pod_lister=objects.pods.get)

    def activate(self, pods: Iterable[Pod], /) -> None:
        """No effect: every pod can be tried at any time."""


def drop_work(work: Coroutine[Any, Any, None]) -> None:
    """Leave out what plugins do beside the scheduling loop, such as evictions."""
    work.close()


def no_events(profile_name: str) -> EventSink:
    return NoEvents()


@dataclass(kw_only=True, eq=False)
class DecidingHalf(Generic[Q]):
    """Built from what it is connected to; raises ConfigError.

    The queue is made after the plugins, because it needs their hints; `make_queue` gets the
    profiles. `client` is only given to plugins. `events` makes the event sink of a profile, because
    the reporter of an event is the profile. Without `reuses_answers` every plugin is asked for each
    pod.
    """

    config: SchedulerConfig
    objects: ClusterObjects
    clock: Clock
    client: ClusterClient
    make_queue: Callable[[Mapping[str, Profile]], Q]
    registry: Registry = field(default_factory=lambda: REGISTRY)
    gates: FeatureGates = DEFAULT_GATES
    cache: Cache = field(default_factory=Cache)
    snapshot: Snapshot = field(default_factory=Snapshot)
    events: Callable[[str], EventSink] = no_events
    spawn: Callable[[Coroutine[Any, Any, None]], None] = drop_work
    groups: Groups | None = None
    waiting_pods: WaitingPods = field(default_factory=WaitingPods)
    in_pre_bind: dict[str, PodInPreBind] = field(default_factory=dict[str, PodInPreBind])
    status_writer: StatusWriter | None = None
    victims: VictimClient | None = None
    metrics: PluginMetrics = NO_PLUGIN_METRICS
    usage: "UsageView | None" = None
    rng: np.random.Generator | None = None
    extenders: ExtenderChain | None = None
    selector: HostSelector | None = None
    timer: AttemptTimer | None = None
    reuses_answers: bool = True
    observers: Sequence[Observer] = ()

    # Handles and profiles are by scheduler name.
    handles: dict[str, Handle] = field(default_factory=dict[str, Handle], init=False)
    profiles: dict[str, Profile] = field(init=False)
    queue: Q = field(init=False)
    decider: Decider = field(init=False)

    def __post_init__(self) -> None:
        config = self.config
        self.profiles = build_profiles(
            config.profiles, self.registry, self._handle_maker(), self.gates, config.extenders
        )
        self.queue = self.make_queue(self.profiles)
        # Plugins need the nominator, which is the queue's: handles are completed once it exists.
        for handle in self.handles.values():
            handle.nominator = self.queue.nominator
            handle.activate = self.queue.activate
        self.decider = Decider(
            self.snapshot,
            self.queue.nominator,
            percentage_of_nodes_to_score=config.percentage_of_nodes_to_score,
            reuses_answers=self.reuses_answers,
            extenders=self.extenders,
            selector=self.selector,
            timer=self.timer,
            observers=self.observers,
        )

    def decide(self, profile: Profile, pod: PodInfo) -> Decision:
        """What is decided for the pod on the cluster as it is now."""
        self.snapshot.refresh(self.cache)
        return self.decider.decide(profile, pod)

    def _handle_maker(self) -> Callable[[str], Handle]:
        groups, writer, victims = self.groups, self.status_writer, self.victims
        if groups is None:
            groups = Groups(self.objects.pod_groups)
        if writer is None:
            writer = ClientStatusWriter(self.client, self.spawn)
        if victims is None:
            victims = SharedVictims(self.client, self.objects.pods)

        def make_handle(profile_name: str) -> Handle:
            handle = self.handles[profile_name] = Handle(
                profile_name=profile_name,
                snapshot=self.snapshot,
                objects=self.objects,
                clock=self.clock,
                client=self.client,
                events=self.events(profile_name),
                waiting_pods=self.waiting_pods,
                in_pre_bind=self.in_pre_bind,
                groups=groups,
                spawn=self.spawn,
                status_writer=writer,
                victims=victims,
                feature_gates=self.gates,
                parallelism=self.config.parallelism,
                metrics=self.metrics,
                extenders=() if self.extenders is None else self.extenders.extenders,
                usage=self.usage,
                rng=self.rng,
            )
            return handle

        return make_handle
