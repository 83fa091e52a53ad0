"""An attempt of v1.37 takes about as many calls as one of v1.36: what is reused there is here."""

import cProfile
import pstats

from kubestow.api.pod import DEFAULT_SCHEDULER_NAME
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cache.objects import ClusterObjects
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.editions import edition_named
from kubestow.editions.choosing import rules_of
from kubestow.engine.deciding import DecidingHalf, NoQueue
from kubestow.testing import ManualClock, make_node, make_pod

WARM, COUNTED = 20, 60


def calls(version: str) -> float:
    """Calls of an attempt, with those that put the pod on its node."""
    edition, objects = edition_named(version), ClusterObjects()
    rules = rules_of(edition)
    deciding = DecidingHalf(
        config=SchedulerConfig(),
        objects=objects,
        clock=ManualClock(),
        client=MemoryClient(MemoryCluster(ManualClock())),
        make_queue=lambda _: NoQueue(objects),
        registry=rules.registry,
        gates=FeatureGates({}, edition),
        cache=rules.factory.cache_type(),
    )
    for number in range(50):
        deciding.cache.add_node(make_node(f"n{number}"))
    profile = deciding.profiles[DEFAULT_SCHEDULER_NAME]
    infos = [
        deciding.cache.info_of(make_pod(f"p{number}", cpu="100m"))
        for number in range(WARM + COUNTED)
    ]
    profiler = cProfile.Profile()
    for number, info in enumerate(infos):
        if number == WARM:
            profiler.enable()
        decision = deciding.decide(profile, info)
        deciding.cache.assume_pod(info.assigned_to(decision.node_name))
    profiler.disable()
    return pstats.Stats(profiler).total_calls / COUNTED


def test_calls_are_about_those_of_v1_36() -> None:
    assert calls("v1.37") <= 1.15 * calls("v1.36")
