"""The story of `simulator.walk` with the schedulers of v1.9, v1.17 and v1.20."""

import asyncio
from contextlib import suppress

import numpy as np

from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.clock import Clock
from kubestow.cluster.events import EventRecorder
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.editions.choosing import rules_of
from kubestow.editions.edition import Edition
from kubestow.editions.shared.policy import provider_policy
from kubestow.editions.v1_9.cache import ObjectsV19
from kubestow.editions.v1_9.engine.algorithm import build_algorithm
from kubestow.editions.v1_9.engine.decide import DecisionV19
from kubestow.editions.v1_9.engine.scheduler import SchedulerV19
from kubestow.editions.v1_9.engine.watching import WatcherV19
from kubestow.editions.v1_20.profiles import default_profile
from kubestow.editions.v1_20.queue import SchedulingQueue120
from kubestow.engine.profile_events import ProfileEvents
from kubestow.queue import Queue
from kubestow.simulator.kubelets import FakeKubelets
from kubestow.simulator.walk import Narrator, Say, remember, tell, walk


async def walk_edition(edition: Edition, say: Say, clock: Clock) -> None:
    """Play the story with that edition."""
    if not edition.has_plugins:
        await _walk_v1_9(say, clock)
        return
    config = SchedulerConfig(profiles=(default_profile(FeatureGates({}, edition)),))
    await walk(say, clock, rules=rules_of(edition), config=config, counters=_counters)


def _counters(queue: Queue) -> str:
    assert isinstance(queue, SchedulingQueue120)
    return f"cycle {queue.scheduling_cycle}, move {queue.move_request_cycle}"


async def _walk_v1_9(say: Say, clock: Clock) -> None:
    store, known = MemoryCluster(clock), dict[str, Pod]()
    client, objects = MemoryClient(store), ObjectsV19()
    narrator = Narrator(clock, known.values, say)

    def decided(decision: DecisionV19) -> None:
        if decision.is_scheduled:
            nodes = " ".join(decision.top_nodes)
            text = f"{decision.pod.name} -> {decision.node_name} (the best in turn: {nodes})"
            narrator.say("decision", text)
        else:
            narrator.say("decision", f"{decision.pod.name} fits nowhere")

    objects.pods.subscribe(lambda old, new: remember(known, new))
    recorder = EventRecorder(client, clock, hostname="embedded")
    scheduler = SchedulerV19(
        build_algorithm(provider_policy("DefaultProvider")),
        client=client,
        objects=objects,
        events=ProfileEvents(recorder, "default-scheduler"),
        clock=clock,
        listeners=[decided],
    )
    narrator.watch_cache(scheduler.cache)
    narrator.watch_queue(
        scheduler.queue,
        lambda pod: "fifo" if scheduler.queue.holds(pod) else "none",
        calls=("add", "add_if_not_present", "delete", "pop_nowait"),
    )
    narrator.watch_snapshot(scheduler.snapshot)
    watcher = WatcherV19(client, scheduler, clock, np.random.default_rng(0))
    parts = (watcher, recorder, FakeKubelets(store, clock), scheduler)
    tasks = [asyncio.create_task(part.run()) for part in parts]
    try:
        await tell(store, narrator)
    finally:
        scheduler.stop()
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
        await scheduler.tasks.drain(0)
        await recorder.flush()
