"""A scheduler with plugins from functions and a server in memory."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import pytest

from kubestow.api.meta import Condition
from kubestow.api.node import Node
from kubestow.api.pod import Pod, assign
from kubestow.cache.objects import ClusterObjects
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.profile import PluginRef, Plugins, PluginSet, ProfileConfig
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.decision import Decision
from kubestow.engine.factory import SchedulerFactory
from kubestow.engine.observer import Observer
from kubestow.engine.scheduler import PodAttempt
from kubestow.errors import ApiError
from kubestow.framework.plugin import BindPlugin, Plugin, QueueSortPlugin
from kubestow.framework.status import Status
from kubestow.queue import Place
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time
from kubestow.testing.handles import RecordedEvents
from kubestow.testing.profiles import make_plugin

PROFILE = "default-scheduler"


class Patch(NamedTuple):
    pod: str
    condition: Condition | None
    nominated_node_name: str | None


class FakeServer:
    """The two requests the engine makes itself, recorded."""

    def __init__(self) -> None:
        self.patches: list[Patch] = []
        self.bound: dict[str, str] = {}
        self.refusal: ApiError | None = None
        # Cleared: patches wait until it is set again.
        self.patching = asyncio.Event()
        self.patching.set()

    async def patch_pod_status(
        self,
        pod: Pod,
        *,
        condition: Condition | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        await asyncio.sleep(0)
        await self.patching.wait()
        if self.refusal is not None:
            raise self.refusal
        self.patches.append(Patch(pod.metadata.name, condition, nominated_node_name))

    async def bind(self, pod: Pod, node_name: str) -> None:
        await asyncio.sleep(0)
        if self.refusal is not None:
            raise self.refusal
        self.bound[pod.metadata.name] = node_name


class World:
    """Made inside a running loop; the clock is the loop's."""

    def __init__(
        self,
        *plugins: Plugin,
        nodes: Iterable[Node] = (),
        gates: FeatureGates | None = None,
        profile_names: Iterable[str] = (PROFILE,),
        factory: type[SchedulerFactory] = SchedulerFactory,
        observers: Sequence[Observer] = (),
    ) -> None:
        self.clock = VirtualClock(asyncio.get_running_loop())
        self.server = FakeServer()
        self.objects = ClusterObjects()
        self.events = RecordedEvents()
        self.decisions: list[Decision] = []
        chosen = [*plugins, *self._basics(plugins)]
        self.scheduler = factory(
            config=SchedulerConfig(profiles=tuple(_config(name, chosen) for name in profile_names)),
            client=self.server,  # type: ignore[arg-type]
            objects=self.objects,
            events=lambda _: self.events,
            clock=self.clock,
            registry={plugin.name: _PluginClass(plugin) for plugin in chosen},
            gates=gates or FeatureGates(),
            listeners=[lambda decision, _: self.decisions.append(decision)],
            observers=observers,
        ).build()
        self.queue, self.cache = self.scheduler.queue, self.scheduler.cache
        for node in nodes:
            self.scheduler.handlers.node_added(node)

    def _basics(self, plugins: Iterable[Plugin]) -> list[Plugin]:
        """QueueSort and Bind where no plugin has them, and events that move all pods."""

        async def bind(state: Any, pod: Any, node_name: str) -> Status | None:
            await self.server.bind(pod.pod, node_name)
            return None

        basics: list[Plugin] = []
        if not any(isinstance(plugin, QueueSortPlugin) for plugin in plugins):
            basics.append(make_plugin("Sort", less=lambda a, b: a.timestamp_ns < b.timestamp_ns))
        if not any(isinstance(plugin, BindPlugin) for plugin in plugins):
            basics.append(make_plugin("Binder", bind=bind))
        return basics

    # --- what the cluster does ---

    def create(self, pod: Pod) -> Pod:
        self.objects.pods.put(pod)
        self.scheduler.handlers.pod_added(pod)
        return pod

    def change(self, old: Pod, new: Pod) -> Pod:
        version = str(int(old.metadata.resource_version or 0) + 1)
        metadata = msgspec.structs.replace(new.metadata, resource_version=version)
        new = msgspec.structs.replace(new, metadata=metadata)
        self.objects.pods.put(new)
        self.scheduler.handlers.pod_updated(old, new)
        return new

    def confirm(self, pod: Pod, node_name: str) -> Pod:
        """The watch shows the pod on its node."""
        return self.change(pod, assign(pod, node_name))

    def delete(self, pod: Pod) -> None:
        self.objects.pods.remove(pod.metadata.namespace, pod.metadata.name)
        self.scheduler.handlers.pod_deleted(pod)

    # --- what the scheduler does ---

    def schedule(self) -> Decision | None:
        """One cycle for the next pod; its binding begins with the next turn of the loop."""
        queued_pod = self.queue.pop_nowait()
        assert queued_pod is not None, "no pod is ready to be tried"
        attempt = self.scheduler.schedule_one(queued_pod)
        return attempt.decision if isinstance(attempt, PodAttempt) else None

    async def settle(self) -> None:
        """Run everything that can run without time passing."""
        for _ in range(30):
            await asyncio.sleep(0)

    def place_of(self, pod: Pod) -> Place | None:
        return self.queue.place_of(pod)

    @property
    def notes(self) -> list[str]:
        return [event.note for event in self.events.events]

    @property
    def conditions(self) -> list[tuple[str, str]]:
        """Reason and message of the conditions written."""
        return [
            (patch.condition.reason, patch.condition.message)
            for patch in self.server.patches
            if patch.condition is not None
        ]

    @property
    def nominations(self) -> list[str]:
        return [
            patch.nominated_node_name
            for patch in self.server.patches
            if patch.nominated_node_name is not None
        ]


class _PluginClass:
    """A class of which there is one instance."""

    args_type = None

    def __init__(self, plugin: Plugin) -> None:
        self.name = plugin.name
        self._plugin = plugin

    def __call__(self, args: object, handle: object) -> Plugin:
        return self._plugin


def _config(name: str, plugins: Iterable[Plugin]) -> ProfileConfig:
    enabled = tuple(PluginRef(plugin.name) for plugin in plugins)
    multi_point = PluginSet(enabled=enabled, disabled=(PluginRef("*"),))
    return ProfileConfig(scheduler_name=name, plugins=Plugins(multi_point=multi_point))


@pytest.fixture
def make_world() -> type[World]:
    return World


@pytest.fixture
def run() -> Callable[[Coroutine[Any, Any, None]], None]:
    """Runs a test's coroutine in virtual time."""
    return run_in_virtual_time
