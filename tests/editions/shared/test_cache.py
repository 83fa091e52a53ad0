"""The caches of v1.9, v1.17 and v1.20: texts, expiry and the order of nodes (spec 03 §14)."""

from collections.abc import Callable
from typing import TypeVar

import pytest

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.editions.shared.cache import CacheWithExpiry
from kubestow.editions.v1_17.cache import Cache117, NodeTree117, Snapshot117
from kubestow.editions.v1_20.cache import Cache120
from kubestow.errors import CacheCorruptedError, CacheError
from kubestow.index.nodes import nodes_of
from kubestow.testing import ManualClock, make_node, make_pod

CACHES = [pytest.param(Cache117, id="1.17"), pytest.param(Cache120, id="1.20")]
EXPIRING_CACHES = [pytest.param(CacheWithExpiry, id="1.9"), *CACHES]
ON_A = make_pod("p", uid="K", node="a", cpu="1")
ON_B = make_pod("p", uid="K", node="b", cpu="1")
ZONE = "topology.kubernetes.io/zone"

CacheT = TypeVar("CacheT", bound=CacheWithExpiry)
Operation = Callable[[CacheWithExpiry, Pod], None]

ASSUME: Operation = lambda cache, pod: cache.assume_pod(PodInfo(pod))  # noqa: E731
ADD: Operation = lambda cache, pod: cache.add_pod(PodInfo(pod))  # noqa: E731
UPDATE: Operation = lambda cache, pod: cache.update_pod(pod, PodInfo(pod))  # noqa: E731
REMOVE: Operation = lambda cache, pod: cache.remove_pod(pod)  # noqa: E731
FORGET: Operation = lambda cache, pod: cache.forget_pod(pod)  # noqa: E731
FINISH: Operation = lambda cache, pod: cache.finish_binding(pod)  # noqa: E731


def cache_in(state: str, make: type[CacheT]) -> CacheT:
    cache = make(ManualClock())
    for name in ("a", "b"):
        cache.add_node(make_node(name))
    if state == "assumed":
        ASSUME(cache, ON_A)
    elif state == "added":
        ADD(cache, ON_A)
    elif state == "expired":
        ASSUME(cache, ON_A)
        FINISH(cache, ON_A)
        expire_at(cache, 31)
    elif state == "deleted":
        ADD(cache, ON_A)
        REMOVE(cache, ON_A)
    return cache


def clock_of(cache: CacheWithExpiry) -> ManualClock:
    assert isinstance(cache._clock, ManualClock)
    return cache._clock


def expire_at(cache: CacheWithExpiry, now_s: float) -> None:
    clock_of(cache).set_s(now_s)
    cache.expire_assumed_pods()


IN_CACHE = "pod K is in the cache, so can't be assumed"
NOT_ASSUMED = "pod K wasn't assumed so cannot be forgotten"
OTHER_NODE = "pod K was assumed on b but assigned to a"
NOT_ADDED = "pod K is not added to scheduler cache, so cannot be updated"
NOT_FOUND = "pod K is not found in scheduler cache, so cannot be removed from it"


@pytest.mark.parametrize("make", CACHES)
@pytest.mark.parametrize(
    ("state", "operation", "pod", "text"),
    [
        *[(state, ASSUME, ON_A, None) for state in ("absent", "expired", "deleted")],
        ("assumed", ASSUME, ON_A, IN_CACHE),
        ("added", ASSUME, ON_A, IN_CACHE),
        *[(state, FINISH, ON_A, None) for state in ("absent", "assumed", "added")],
        *[(state, FORGET, ON_A, NOT_ASSUMED) for state in ("absent", "expired", "added")],
        ("assumed", FORGET, ON_A, None),
        ("assumed", FORGET, ON_B, OTHER_NODE),
        ("added", FORGET, ON_B, OTHER_NODE),
        *[(state, ADD, ON_A, None) for state in ("absent", "expired", "deleted", "assumed")],
        ("assumed", ADD, ON_B, None),
        ("added", ADD, ON_A, "pod K was already in added state"),
        *[(state, UPDATE, ON_A, NOT_ADDED) for state in ("absent", "expired", "assumed")],
        ("added", UPDATE, ON_A, None),
        *[(state, REMOVE, ON_A, NOT_FOUND) for state in ("absent", "expired", "assumed")],
        ("added", REMOVE, ON_A, None),
    ],
)
def test_14_2_the_table_of_operations(
    make: type[Cache120], state: str, operation: Operation, pod: Pod, text: str | None
) -> None:
    cache = cache_in(state, make)
    if text is None:
        operation(cache, pod)
        return
    with pytest.raises(CacheError) as raised:
        operation(cache, pod)
    assert str(raised.value) == text


@pytest.mark.parametrize("make", CACHES)
@pytest.mark.parametrize("operation", [UPDATE, REMOVE])
def test_another_node_is_fatal(make: type[Cache120], operation: Operation) -> None:
    with pytest.raises(CacheCorruptedError):
        operation(cache_in("added", make), ON_B)
    if operation is REMOVE:
        with pytest.raises(CacheCorruptedError):
            operation(cache_in("added", make), make_pod("p", uid="K"))


@pytest.mark.parametrize("operation", [ASSUME, ADD, UPDATE, REMOVE, FORGET, FINISH])
def test_a_pod_without_uid_has_no_key(operation: Operation) -> None:
    with pytest.raises(CacheError) as raised:
        operation(Cache117(ManualClock()), make_pod("p", uid="", node="a"))
    assert str(raised.value) == "Cannot get cache key for pod with empty UID"


@pytest.mark.parametrize("make", CACHES)
def test_a_confirmation_leaves_the_node_alone(make: type[Cache120]) -> None:
    cache = cache_in("assumed", make)
    generation = cache.node("a").generation
    ADD(cache, make_pod("p", uid="K", node="a", cpu="3"))
    assert cache.node("a").generation == generation
    assert cache.node("a").requested.milli_cpu == 1000
    assert not cache.is_assumed(ON_A)
    expire_at(cache, 10**9)
    assert cache.statistics().pods == 1


@pytest.mark.parametrize("make", CACHES)
def test_a_confirmation_elsewhere_moves_the_pod(make: type[Cache120]) -> None:
    cache = cache_in("assumed", make)
    ADD(cache, ON_B)
    assert [len(cache.node(name).pods) for name in "ab"] == [0, 1]


def test_an_update_with_another_uid_stays_under_the_old_key() -> None:
    cache = cache_in("added", Cache120)
    renewed = make_pod("p", uid="K2", node="a", cpu="2")
    cache.update_pod(ON_A, PodInfo(renewed))
    assert cache.pod(ON_A).pod is renewed
    with pytest.raises(CacheError, match="pod K2 does not exist in scheduler cache"):
        cache.pod(renewed)
    assert cache.node("a").requested.milli_cpu == 2000


# --- expiry ---


@pytest.mark.parametrize("make", EXPIRING_CACHES)
@pytest.mark.parametrize(("at_s", "is_left"), [(130, True), (130.001, False)])
def test_14_2_an_assumption_lives_for_thirty_seconds(
    make: type[CacheWithExpiry], at_s: float, is_left: bool
) -> None:
    cache = cache_in("assumed", make)
    clock_of(cache).set_s(100)
    FINISH(cache, ON_A)
    expire_at(cache, at_s)
    assert cache.is_assumed(ON_A) is is_left
    assert len(cache.node("a").pods) == is_left


def test_without_an_end_of_binding_nothing_expires(caplog: pytest.LogCaptureFixture) -> None:
    cache = cache_in("assumed", Cache120)
    with caplog.at_level("INFO"):
        expire_at(cache, 10**9)
    assert cache.is_assumed(ON_A)
    text = "Couldn't expire cache for pod default/p. Binding is still in progress."
    assert text in caplog.text


@pytest.mark.parametrize("make", EXPIRING_CACHES)
def test_a_pod_whose_binding_goes_on_never_expires(make: type[CacheWithExpiry]) -> None:
    cache = cache_in("assumed", make)
    expire_at(cache, 10**9)
    assert cache.is_assumed(ON_A)


@pytest.mark.parametrize("make", EXPIRING_CACHES)
def test_a_confirmed_pod_does_not_expire(make: type[CacheWithExpiry]) -> None:
    cache = cache_in("assumed", make)
    FINISH(cache, ON_A)
    ADD(cache, ON_A)
    expire_at(cache, 10**9)
    assert cache.pod(ON_A).pod is ON_A
    assert not cache.is_assumed(ON_A)


@pytest.mark.parametrize("make", EXPIRING_CACHES)
def test_the_end_of_a_binding_counts_for_assumed_pods_only(make: type[CacheWithExpiry]) -> None:
    cache = cache_in("absent", make)
    FINISH(cache, ON_A)
    ADD(cache, ON_A)
    FINISH(cache, ON_A)
    expire_at(cache, 10**9)
    assert cache.pod(ON_A).pod is ON_A


@pytest.mark.parametrize("make", EXPIRING_CACHES)
@pytest.mark.parametrize("leave", [FORGET, ADD], ids=["forgotten", "confirmed"])
def test_a_second_assumption_has_a_time_to_live_of_its_own(
    make: type[CacheWithExpiry], leave: Operation
) -> None:
    cache = cache_in("assumed", make)
    FINISH(cache, ON_A)
    leave(cache, ON_A)
    if leave is ADD:
        REMOVE(cache, ON_A)
    ASSUME(cache, ON_A)
    expire_at(cache, 10**9)
    assert cache.is_assumed(ON_A)


@pytest.mark.parametrize("make", EXPIRING_CACHES)
def test_an_expired_pod_can_be_added_again(make: type[CacheWithExpiry]) -> None:
    cache = cache_in("expired", make)
    ADD(cache, ON_A)
    assert cache.pod(ON_A).pod is ON_A


def test_a_pod_that_cannot_be_expired_stays(caplog: pytest.LogCaptureFixture) -> None:
    cache = cache_in("assumed", CacheWithExpiry)
    FINISH(cache, ON_A)
    cache.node("a").remove_pod(ON_A)  # behind the cache's back
    expire_at(cache, 31)
    assert "ExpirePod failed for K" in caplog.text
    assert cache.is_assumed(ON_A)


def _without_node(make: type[Cache120]) -> Cache120:
    cache = cache_in("assumed", make)
    FINISH(cache, ON_A)
    del cache.nodes["a"]
    return cache


def test_a_missing_node_is_an_error_in_1_17(caplog: pytest.LogCaptureFixture) -> None:
    cache = _without_node(Cache117)
    with pytest.raises(CacheError, match="node a is not found"):
        FORGET(cache, ON_A)
    expire_at(cache, 10**9)
    assert "ExpirePod failed for K: node a is not found" in caplog.text
    assert cache.is_assumed(ON_A)
    ADD(cache, ON_B)  # The error is ignored.
    assert len(cache.node("b").pods) == 1


def test_a_missing_node_is_logged_in_1_20(caplog: pytest.LogCaptureFixture) -> None:
    cache = _without_node(Cache120)
    FORGET(cache, ON_A)
    assert "node a not found when trying to remove pod default/p" in caplog.text
    assert not cache.is_assumed(ON_A)


# --- the order of v1.17 ---


def node(name: str) -> Node:
    """Its zone is its first letter, and its name that letter and a number."""
    return make_node(name, labels={ZONE: name[0]})


class Cluster:
    def __init__(self, *names: str) -> None:
        self.cache, self.snapshot = Cache117(ManualClock()), Snapshot117()
        self.add(*names)

    def add(self, *names: str) -> None:
        for name in names:
            self.cache.add_node(node(name))

    def remove(self, name: str) -> None:
        self.cache.remove_node(node(name))

    def names(self) -> str:
        self.snapshot.refresh(self.cache)
        return " ".join(self.snapshot.names)


def test_14_3_1_zones_take_turns() -> None:
    cluster = Cluster("a1", "a2", "b1")
    assert [cluster.names() for _ in range(3)] == ["a1 b1 a2"] * 3


def test_14_3_2_a_new_node_rotates_the_order() -> None:
    cluster = Cluster("a1")
    assert cluster.names() == "a1"
    cluster.add("a2")
    assert [cluster.names() for _ in range(3)] == ["a2 a1"] * 3


def test_14_3_3_a_new_zone_shows_one_node_twice() -> None:
    cluster = Cluster("m1", "m2", "m3")
    assert cluster.names() == "m1 m2 m3"
    cluster.add("w1")
    assert cluster.names() == "w1 m1 w1 m2"
    # Both rows are the same node, and stay so.
    cluster.cache.add_pod(PodInfo(make_pod("p", node="w1", cpu="1")))
    assert [cluster.names() for _ in range(2)] == ["m3 m1 w1 m2"] * 2
    assert cluster.snapshot.get("w1").requested.milli_cpu == 1000
    assert nodes_of(cluster.snapshot).pod_count.tolist() == [0, 0, 1, 0]


def test_14_3_4_a_node_is_removed_from_the_middle() -> None:
    cluster = Cluster("a1", "a2", "b1", "b2")
    assert cluster.names() == "a1 b1 a2 b2"
    cluster.remove("b1")
    assert cluster.names() == "a1 b2 a2"


def test_14_3_5_the_first_node_is_removed() -> None:
    cluster = Cluster("a1", "a2", "b1")
    cluster.names()
    cluster.remove("a1")
    assert cluster.names() == "a2 b1"


def test_without_nodes_there_is_no_next() -> None:
    assert NodeTree117().next() == ""
    assert Cluster().names() == ""


def test_columns_follow_the_rows_whatever_the_order() -> None:
    cluster = Cluster("m1", "m2", "m3")
    cluster.names()
    cluster.add("w1")
    for number, name in enumerate(("m1", "w1", "m3", "m2", "w1")):
        cluster.cache.add_pod(PodInfo(make_pod(f"p{number}", node=name, cpu="1")))
        cluster.names()
        shown = nodes_of(cluster.snapshot).requested(0).tolist()
        expected = [cluster.cache.node(each).requested.milli_cpu for each in cluster.snapshot.names]
        assert shown == expected


def test_a_node_the_map_lacks_is_skipped(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster("a1", "a2")
    cluster.cache.node_tree.add(node("ghost"))
    assert "ghost" not in cluster.names()
    text = 'node "ghost" exist in nodeTree but not in NodeInfoMap, this should not happen.'
    assert text in caplog.text
