"""A cluster at one moment, on which pods are tried without effect.

It has the parts of a real scheduler (stores, cache, queue, profiles, decider), which is never
started: nothing is popped, bound, evicted or written. So a decision here is the one that the
scheduler would make, victims of preemption included.

Objects can be changed for a while:

    with cluster.changed(smaller_pod):
        decision = cluster.decide(smaller_pod)

A change costs the rows that it touches. Afterwards everything is as before, also the order of nodes
and of the pods on them, by which ties are broken. `place` is for those that stay.
"""

from collections.abc import Coroutine, Generator, Iterable
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kubestow.api.device import ResourceClaim
from kubestow.api.meta import ApiObject, OwnerReference
from kubestow.api.node import Node
from kubestow.api.pod import Pod, is_assigned, is_terminal
from kubestow.api.pod_info import PodInfo
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.clock import Clock
from kubestow.cluster.client import ClusterClient
from kubestow.cluster.resources import RESOURCE_CLAIM_TEMPLATES
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.editions.choosing import rules_of
from kubestow.engine.deciding import drop_work
from kubestow.engine.decision import CLEAR_NOMINATION, Decision
from kubestow.engine.observer import DecisionListener
from kubestow.engine.placing import as_misfit
from kubestow.engine.profiles import Registry
from kubestow.engine.tasks import BackgroundTasks
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.handle import NoEvents
from kubestow.framework.profile import Profile
from kubestow.framework.runner import run_reserve, run_unreserve
from kubestow.framework.status import Status

if TYPE_CHECKING:  # clusters without measurements do not need it
    from kubestow.usage.view import UsageView

T = TypeVar("T", bound=ApiObject)
# Type, namespace, name.
ObjectKey = tuple[type[ApiObject], str, str]


class StillCluster:
    """All objects that a scheduler reads, as of now.

    Waiting pods are in its queue, because filters count those that are nominated to a node; no
    attempt takes them out.
    """

    def __init__(
        self,
        config: SchedulerConfig,
        client: ClusterClient,
        clock: Clock,
        *,
        registry: Registry | None = None,
        gates: FeatureGates = DEFAULT_GATES,
        usage: "UsageView | None" = None,
    ) -> None:
        """`client` is only given to plugins; nothing is sent with it. Raises ConfigError.

        `usage` is what nodes and pods use as measured, which plugins read.
        """
        # Pods that have ended; a scheduler does not list them.
        self.ended: dict[str, Pod] = {}
        # Objects without a manifest of their own: where they come from, None if from no other.
        self.origins: dict[ObjectKey, Origin | None] = {}
        # The owners of Jobs that have one, by namespace and name of the Job.
        self.job_owners: dict[tuple[str, str], OwnerReference] = {}
        # When Jobs with a deadline end at the latest.
        self.job_ends: dict[tuple[str, str], datetime] = {}
        # UIDs of waiting pods that are counted on a node for a while; they cannot be deleted there.
        self.placed_for_now: set[str] = set()
        # Called with the decision on each member of a group that is tried.
        self.listeners: list[DecisionListener] = []
        # The row at which searches begin, unless another is given.
        self.start_index = 0
        rules = rules_of(gates.edition)
        # Plugins that wait for new nodes wait for changes of taints, too.
        self.adds_taint_events = rules.factory.adds_taint_events
        self.scheduler = rules.factory(
            config=config,
            client=client,
            objects=ClusterObjects(),
            events=lambda _: NoEvents(),
            clock=clock,
            registry=rules.registry if registry is None else registry,
            # A pod that evicts others is marked until they are gone, which never happens here.
            gates=gates.without("SchedulerAsyncPreemption"),
            extenders_in_thread=False,
            tasks=_NoTasks(clock),
            listeners=self.listeners,
            usage=usage,
        ).build()
        self.config = config
        self.gates = gates
        self.clock = clock

    # --- reading ---

    @property
    def objects(self) -> ClusterObjects:
        return self.scheduler.objects

    @property
    def snapshot(self) -> Snapshot:
        """The nodes as of the last decision."""
        return self.scheduler.snapshot

    def profile_of(self, pod: Pod) -> Profile | None:
        """The profile that places the pod; None if another scheduler does."""
        return self.scheduler.profiles.get(pod.spec.scheduler_name)

    # --- deciding ---

    def refresh(self) -> Snapshot:
        """The nodes with all changes so far."""
        self.scheduler.snapshot.refresh(self.scheduler.cache)
        return self.scheduler.snapshot

    def decide(self, pod: Pod, *, start_index: int | None = None) -> Decision:
        """What the scheduler decides for a waiting pod of a known profile.

        The pod is in the cluster as given. The decision is valid until the next change or decision;
        `freeze` it to keep it. `start_index` is the node at which the search begins.
        """
        profile = self.profile_of(pod)
        assert profile is not None, pod.spec.scheduler_name
        assert not is_assigned(pod), pod.metadata.name
        self.refresh()
        decider = self.scheduler.decider
        decider.next_start_index = self.start_index if start_index is None else start_index
        return decider.decide(profile, self.scheduler.cache.info_of(pod))

    def forget_batches(self) -> None:
        """Before a group: its members follow each other, and no pod that was decided on before."""
        if self.scheduler.batches is not None:
            self.scheduler.batches.forget()

    def place(self, pod: Pod) -> Decision:
        """Decide for a pod, and count it on the node that is found from then on.

        Reserve of the plugins runs, and if it fails Unreserve, which leaves the cluster as it was.
        Permit and binding are left out. The pod need not be in the cluster before.
        """
        decision = self.decide(pod)
        if not decision.is_scheduled:
            return decision
        before = self._before(pod)
        refusal = self.assume(decision, decision.node_name).refusal
        if refusal is not None:
            self._put_back(before)
            status = as_misfit(decision.node_name, refusal)
            decision.node_name = ""
            decision.fail(status, CLEAR_NOMINATION)
        return decision

    def assume(self, decision: Decision, node_name: str) -> "Assumption":
        """Count the pod on a node that fits, as a scheduler does that has chosen it.

        Reserve of the plugins runs; if it fails Unreserve, and the pod counts nevertheless.
        """
        profile, state = self.profile_of(decision.pod.pod), decision.state
        assert profile is not None, decision.profile_name
        placed = decision.pod.assigned_to(node_name)
        # As the scheduler does it: plugins reserve for a pod that is on its node already.
        self._put_pod(placed)
        refusal = run_reserve(profile, state, placed, node_name)
        assumption = Assumption(profile, state, placed, node_name, refusal)
        if refusal is not None:
            assumption.give_back()
        return assumption

    # --- changes ---

    def load(self, objects: Iterable[ApiObject]) -> None:
        """Add objects, those of one kind in the order in which an API server lists them."""
        for api_object in objects:
            self.put(api_object)

    def put(self, new: ApiObject) -> None:
        """Add an object, or replace the one of that name."""
        match new:
            case Pod():
                self._put_pod(self.scheduler.cache.info_of(new))
            case Node():
                old = self.objects.nodes.put(new)
                cache = self.scheduler.cache
                _ = cache.add_node(new) if old is None else cache.update_node(old, new)
            case ResourceClaim():
                # The index of claims takes a version only if it is newer, or after a removal.
                self.objects.resource_claims.remove(new.metadata.namespace, new.metadata.name)
                self.objects.put(new)
            case _:
                self.objects.put(new)

    def remove(self, old: ApiObject) -> None:
        """Remove the object of this name; no effect if there is none."""
        stored = self.find(old)
        if stored is None:
            return
        store, metadata = self.objects.store(type(stored)), stored.metadata
        store.remove(metadata.namespace, metadata.name)
        match stored:
            case Pod():
                self._forget_pod(stored)
            case Node():
                self.scheduler.cache.remove_node(stored)
            case _:
                pass

    def find(self, like: T) -> T | None:
        """The object of this kind and name, as the cluster has it."""
        metadata = like.metadata
        return self.objects.store(type(like)).get(metadata.namespace, metadata.name)

    @contextmanager
    def changed(
        self, *new: ApiObject, removed: Iterable[ApiObject] = ()
    ) -> Generator[None, None, None]:
        """Inside, the cluster has these objects, and not those removed; contexts may be nested."""
        cache = self.scheduler.cache
        entries: dict[str, NodeInfo] = {}
        outer, tree = cache.before_change, cache.node_tree

        def keep(info: NodeInfo) -> None:
            if info.name not in entries:
                entries[info.name] = info.clone()
            if outer is not None:
                outer(info)

        gone = tuple(removed)
        touched = [*gone, *new]
        before = [self._before(each) for each in touched]
        if any(isinstance(each, Node) for each in touched):
            cache.node_tree = tree.copy()
        cache.before_change = keep
        try:
            for each in gone:
                self.remove(each)
            for each in new:
                self.put(each)
            yield
        finally:
            for each in reversed(before):
                self._put_back(each)
            cache.before_change = outer
            cache.node_tree = tree
            self._restore_order(entries)
            # The snapshot must not go on showing what was only tried.
            self.refresh()

    def _before(self, like: ApiObject) -> "_Before":
        stored = self.find(like)
        pod_info = None
        if isinstance(stored, Pod) and is_assigned(stored):
            pod_info = self.scheduler.cache.pod(stored)
        return _Before(like, stored, pod_info)

    def _put_back(self, before: "_Before") -> None:
        if before.stored is None:
            self.remove(before.like)
        elif before.pod_info is not None:
            self._put_pod(before.pod_info)
        else:
            self.put(before.stored)

    def _restore_order(self, entries: dict[str, NodeInfo]) -> None:
        nodes = self.scheduler.cache.nodes
        for name, copy in entries.items():
            if name in nodes:
                nodes[name].reorder_as(copy)

    # --- pods ---

    def _put_pod(self, info: PodInfo) -> None:
        new = info.pod
        old = self.objects.pods.get(new.metadata.namespace, new.metadata.name)
        if is_terminal(new):
            self.ended[info.key] = new
            if old is not None:
                self.remove(old)
            return
        self.objects.pods.put(new)
        groups = self.scheduler.cache.groups
        if old is not None and not is_assigned(old) and not is_assigned(new):
            self.scheduler.queue.delete(old)
            if groups is not None:
                groups.update(old, new)
            self._enqueue(new)
            return
        if old is not None:
            self._forget_pod(old)
        if is_assigned(new):
            self.scheduler.cache.add_pod(info)
            return
        if groups is not None:
            groups.add(new)
        self._enqueue(new)

    def _enqueue(self, pod: Pod) -> None:
        if self.profile_of(pod) is not None:
            self.scheduler.queue.add(pod)

    def _forget_pod(self, pod: Pod) -> None:
        cache = self.scheduler.cache
        if is_assigned(pod):
            cache.remove_pod(pod)
            return
        self.scheduler.queue.delete(pod)
        if cache.groups is not None:
            cache.groups.remove(pod)


class Assumption(NamedTuple):
    """What plugins have reserved for a pod; `refusal` is the answer of one that could not."""

    profile: Profile
    state: CycleState
    placed: PodInfo
    node_name: str
    refusal: Status | None

    def give_back(self) -> None:
        run_unreserve(self.profile, self.state, self.placed, self.node_name)

    def take_again(self) -> None:
        """After it was given back, and everything else is as it was."""
        run_reserve(self.profile, self.state, self.placed, self.node_name)


class Origin(NamedTuple):
    """The manifest whose template an object was made from; `path` is where the template is."""

    api_version: str
    kind: str
    namespace: str
    name: str
    path: str


def claim_template(namespace: str, name: str) -> Origin:
    resource = RESOURCE_CLAIM_TEMPLATES
    return Origin(resource.api_version, resource.kind, namespace, name, "/spec")


def key_of(api_object: ApiObject) -> ObjectKey:
    return type(api_object), api_object.metadata.namespace, api_object.metadata.name


class _Before(NamedTuple):
    """An object as it was before a change; None if there was none of its name."""

    like: ApiObject
    stored: ApiObject | None
    pod_info: PodInfo | None  # the cache's record of a pod that is on a node


class _NoTasks(BackgroundTasks):
    """Work beside the scheduling loop, such as evictions, is left out."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        drop_work(work)
