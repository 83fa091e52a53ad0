"""The half that decides, without a queue that runs."""

import ast
from pathlib import Path
from typing import Any

import pytest

from kubestow.api.pod_info import PodInfo
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cache.objects import ClusterObjects
from kubestow.config.profile import ProfileConfig
from kubestow.config.scheduler import SchedulerConfig
from kubestow.engine.deciding import DecidingHalf, NoQueue
from kubestow.errors import ConfigError
from kubestow.testing import make_node, make_pod
from kubestow.testing.clock import ManualClock
from kubestow.testing.snapshots import make_cache

PACKAGE = Path(__file__).parents[2] / "src" / "kubestow"


def half(*names: str, **fields: Any) -> DecidingHalf[NoQueue]:
    """A cluster of nodes with one core each."""
    objects, clock = ClusterObjects(), ManualClock()
    return DecidingHalf(
        config=SchedulerConfig(**fields),
        objects=objects,
        clock=clock,
        client=MemoryClient(MemoryCluster(clock)),
        make_queue=lambda _: NoQueue(objects),
        cache=make_cache([make_node(name, cpu="1") for name in names]),
    )


def test_a_pod_is_decided_on_the_cluster_as_it_is() -> None:
    deciding = half("a")
    (profile,) = deciding.profiles.values()
    pod = PodInfo(make_pod("p", cpu="1"))
    assert deciding.decide(profile, pod).node_name == "a"
    deciding.cache.assume_pod(pod.assigned_to("a"))
    assert not deciding.decide(profile, PodInfo(make_pod("q", cpu="1"))).is_scheduled


def test_waiting_pods_count_where_they_are_nominated() -> None:
    deciding = half("a", "b")
    (profile,) = deciding.profiles.values()
    nominated = make_pod("first", cpu="1", priority=10, nominated_node="a")
    deciding.objects.pods.put(nominated)
    deciding.queue.waiting["default/first"] = PodInfo(nominated)
    deciding.queue.nominator.add(nominated)
    assert deciding.decide(profile, PodInfo(make_pod("p", cpu="1"))).node_name == "b"


def test_plugins_of_all_profiles_have_the_queue() -> None:
    profiles = (ProfileConfig(), ProfileConfig(scheduler_name="other"))
    deciding = half("a", profiles=profiles)
    assert list(deciding.handles) == ["default-scheduler", "other"] == list(deciding.profiles)
    for name, handle in deciding.handles.items():
        assert handle.profile is deciding.profiles[name]
        assert handle.nominator is deciding.queue.nominator
        handle.activate([make_pod("p")])


def test_a_configuration_that_is_wrong_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least one profile is required"):
        half("a", profiles=())


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("Decider", {"engine/deciding.py"}),
        ("build_profiles", {"engine/deciding.py"}),
        # The second is for tests that make a single plugin.
        ("Handle", {"engine/deciding.py", "testing/handles.py"}),
    ],
)
def test_the_parts_are_connected_in_one_place(name: str, allowed: set[str]) -> None:
    callers = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    }
    assert callers == allowed
