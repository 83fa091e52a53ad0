"""The live cache: what each operation does to a pod or a node, and what it refuses (spec 03)."""

import logging
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from kubestow.api.pod import ContainerStatus, Pod, assign
from kubestow.api.pod_info import PodInfo
from kubestow.api.ports import UsedPorts
from kubestow.cache.cache import Cache
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.snapshot import Snapshot
from kubestow.errors import CacheCorruptedError, CacheError
from kubestow.testing import make_node, make_pod
from kubestow.testing.topology import make_affinity, make_pod_term

ABSENT, ASSUMED, ADDED = "absent", "assumed", "added"
S = 1_000_000_000
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def pod_on(node: str) -> Pod:
    return make_pod("p", namespace="d", uid="u1", node=node, cpu="1")


def cache_with(state: str = ABSENT, node: str = "n1") -> Cache:
    """Nodes n1 and n2, and the pod u1 in that state on that node."""
    cache = Cache()
    cache.add_node(make_node("n1"))
    cache.add_node(make_node("n2"))
    if state == ASSUMED:
        cache.assume_pod(PodInfo(pod_on(node)))
    elif state == ADDED:
        cache.add_pod(PodInfo(pod_on(node)))
    return cache


def state_of(cache: Cache) -> tuple[str, str]:
    """The pod's state and node, after checking that everything in the cache agrees on them."""
    pod = pod_on("")
    places = [
        name
        for name, info in cache.nodes.items()
        for on_node in info.pods
        if on_node.uid == pod.metadata.uid
    ]
    assumed = cache.is_assumed(pod)
    if not places:
        assert not assumed
        with pytest.raises(CacheError) as caught:
            cache.pod(pod)
        assert str(caught.value) == "pod u1(d/p) does not exist in scheduler cache"
        return ABSENT, ""
    assert places == [cache.pod(pod).pod.spec.node_name]
    assert cache.statistics().assumed_pods == int(assumed)
    assert cache.statistics().pods == 1
    return ASSUMED if assumed else ADDED, places[0]


def run(cache: Cache, operation: str, node: str) -> None:
    pod = pod_on(node)
    match operation:
        case "assume":
            cache.assume_pod(PodInfo(pod))
        case "forget":
            cache.forget_pod(pod)
        case "add":
            cache.add_pod(PodInfo(pod))
        case "update":
            old = pod_on("n1")
            cache.update_pod(old, PodInfo(pod))
        case "remove":
            cache.remove_pod(pod)
        case _:
            raise AssertionError(operation)


IN_CACHE = "pod u1(d/p) is in the cache, so can't be assumed"
NOT_ASSUMED = "pod u1(d/p) wasn't assumed so cannot be forgotten"
WRONG_NODE = "pod u1(d/p) was assumed on n2 but assigned to n1"
ALREADY = "pod u1(d/p) was already in added state"
NOT_ADDED = "pod u1(d/p) is not added to scheduler cache, so cannot be updated"
STILL_ASSUMED = "assumed pod u1(d/p) should not be updated"
NOT_FOUND = "pod u1(d/p) is not found in scheduler cache, so cannot be removed from it"
MOVED = (
    "Pod updated on a different node than previously added to. Scheduler cache is corrupted and "
    "can badly affect scheduling decisions: "
)
CORRUPTED = "Scheduler cache is corrupted and can badly affect scheduling decisions: "
CONTRADICTION = 'pod d/p (UID u1) is on node "n1" in the cache and on "n2" in the cluster'


@pytest.mark.parametrize(
    ("state", "operation", "node", "after"),
    [
        (ABSENT, "assume", "n1", (ASSUMED, "n1")),
        (ABSENT, "assume", "unknown", (ASSUMED, "unknown")),
        (ABSENT, "forget", "n1", (ABSENT, "")),
        (ASSUMED, "forget", "n1", (ABSENT, "")),
        (ABSENT, "add", "n1", (ADDED, "n1")),
        (ABSENT, "add", "unknown", (ADDED, "unknown")),
        (ASSUMED, "add", "n1", (ADDED, "n1")),
        (ASSUMED, "add", "n2", (ADDED, "n2")),
        (ADDED, "update", "n1", (ADDED, "n1")),
        (ASSUMED, "remove", "n1", (ABSENT, "")),
        (ASSUMED, "remove", "", (ABSENT, "")),
        (ADDED, "remove", "n1", (ABSENT, "")),
        (ADDED, "remove", "", (ABSENT, "")),
    ],
)
def test_an_operation_changes_the_state(
    state: str, operation: str, node: str, after: tuple[str, str]
) -> None:
    cache = cache_with(state)
    run(cache, operation, node)
    assert state_of(cache) == after


@pytest.mark.parametrize(
    ("state", "operation", "node", "error"),
    [
        (ASSUMED, "assume", "n1", IN_CACHE),
        (ADDED, "assume", "n2", IN_CACHE),
        (ASSUMED, "forget", "n2", WRONG_NODE),
        (ADDED, "forget", "n2", WRONG_NODE),
        (ADDED, "forget", "n1", NOT_ASSUMED),
        (ADDED, "add", "n1", ALREADY),
        (ADDED, "add", "n2", ALREADY),
        (ABSENT, "update", "n1", NOT_ADDED),
        (ASSUMED, "update", "n1", STILL_ASSUMED),
        (ABSENT, "remove", "n1", NOT_FOUND),
    ],
)
def test_an_operation_is_refused_and_changes_nothing(
    state: str, operation: str, node: str, error: str
) -> None:
    cache = cache_with(state)
    before = state_of(cache)
    with pytest.raises(CacheError) as caught:
        run(cache, operation, node)
    assert str(caught.value) == error
    assert not isinstance(caught.value, CacheCorruptedError)
    assert state_of(cache) == before


@pytest.mark.parametrize(
    ("state", "operation", "error"),
    [
        (ADDED, "update", MOVED),
        (ADDED, "remove", CORRUPTED),
        (ASSUMED, "remove", CORRUPTED),
    ],
)
def test_a_pod_that_changed_its_node_is_fatal(state: str, operation: str, error: str) -> None:
    cache = cache_with(state)
    with pytest.raises(CacheCorruptedError) as caught:
        run(cache, operation, "n2")
    assert str(caught.value) == error + CONTRADICTION


@pytest.mark.parametrize(
    ("state", "expected"), [(ABSENT, False), (ASSUMED, True), (ADDED, False)], ids=str
)
def test_is_assumed(state: str, expected: bool) -> None:
    assert cache_with(state).is_assumed(pod_on("")) is expected


def test_3_4_4_and_5_a_pod_confirmed_elsewhere_then_removed_by_a_stale_event(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    cache = cache_with(ASSUMED)
    run(cache, "add", "n2")
    assert "Pod was added to a different node than it was assumed" in caplog.text
    assert [len(cache.node(name).pods) for name in ("n1", "n2")] == [0, 1]
    with pytest.raises(CacheError, match="was already in added state"):
        run(cache, "add", "n2")
    with pytest.raises(CacheError, match="wasn't assumed so cannot be forgotten"):
        run(cache, "forget", "n2")
    caplog.clear()
    run(cache, "remove", "")
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert cache.node("n2").pods == []
    with pytest.raises(CacheError, match="is not found in scheduler cache"):
        run(cache, "remove", "")
    run(cache, "forget", "n2")


@pytest.mark.parametrize("operation", ["assume", "forget", "add", "update", "remove", "get", "is"])
def test_3_4_7_a_pod_without_uid_is_refused(operation: str) -> None:
    cache = Cache()
    pod = make_pod(uid="", node="n1")
    calls = {
        "assume": lambda: cache.assume_pod(PodInfo(pod)),
        "forget": lambda: cache.forget_pod(pod),
        "add": lambda: cache.add_pod(PodInfo(pod)),
        "update": lambda: cache.update_pod(pod, PodInfo(pod)),
        "remove": lambda: cache.remove_pod(pod),
        "get": lambda: cache.pod(pod),
        "is": lambda: cache.is_assumed(pod),
    }
    with pytest.raises(CacheError, match=r"^cannot get cache key for pod with empty UID$"):
        calls[operation]()
    assert cache.node_count() == 0


def test_a_pod_without_namespace_is_named_by_its_name_alone() -> None:
    cache = Cache()
    with pytest.raises(CacheError, match=r"^pod u1\(p\) is not found in"):
        cache.remove_pod(make_pod("p", namespace="", uid="u1"))


def test_confirming_an_assumed_pod_replaces_what_was_counted() -> None:
    cache = cache_with(ASSUMED)
    confirmed = make_pod("p", namespace="d", uid="u1", node="n1", cpu="3")
    cache.add_pod(PodInfo(confirmed))
    info = cache.node("n1")
    assert [pod.pod for pod in info.pods] == [confirmed]
    assert info.requested.milli_cpu == 3000


def test_a_pod_that_cannot_be_replaced_stays_assumed(caplog: pytest.LogCaptureFixture) -> None:
    cache = cache_with(ASSUMED)
    cache.node("n1").remove_pod(pod_on("n1"))  # behind the cache's back
    run(cache, "add", "n1")
    assert "Error occurred while updating pod" in caplog.text
    assert cache.is_assumed(pod_on("n1"))


def with_metadata(pod: Pod, **changes: Any) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, **changes))


def with_status(pod: Pod, **changes: Any) -> Pod:
    return replace(pod, status=replace(pod.status, **changes))


COUNTED = (
    "class_counts", "live_class_counts", "non_zero_cpu", "non_zero_memory", "pvc_ref_counts",
    "requested", "term_counts", "unclaimed_volumes", "used_ports",
)  # fmt: skip
SMALL = make_pod("b", uid="b", cpu="1", labels={"app": "x"}, pvcs=["data"])
LARGE = replace(SMALL, spec=make_pod("b", uid="b", cpu="3", pvcs=["data"]).spec)
ENDING = with_metadata(SMALL, deletion_timestamp=EPOCH)
USED = ContainerStatus(
    name=SMALL.spec.containers[0].name, resources=make_pod(cpu="2").spec.containers[0].resources
)
NEAR = make_affinity(near=[make_pod_term("zone", "app=x")])


@pytest.mark.parametrize(
    "versions",
    [
        pytest.param([SMALL, with_status(SMALL, phase="Pending")], id="as assumed"),
        pytest.param([SMALL, with_metadata(SMALL, labels={"app": "y"})], id="with other labels"),
        pytest.param(
            [ENDING, with_metadata(ENDING, labels={"zone": "z"})],
            id="was being deleted, with other labels",
        ),
        pytest.param([SMALL, ENDING], id="being deleted"),
        pytest.param([SMALL, LARGE], id="resized while it was bound"),
        pytest.param([SMALL, LARGE, LARGE], id="resized in the queue"),
        pytest.param([SMALL, with_status(SMALL, container_statuses=(USED,))], id="with statuses"),
        pytest.param(
            [with_status(SMALL, container_statuses=(USED,)), SMALL], id="statuses are gone"
        ),
        pytest.param(
            [with_status(SMALL, container_statuses=(USED,)), SMALL, SMALL], id="had statuses"
        ),
        pytest.param([replace(SMALL, spec=replace(SMALL.spec, affinity=NEAR))] * 2, id="affinity"),
    ],
)
def test_a_confirmed_pod_counts_as_removed_and_added(versions: list[Pod]) -> None:
    """`versions` as the queue saw them, and last the one that confirms the pod."""
    *queued, last = versions
    waiting = PodInfo(queued[0])
    _ = waiting.accounted
    for version in queued[1:]:
        waiting.update(version)
    confirmed, replayed = Cache(), Cache()
    for cache in (confirmed, replayed):
        cache.add_node(make_node("n1"))
        for name in "a", "c":
            cache.add_pod(PodInfo(make_pod(name, uid=name, node="n1", cpu="1")))
    info = confirmed.node("n1")
    first = confirmed.pod(make_pod("a", uid="a"))
    confirmed.remove_pod(first.pod)
    confirmed.assume_pod(waiting.assigned_to("n1"))
    confirmed.add_pod(first)
    before = info.generation
    confirmed.add_pod(PodInfo(assign(last, "n1")))

    # The same pods on a node that never counted an earlier version; removal moved c first.
    expected = replayed.node("n1")
    expected.remove_pod(first.pod)
    expected.add_pod(first)
    expected.add_pod(PodInfo(assign(last, "n1")))
    assert [pod.uid for pod in info.pods] == [pod.uid for pod in expected.pods] == ["c", "a", "b"]
    for field in COUNTED:
        assert getattr(info, field) == getattr(expected, field), field
    assert info.pods[-1].pod == assign(last, "n1")
    assert info.generation > before
    assert list(confirmed.nodes) == ["n1"]
    assert not confirmed.is_assumed(last)
    # What is removed later is what was counted.
    for node in info, expected:
        node.remove_pod(assign(last, "n1"))
    for field in COUNTED:
        assert getattr(info, field) == getattr(expected, field), field


SEEN = with_status(SMALL, phase="Running", container_statuses=(ContainerStatus(name=USED.name),))


@pytest.mark.parametrize(
    "versions",
    [
        pytest.param([SMALL, SEEN, with_status(SEEN, phase="Unknown")], id="statuses, no amounts"),
        pytest.param([SEEN, with_metadata(SEEN, labels={"app": "y"})], id="with other labels"),
        pytest.param([SEEN, with_status(SEEN, container_statuses=(USED,)), SEEN], id="amounts"),
        pytest.param([SEEN, ENDING], id="being deleted"),
        pytest.param([SEEN, LARGE, SMALL], id="resized"),
    ],
)
def test_an_updated_pod_counts_as_removed_and_added(versions: list[Pod]) -> None:
    placed = [assign(version, "n1") for version in versions]
    updated, expected = Cache(), NodeInfo("n1")
    updated.add_node(make_node("n1"))
    updated.add_pod(PodInfo(placed[0]))
    info = updated.node("n1")
    for old, new in pairwise(placed):
        before = info.generation
        updated.update_pod(old, PodInfo(new))
        assert info.generation > before
    expected.add_pod(PodInfo(placed[-1]))
    assert info.pods[-1].pod == placed[-1]
    for field in COUNTED:
        assert getattr(info, field) == getattr(expected, field), field
    updated.remove_pod(placed[-1])
    expected.remove_pod(placed[-1])
    for field in COUNTED:
        assert getattr(info, field) == getattr(expected, field), field


def test_a_confirmed_pod_takes_its_port_again() -> None:
    # Ports in use have no count: removing one of two holders frees the port.
    cache = Cache()
    cache.add_node(make_node("n1"))
    first, second = (make_pod(name, uid=name, node="n1", host_ports=[80]) for name in "ab")
    cache.add_pod(PodInfo(first))
    cache.assume_pod(PodInfo(second))
    cache.remove_pod(first)
    assert cache.node("n1").used_ports == UsedPorts()
    cache.add_pod(PodInfo(second))
    assert cache.node("n1").used_ports == UsedPorts(PodInfo(second).host_ports)


def test_an_update_puts_the_pod_last_and_takes_a_generation() -> None:
    cache = Cache()
    cache.add_node(make_node("n1"))
    pods = [make_pod(name, uid=name, node="n1") for name in "abcd"]
    for pod in pods:
        cache.add_pod(PodInfo(pod))
    before = cache.node("n1").generation
    cache.update_pod(pods[1], PodInfo(pods[1]))
    assert [pod.name for pod in cache.node("n1").pods] == ["a", "d", "c", "b"]
    # Upstream takes two; a snapshot only compares them.
    assert cache.node("n1").generation == before + 1


def test_an_update_that_is_another_pod_takes_over_the_entry() -> None:
    # The watch missed that the pod was deleted and created again on the same node.
    cache = cache_with(ADDED)
    successor = make_pod("p", namespace="d", uid="u2", node="n1")
    cache.update_pod(pod_on("n1"), PodInfo(successor))
    assert cache.pod(successor).uid == "u2"
    assert state_of(cache) == (ABSENT, "")
    assert [pod.uid for pod in cache.node("n1").pods] == ["u2"]


def test_an_update_removes_where_the_old_object_says(caplog: pytest.LogCaptureFixture) -> None:
    cache = cache_with(ADDED)
    cache.update_pod(pod_on("gone"), PodInfo(pod_on("n1")))
    assert "Node not found when trying to remove pod" in caplog.text
    # The old copy is still counted on n1: the specification's literal outcome.
    assert len(cache.node("n1").pods) == 2


# --- counts and dump (§3.3) ---


def test_counts_and_dump_include_ghosts_and_assumed_pods() -> None:
    cache = cache_with(ASSUMED)
    cache.add_pod(PodInfo(make_pod("q", uid="u2", node="imaginary")))
    assert cache.node_count() == 3
    assert cache.statistics().pods == 2
    dump = cache.dump()
    assert set(dump.nodes) == {"n1", "n2", "imaginary"}
    assert dump.nodes["imaginary"].node is None
    assert dump.assumed_pods == {"u1"}
    statistics = cache.statistics()
    assert (statistics.assumed_pods, statistics.pods, statistics.nodes) == (1, 2, 3)


def test_an_unknown_node_is_an_error() -> None:
    with pytest.raises(CacheError, match=r"^node x does not exist in scheduler cache$"):
        Cache().node("x")


# --- nodes, ghosts (§4) ---


def listed(cache: Cache) -> list[str]:
    snapshot = Snapshot()
    snapshot.refresh(cache)
    return snapshot.names


def test_4_4_1_a_pod_may_come_before_its_node() -> None:
    cache = Cache()
    cache.add_pod(PodInfo(pod_on("n9")))
    assert list(cache.nodes) == ["n9"]
    assert listed(cache) == []
    cache.add_node(make_node("n9"))
    snapshot = Snapshot()
    snapshot.refresh(cache)
    assert snapshot.names == ["n9"]
    assert snapshot.columns.pod_count.tolist() == [1]
    assert snapshot.columns.requested[0].tolist() == [1000]


def test_4_4_1_an_imaginary_node_goes_with_its_last_pod() -> None:
    cache = Cache()
    cache.add_pod(PodInfo(pod_on("n9")))
    cache.remove_pod(pod_on("n9"))
    assert list(cache.nodes) == []


def test_4_4_2_a_node_with_pods_becomes_a_ghost() -> None:
    cache = cache_with(ADDED)
    cache.remove_node(make_node("n1"))
    assert cache.node("n1").node is None
    assert state_of(cache) == (ADDED, "n1")
    assert cache.statistics().pods == 1
    assert listed(cache) == ["n2"]
    with pytest.raises(CacheError, match=r'^node "n1" in group "" was not found$'):
        cache.remove_node(make_node("n1"))
    cache.remove_pod(pod_on("n1"))
    assert list(cache.nodes) == ["n2"]


def test_4_4_3_an_unknown_node_cannot_be_removed() -> None:
    with pytest.raises(CacheError, match=r"^node x is not found$"):
        Cache().remove_node(make_node("x"))


def test_4_4_6_a_node_added_under_two_zones_is_listed_twice() -> None:
    cache = Cache()
    cache.add_node(make_node("n1", zone="A"))
    cache.add_node(make_node("n1", zone="B"))
    assert cache.node_tree.node_count == 2
    assert listed(cache) == ["n1", "n1"]


def test_a_ghost_that_comes_back_keeps_its_pods() -> None:
    cache = cache_with(ADDED)
    cache.remove_node(make_node("n1"))
    cache.add_node(make_node("n1", cpu="2"))
    info = cache.node("n1")
    assert [pod.uid for pod in info.pods] == ["u1"]
    assert info.allocatable.milli_cpu == 2000
    assert listed(cache) == ["n2", "n1"]


def test_a_ghost_whose_last_pod_is_updated_is_made_again() -> None:
    cache = cache_with(ADDED)
    cache.remove_node(make_node("n1"))
    ghost = cache.node("n1")
    cache.update_pod(pod_on("n1"), PodInfo(pod_on("n1")))
    assert cache.node("n1") is not ghost
    assert cache.node("n1").node is None


def test_an_update_of_an_unknown_node_adds_it() -> None:
    cache = Cache()
    cache.update_node(make_node("n1", zone="A"), make_node("n1", zone="B"))
    assert cache.node_tree.node_count == 1
    assert listed(cache) == ["n1"]


def test_an_update_of_a_ghost_does_not_bring_it_back_into_the_order() -> None:
    # Spec 03 §4.1: with equal zones the tree is not touched.
    cache = cache_with(ADDED)
    cache.remove_node(make_node("n1"))
    cache.update_node(make_node("n1"), make_node("n1"))
    snapshot = Snapshot()
    snapshot.refresh(cache)
    assert snapshot.names == ["n2"]
    snapshot.refresh(cache)
    assert snapshot.names == ["n2"]


def test_a_removal_under_the_wrong_zone_leaves_the_images_counted() -> None:
    cache = Cache()
    cache.add_node(make_node("n1", zone="A", images={"img": 1}))
    with pytest.raises(CacheError, match="was not found"):
        cache.remove_node(make_node("n1", zone="B", images={"img": 1}))
    assert "img" in cache.image_states
    assert list(cache.nodes) == []


# --- recency (§2) ---


def test_the_last_to_change_is_the_most_recent() -> None:
    cache = cache_with()
    assert list(cache.nodes) == ["n1", "n2"]
    run(cache, "assume", "n1")
    assert list(cache.nodes) == ["n2", "n1"]
    cache.update_node(make_node("n2"), make_node("n2"))
    assert list(cache.nodes) == ["n1", "n2"]
    run(cache, "forget", "n1")
    assert list(cache.nodes) == ["n2", "n1"]
    generations = [info.generation for info in cache.nodes.values()]
    assert generations == sorted(set(generations))


def test_a_node_added_again_never_reuses_a_generation() -> None:
    cache = Cache()
    node = make_node("n1")
    before = cache.add_node(node).generation
    cache.remove_node(node)
    assert cache.add_node(node).generation > before


# --- what is kept ---


def test_the_assumed_pod_is_what_was_given_not_a_copy() -> None:
    cache = cache_with()
    info = PodInfo(pod_on("")).assigned_to("n1")
    cache.assume_pod(info)
    assert cache.pod(pod_on("")) is info
    assert info.pod == assign(pod_on(""), "n1")


def test_a_node_object_may_be_replaced_by_another_of_its_name() -> None:
    cache = Cache()
    cache.add_node(make_node("n1", cpu="1"))
    second = make_node("n1", cpu="2")
    cache.add_node(second)
    assert cache.node("n1").node is second
    assert cache.node("n1").allocatable.milli_cpu == 2000
    assert cache.node_tree.list() == ["n1"]
