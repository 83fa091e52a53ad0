"""While an extender is asked, the loop goes on, and the cycle does not see what changes.

The extender is served by the loop of the scheduler itself: it could not answer a cycle that blocks.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np

from kubestow.api.pod import Pod
from kubestow.cache.objects import ClusterObjects
from kubestow.clock import SystemClock
from kubestow.config.extenders import ExtenderConfig
from kubestow.config.profile import PluginRef, Plugins, PluginSet, ProfileConfig
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.factory import SchedulerFactory
from kubestow.engine.scheduler import Scheduler
from kubestow.framework.plugin import Plugin
from kubestow.framework.status import Status
from kubestow.testing import make_node, make_pod
from kubestow.testing.handles import RecordedEvents
from kubestow.testing.profiles import make_plugin

LIMIT_S = 300
Answer = Callable[[str, Any], Awaitable[Any]]  # verb, question → answer


class World:
    """A scheduler, and an extender whose answers are a function of the test."""

    def __init__(self, *, scores: bool = False) -> None:
        self.answer: Answer | None = None
        self.bound: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self.is_bound: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.seen: list[dict[str, int]] = []
        self.objects = ClusterObjects()
        self._handlers: set[asyncio.Task[Any]] = set()
        self._verbs = {"filter_verb": "filter"} | ({"prioritize_verb": "score"} if scores else {})

    async def run(self, test: "Callable[[World], Awaitable[None]]") -> None:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        async with server, asyncio.timeout(LIMIT_S):
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            self.scheduler = self._scheduler(url)
            running = asyncio.create_task(self.scheduler.run())
            await test(self)
            running.cancel()
            # Before the handlers: no request may be left behind.
            await asyncio.gather(running, return_exceptions=True)
            for task in [*self._handlers]:
                task.cancel()
            await asyncio.gather(*self._handlers, return_exceptions=True)

    def create(self, pod: Pod) -> Pod:
        self.objects.pods.put(pod)
        self.scheduler.handlers.pod_added(pod)
        return pod

    def _scheduler(self, url: str) -> Scheduler:
        async def bind(state: Any, pod: Any, node_name: str) -> Status | None:
            self.bound.put_nowait((pod.pod.metadata.name, node_name))
            self.is_bound[pod.pod.metadata.name].set()
            return None

        def score(state: Any, pod: Any, nodes: Any) -> Any:
            # After the extender: the entries of the snapshot, and its numbers.
            counts = [len(info.pods) for info in nodes.infos()]
            assert counts == nodes.pod_count.tolist()
            self.seen.append(dict(zip(nodes.names, counts, strict=True)))
            return np.zeros(len(nodes), np.int64)

        plugins = [
            make_plugin("Sort", less=lambda a, b: a.timestamp_ns < b.timestamp_ns),
            make_plugin("Binder", bind=bind),
            make_plugin("Counts", score=score),
        ]
        enabled = tuple(PluginRef(plugin.name) for plugin in plugins)
        profile = ProfileConfig(
            plugins=Plugins(multi_point=PluginSet(enabled=enabled, disabled=(PluginRef("*"),)))
        )
        extender = ExtenderConfig(url_prefix=url, weight=1, node_cache_capable=True, **self._verbs)
        return SchedulerFactory(
            config=SchedulerConfig(profiles=(profile,), extenders=(extender, extender)),
            client=None,  # type: ignore[arg-type] - this plugin binds without it
            objects=self.objects,
            events=lambda _: RecordedEvents(),
            clock=SystemClock(),
            registry={plugin.name: _PluginClass(plugin) for plugin in plugins},
        ).build()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        try:
            await self._respond(reader, writer)
        finally:
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)
            self._handlers.discard(task)

    async def _respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.partition("Content-Length: ")[2].split()[0])
        question = json.loads(await reader.readexactly(length))
        verb = head.split()[1].rpartition("/")[2]
        assert self.answer is not None
        body = json.dumps(await self.answer(verb, question)).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


class _PluginClass:
    """A class of which there is one instance."""

    args_type = None

    def __init__(self, plugin: Plugin) -> None:
        self.name = plugin.name
        self._plugin = plugin

    def __call__(self, args: object, handle: object) -> Plugin:
        return self._plugin


def all_nodes(question: Any) -> Any:
    return {"NodeNames": question["NodeNames"]}


def test_events_during_the_wait_change_the_next_cycle_only() -> None:
    async def test(world: World) -> None:
        handlers = world.scheduler.handlers
        nodes = {name: make_node(name) for name in ("a", "b", "c")}
        for node in nodes.values():
            handlers.node_added(node)
        gone = world.create(make_pod("gone", node="b"))
        events: list[Callable[[], object]] = [
            lambda: world.create(make_pod("new", node="a")),
            lambda: handlers.pod_deleted(gone),
            lambda: handlers.node_added(make_node("d")),
            lambda: handlers.node_deleted(nodes["c"]),
        ]

        async def answer(verb: str, question: Any) -> Any:
            while events:
                events.pop(0)()
                await asyncio.sleep(0)
            return all_nodes(question)

        world.answer = answer
        world.create(make_pod("first"))
        await world.bound.get()
        assert world.seen == [{"a": 0, "b": 1, "c": 0}]
        world.create(make_pod("second"))
        name, node_name = await world.bound.get()
        assert name == "second"
        assert set(world.seen[1]) == {"a", "b", "d"}
        assert world.seen[1]["a"] >= 1  # The new one, and perhaps the first.
        assert node_name in world.seen[1]

    asyncio.run(World().run(test))


def test_bindings_of_other_pods_go_on() -> None:
    async def test(world: World) -> None:
        world.scheduler.handlers.node_added(make_node("a"))

        async def answer(verb: str, question: Any) -> Any:
            if question["Pod"]["metadata"]["name"] == "second":
                await world.is_bound["first"].wait()
            return all_nodes(question)

        world.answer = answer
        world.create(make_pod("first"))
        world.create(make_pod("second"))
        await world.is_bound["second"].wait()

    asyncio.run(World().run(test))


def test_extenders_that_score_are_asked_at_the_same_time() -> None:
    async def test(world: World) -> None:
        for name in ("a", "b"):
            world.scheduler.handlers.node_added(make_node(name))
        both = asyncio.Barrier(2)

        async def answer(verb: str, question: Any) -> Any:
            if verb == "filter":
                return all_nodes(question)
            await both.wait()
            return [{"Host": "b", "Score": 5}]

        world.answer = answer
        world.create(make_pod("p"))
        assert await world.bound.get() == ("p", "b")

    asyncio.run(World(scores=True).run(test))


def test_a_scheduler_can_be_stopped_while_it_waits() -> None:
    async def test(world: World) -> None:
        world.scheduler.handlers.node_added(make_node("a"))
        is_asked = asyncio.Event()

        async def answer(verb: str, question: Any) -> Any:
            is_asked.set()
            await asyncio.Event().wait()

        world.answer = answer
        world.create(make_pod("p"))
        await is_asked.wait()

    asyncio.run(World().run(test))
