"""A cluster in virtual time in which pods come and go, each time until it is at rest.

Equal pods without claims need no API server to be placed: the decision is the scheduler's own, and
its cache counts the pod (`place`). All others are created as a user would create them (`add`), so
that controllers and bindings do their work.
"""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final, NamedTuple

import msgspec

from kubestow.api.files import Document
from kubestow.api.node import Node
from kubestow.api.pod import Pod, is_terminal
from kubestow.api.pod_info import PodInfo
from kubestow.api.volume_claims import is_fully_bound
from kubestow.apiserver.memory import LOADED_FIRST, MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.snapshot import Snapshot
from kubestow.cluster.resources import PODS
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.profile import PluginRef, PluginSet
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.decision import Decision
from kubestow.engine.frozen_decision import FrozenDecision
from kubestow.engine.profiles import Registry
from kubestow.errors import ApiError, ConflictError, InputError, PluginError
from kubestow.framework.profile import plugin_name
from kubestow.plugins.registry import REGISTRY
from kubestow.simulator.defaults import LIMIT_S
from kubestow.simulator.input.pods import PodKey
from kubestow.simulator.loading import pods_of
from kubestow.simulator.scenario.run import Simulation
from kubestow.simulator.scenario.stages import placing
from kubestow.simulator.store_documents import documents_of

NODE_RESOURCES_FIT: Final = "NodeResourcesFit"


class PlacingSetup(NamedTuple):
    """The scheduler that places."""

    config: SchedulerConfig = SchedulerConfig()
    registry: Registry = REGISTRY
    gates: FeatureGates = DEFAULT_GATES


class PlacingCluster:
    """Build it inside a virtual-time loop, then use it as `async with cluster.running()`."""

    def __init__(self, documents: Sequence[Document], setup: PlacingSetup) -> None:
        """InputError names the document that cannot be created."""
        config = without_preemption(setup.config)
        self._run = Simulation(
            placing(documents), config, setup.registry, setup.gates, on_decision=self._note
        )
        self._cluster = self._run.cluster
        self._scheduler = self._cluster.scheduler
        # Pods that are tried, and the last attempt of each that found no node.
        self._tried: set[PodKey] = set()
        self._failures: dict[PodKey, FrozenDecision] = {}
        self._error = ""  # of a plugin or an extender

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["PlacingCluster", None]:
        """Place what waits in the input; on leaving, stop."""
        async with self._run.running():
            await self._settle()
            yield self

    @property
    def store(self) -> MemoryCluster:
        return self._cluster.store

    def snapshot(self) -> Snapshot:
        """The nodes as they are now."""
        return self._cluster.refreshed()

    def waiting(self) -> list[Pod]:
        """Pods that this scheduler could not place; those with scheduling gates are not among
        them."""
        return [
            pod
            for pod in pods_of(self.store)
            if not pod.spec.node_name
            and not is_terminal(pod)
            and not pod.spec.scheduling_gates
            and pod.spec.scheduler_name in self._scheduler.profiles
        ]

    def admitted(self, document: Document) -> Pod:
        """The pod as the API server would store it; InputError if it would not be placed here."""
        with self.store.dry_run():
            pod = self._load(document).typed
        assert isinstance(pod, Pod)
        if pod.spec.scheduling_gates:
            raise InputError(f"{document.source}: the pod has scheduling gates, so it waits")
        if pod.spec.scheduler_name not in self._scheduler.profiles:
            raise InputError(
                f'{document.source}: no profile for scheduler "{pod.spec.scheduler_name}"; give '
                "one with --config"
            )
        return pod

    # --- through the API ---

    async def add(self, documents: Iterable[Document]) -> list[PodKey]:
        """Create the objects and wait until nothing is left to do; the pods among them."""
        pods = [
            PodKey.of(stored.typed)
            for document in documents
            if isinstance((stored := self._load(document)).typed, Pod)
        ]
        self._tried, self._failures = set(pods), {}
        await self._settle()
        return pods

    def node_of(self, pod: PodKey) -> str:
        """The node that the pod is on; empty if it waits."""
        return _typed_pod(self.store.get(PODS, *pod).typed).spec.node_name

    def message_of(self, pod: PodKey) -> str:
        """Why the pod waits."""
        conditions = _typed_pod(self.store.get(PODS, *pod).typed).status.conditions
        return next((each.message for each in conditions if each.type == "PodScheduled"), "")

    def documents(self) -> list[Document]:
        """Everything that a scheduler reads, as it is now; pods placed without the API are not
        among it."""
        return documents_of(self.store)

    def failure_of(self, pod: PodKey) -> FrozenDecision | None:
        """The last attempt that found no node for the pod; only of pods tried last."""
        return self._failures.get(pod)

    def failure_text(self, pod: PodKey) -> str:
        """Why it found none."""
        failure = self._failures.get(pod)
        return "" if failure is None or failure.status is None else failure.status.message

    def create_missing(self, documents: Iterable[Document]) -> None:
        """Create objects, except those of which the cluster has one of that name."""
        for document in sorted(documents, key=lambda one: one.raw["kind"] not in LOADED_FIRST):
            with suppress(ConflictError):
                self.store.load([document.raw])

    def _load(self, document: Document) -> StoredObject:
        try:
            return self.store.load([document.raw])[0]
        except ApiError as error:
            raise InputError(f"{document.source}: {error}") from error

    async def _settle(self) -> None:
        await self._cluster.settle(limit_s=LIMIT_S)
        if self._error:
            raise PluginError(self._error)

    def _note(self, decision: Decision) -> None:
        status = decision.status
        if status is None:
            return
        if not status.is_rejected:
            self._error = f'pod "{decision.pod.key}": {decision.message}'
        elif (name := PodKey.of(decision.pod.pod)) in self._tried:
            self._failures[name] = decision.freeze()

    # --- without the API ---

    def can_place(self, pod: Pod) -> bool:
        """Whether a decision and the cache are all it takes to place such a pod.

        Built-in plugins act after the decision only for claims and groups; others may for any pod.
        """
        profile = self._scheduler.profiles[pod.spec.scheduler_name]
        acting = (profile.reserve, profile.permit, profile.pre_bind, profile.post_bind)
        return (
            self._scheduler.extenders is None
            and all(plugin_name(plugin) in REGISTRY for plugins in acting for plugin in plugins)
            and pod.spec.scheduling_group is None
            and not pod.spec.resource_claims
            and self._are_volumes_bound(pod)
            # Extended resources may be devices, which are claimed for the pod.
            and not self._scheduler.objects.device_classes.list()
        )

    def _are_volumes_bound(self, pod: Pod) -> bool:
        claims = self._scheduler.objects.persistent_volume_claims
        for volume in pod.spec.volumes:
            if volume.ephemeral is not None:
                return False
            if (source := volume.persistent_volume_claim) is not None:
                claim = claims.get(pod.metadata.namespace, source.claim_name)
                if claim is None or not is_fully_bound(claim):
                    return False
        return True

    def place(self, pod: Pod) -> Pod | None:
        """Decide on a pod, and count it on its node; None if no node fits."""
        scheduler = self._scheduler
        info = PodInfo(pod)
        scheduler.snapshot.refresh(scheduler.cache)
        decision = scheduler.decider.decide(scheduler.profiles[pod.spec.scheduler_name], info)
        if not decision.is_scheduled:
            self._tried, self._failures = {PodKey.of(pod)}, {}
            self._note(decision)
            if self._error:
                raise PluginError(self._error)
            return None
        placed = info.assigned_to(decision.node_name)
        scheduler.cache.add_pod(placed)
        return placed.pod

    def take_off(self, pods: Iterable[Pod]) -> None:
        """Take pods that were placed off their nodes again."""
        for pod in pods:
            self._scheduler.cache.remove_pod(pod)

    # --- nodes without the API ---

    def node_info(self, name: str) -> NodeInfo:
        return self._scheduler.cache.node(name)

    def take_away(self, name: str) -> tuple[Node, list[PodInfo]]:
        """Take a node away, with all pods on it; what `put_back` needs."""
        cache = self._scheduler.cache
        info = cache.node(name)
        node, pods = info.node, list(info.pods)
        assert node is not None, name
        for each in pods:
            cache.remove_pod(each.pod)
        self._scheduler.objects.nodes.remove(name)
        cache.remove_node(node)
        return node, pods

    def put_back(self, node: Node, pods: Iterable[PodInfo]) -> None:
        """Undo `take_away`; the node is now the last one of its zone."""
        cache = self._scheduler.cache
        self._scheduler.objects.nodes.put(node)
        cache.add_node(node)
        for each in pods:
            cache.add_pod(each)

    @property
    def counts_resources(self) -> bool:
        """Whether no node takes more than it has; bounds hold only then."""
        return all(
            any(plugin_name(plugin) == NODE_RESOURCES_FIT for plugin in profile.filter)
            for profile in self._scheduler.profiles.values()
        )


def without_preemption(config: SchedulerConfig) -> SchedulerConfig:
    """The configuration in which no pod is evicted for another."""
    nothing = PluginSet(disabled=(PluginRef("*"),))
    profiles = (
        msgspec.structs.replace(
            profile, plugins=msgspec.structs.replace(profile.plugins, post_filter=nothing)
        )
        for profile in config.profiles
    )
    return msgspec.structs.replace(config, profiles=tuple(profiles))


def renamed(pod: Pod, name: str) -> Pod:
    """A copy of a pod under another name."""
    metadata = pod.metadata
    own = msgspec.structs.replace(metadata, name=name, uid=f"{metadata.uid}-{name}")
    return msgspec.structs.replace(pod, metadata=own)


def _typed_pod(typed: object) -> Pod:
    assert isinstance(typed, Pod)
    return typed
