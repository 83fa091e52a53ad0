"""How events change the cache, and what the queue gets (spec 03 §11)."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from kubestow.api.meta import Condition
from kubestow.api.node import Node
from kubestow.api.pod import Pod, assign
from kubestow.api.pod_info import PodInfo
from kubestow.api.storage import PersistentVolume
from kubestow.cache.cache import Cache
from kubestow.engine.handlers import EventHandlers
from kubestow.errors import CacheCorruptedError, CacheError
from kubestow.framework.events import ClusterEvent, Resource
from kubestow.framework.waiting import WaitingPods
from kubestow.simulator.virtual_time import run_in_virtual_time
from kubestow.testing import make_node, make_pod

DELETED = datetime(2026, 1, 1, tzinfo=UTC)
MINE, FOREIGN = "default-scheduler", "another-scheduler"


class RecordingQueue:
    """Records the calls in order; a move by its label and the objects' names."""

    def __init__(self, cache: Cache) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.moves: list[tuple[ClusterEvent, Any, Any, Callable[[Pod], bool] | None]] = []
        self._cache = cache

    def add(self, pod: Pod) -> None:
        self.calls.append(("add", pod.metadata.name))

    def update(self, old: Pod, new: Pod) -> None:
        self.calls.append(("update", old.metadata.name, new.metadata.name))

    def delete(self, pod: Pod) -> None:
        self.calls.append(("delete", pod.metadata.name))

    def move_all(
        self,
        event: ClusterEvent,
        old: Any,
        new: Any,
        pre_check: Callable[[Pod], bool] | None = None,
    ) -> None:
        self.calls.append((event.label,))
        self.moves.append((event, old, new, pre_check))
        self.node_names_when_moved = list(self._cache.nodes)


class Harness:
    def __init__(self) -> None:
        self.cache = Cache()
        self.queue = RecordingQueue(self.cache)
        self.waiting_pods = WaitingPods()
        self.handlers = EventHandlers(
            self.cache,
            self.queue,  # type: ignore[arg-type]
            self.waiting_pods,
            [MINE],
        )
        for name in ("n1", "n2"):
            self.cache.add_node(make_node(name))

    def assume(self, pod: Pod, node_name: str) -> PodInfo:
        info = PodInfo(assign(pod, node_name))
        self.cache.assume_pod(info)
        return info

    def node_of(self, pod: Pod) -> str | None:
        try:
            return self.cache.pod(pod).pod.spec.node_name
        except CacheError:
            return None

    @property
    def calls(self) -> list[tuple[str, ...]]:
        return self.queue.calls


@pytest.fixture
def harness() -> Harness:
    return Harness()


def pod(**fields: Any) -> Pod:
    return make_pod("p", uid="u1", **fields)


def version(pod: Pod, number: int, **changes: Any) -> Pod:
    metadata = msgspec.structs.replace(pod.metadata, resource_version=str(number), **changes)
    return msgspec.structs.replace(pod, metadata=metadata)


# --- added pods ---


def test_an_unassigned_pod_of_ours_is_queued(harness: Harness) -> None:
    harness.handlers.pod_added(pod(deleted=DELETED))  # terminating ones are skipped when popped
    assert harness.calls == [("add", "p")]
    assert harness.node_of(pod()) is None


def test_an_assigned_pod_of_any_scheduler_is_cached(harness: Harness) -> None:
    harness.handlers.pod_added(pod(node="n1", scheduler_name=FOREIGN))
    assert harness.node_of(pod()) == "n1"
    assert harness.calls == [("AssignedPodAdd",)]


def test_a_pod_the_cache_has_already_is_an_event(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.handlers.pod_added(pod(node="n1"))
    harness.handlers.pod_added(pod(node="n1"))
    assert "Scheduler cache AddPod failed" in caplog.text
    assert harness.calls == [("AssignedPodAdd",)] * 2


# --- worked examples (§11.9) ---


@pytest.mark.parametrize("assumed_on", ["n1", "n2"])
def test_11_9_1_and_2_the_binding_is_seen(harness: Harness, assumed_on: str) -> None:
    old = pod()
    harness.assume(old, assumed_on)
    harness.handlers.pod_updated(old, assign(old, "n1"))
    assert harness.node_of(old) == "n1"
    assert not harness.cache.is_assumed(old)
    assert harness.calls == [("AssignedPodAdd",), ("delete", "p")]


def test_11_9_3_pods_of_other_schedulers_count_once_they_are_placed(harness: Harness) -> None:
    old = pod(scheduler_name=FOREIGN)
    handlers = harness.handlers
    handlers.pod_added(old)
    handlers.pod_updated(old, version(old, 2))
    handlers.pod_deleted(old)
    assert harness.calls == []
    handlers.pod_updated(old, assign(old, "n1"))
    assert harness.node_of(old) == "n1"
    assert harness.calls == [("AssignedPodAdd",)]


def test_11_9_4_an_assumed_pod_that_is_deleted_frees_its_node(harness: Harness) -> None:
    harness.assume(pod(), "n1")
    harness.handlers.pod_deleted(pod())
    assert harness.cache.node("n1").pods == []
    assert harness.calls == [("delete", "p"), ("AssignedPodDelete",)]
    (_, old, new, pre_check) = harness.queue.moves[0]
    assert (old.spec.node_name, new, pre_check) == ("n1", None, None)


def test_a_pod_that_waits_at_permit_is_rejected_there_instead(harness: Harness) -> None:
    async def go() -> str:
        info = harness.assume(pod(), "n1")
        harness.waiting_pods.add(info, {"Permit": 10.0})
        harness.handlers.pod_deleted(pod())
        assert harness.cache.is_assumed(pod())  # its binding cycle will forget it
        assert harness.calls == [("delete", "p"), ("AssignedPodDelete",)]
        waiting = harness.waiting_pods.get("u1")
        assert waiting is not None
        return (await waiting.wait_outcome()).message

    assert run_in_virtual_time(go()) == "removed"


def test_a_pod_that_waits_but_is_decided_is_forgotten(harness: Harness) -> None:
    async def go() -> None:
        info = harness.assume(pod(), "n1")
        harness.waiting_pods.add(info, {"Permit": 10.0})
        harness.waiting_pods.reject("u1")
        harness.handlers.pod_deleted(pod())
        assert harness.node_of(pod()) is None

    run_in_virtual_time(go())


def test_11_9_5_a_tombstone_may_lack_the_node(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.handlers.pod_added(pod(node="n1"))
    harness.calls.clear()
    harness.handlers.pod_deleted_unseen(pod())
    assert harness.node_of(pod()) is None
    assert harness.calls == [("AssignedPodDelete",), ("delete", "p")]
    harness.calls.clear()
    harness.handlers.pod_deleted_unseen(pod())
    assert "Scheduler cache RemovePod failed" in caplog.text
    assert harness.calls == [("AssignedPodDelete",), ("delete", "p")]


def test_a_tombstone_of_an_assumed_pod_does_not_touch_its_wait(harness: Harness) -> None:
    async def go() -> None:
        info = harness.assume(pod(), "n1")
        harness.waiting_pods.add(info, {"Permit": 10.0})
        harness.handlers.pod_deleted_unseen(pod())
        assert harness.node_of(pod()) is None
        assert harness.calls == [("AssignedPodDelete",), ("delete", "p")]
        waiting = harness.waiting_pods.get("u1")
        assert waiting is not None
        assert waiting.pending_plugins == ["Permit"]

    run_in_virtual_time(go())


def test_11_9_6_the_same_version_is_no_event(harness: Harness) -> None:
    old = version(pod(), 5)
    harness.handlers.pod_updated(old, version(pod(labels={"a": "b"}), 5))
    assert harness.calls == []


def test_11_9_6_of_an_assumed_pod_only_the_deletion_counts(harness: Harness) -> None:
    old = version(pod(), 1)
    harness.assume(old, "n1")
    harness.handlers.pod_updated(old, version(pod(labels={"a": "b"}), 2))
    assert harness.calls == []
    assert harness.cache.is_assumed(old)
    terminating = version(pod(), 3, deletion_timestamp=DELETED)
    harness.handlers.pod_updated(old, terminating)
    assert harness.calls == [("AssignedPodDelete",)]
    assert harness.node_of(old) is None


def test_an_assumed_pod_that_was_terminating_already_stays(harness: Harness) -> None:
    old = version(pod(), 1, deletion_timestamp=DELETED)
    harness.assume(old, "n1")
    harness.handlers.pod_updated(old, version(old, 2))
    assert harness.calls == []
    assert harness.cache.is_assumed(old)


@pytest.mark.parametrize(
    ("before", "after", "is_moved"),
    [
        pytest.param("n1", "n2", True, id="11.9-7-another"),
        pytest.param("n1", "", True, id="gone"),
        pytest.param("", "n1", False, id="11.9-7-new"),
        pytest.param("n1", "n1", False, id="the-same"),
    ],
)
def test_11_9_7_the_end_of_a_nomination_moves_pods_of_lower_priority(
    harness: Harness, before: str, after: str, is_moved: bool
) -> None:
    old = version(pod(nominated_node=before, priority=100), 1)
    new = version(pod(nominated_node=after, priority=100), 2)
    harness.handlers.pod_updated(old, new)
    moves = [("AssignedPodDelete",)] if is_moved else []
    assert harness.calls == [("update", "p", "p"), *moves]
    if is_moved:
        (_, moved, nothing, pre_check) = harness.queue.moves[0]
        assert (moved, nothing) == (old, None)
        assert pre_check is not None
        passes = [pre_check(make_pod(priority=priority)) for priority in (99, 100, 101, None)]
        assert passes == [True, True, False, True]


@pytest.mark.parametrize("nominated", ["", "n1"])
def test_a_waiting_pod_that_is_deleted_gives_its_nomination_back(
    harness: Harness, nominated: str
) -> None:
    harness.handlers.pod_deleted(pod(nominated_node=nominated, priority=5))
    moves = [("AssignedPodDelete",)] if nominated else []
    assert harness.calls == [("delete", "p"), *moves]


@pytest.mark.parametrize(
    ("old", "new", "events"),
    [
        pytest.param(
            pod(node="n1", cpu="500m", labels={"a": "1"}),
            pod(node="n1", cpu="250m", labels={"a": "2"}),
            ["AssignedPodUpdatePodLabel", "AssignedPodUpdatePodScaleDown"],
            id="11.9-9-label-and-cpu",
        ),
        pytest.param(
            pod(node="n1"),
            pod(node="n1", phase="Running"),
            ["AssignedPodUpdate"],
            id="11.9-9-phase",
        ),
    ],
)
def test_an_assigned_pod_that_changes(
    harness: Harness, old: Pod, new: Pod, events: list[str]
) -> None:
    harness.handlers.pod_added(old)
    harness.calls.clear()
    harness.handlers.pod_updated(old, new)
    assert harness.calls == [(event,) for event in events]
    assert harness.cache.pod(new).pod is new


def test_an_update_the_cache_refuses_is_an_event(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.handlers.pod_updated(pod(node="n1"), pod(node="n1"))
    assert "Scheduler cache UpdatePod failed" in caplog.text
    assert harness.calls == [("AssignedPodUpdate",)]


def test_11_9_10_a_pod_that_ends_is_deleted_from_our_view(harness: Harness) -> None:
    harness.handlers.pod_added(pod(node="n1"))
    harness.calls.clear()
    harness.handlers.pod_deleted(pod(node="n1", phase="Succeeded"))
    assert harness.cache.node("n1").pods == []
    assert harness.calls == [("AssignedPodDelete",)]


def test_a_corrupted_cache_ends_the_process(harness: Harness) -> None:
    harness.handlers.pod_added(pod(node="n1"))
    with pytest.raises(CacheCorruptedError):
        harness.handlers.pod_updated(pod(node="n1"), pod(node="n2"))
    with pytest.raises(CacheCorruptedError):
        harness.handlers.pod_deleted(pod(node="n2"))


@pytest.mark.parametrize(
    ("node", "new_node", "events"),
    [
        ("n1", "n2", [("AssignedPodDelete",), ("AssignedPodAdd",)]),
        ("n1", "n1", [("AssignedPodDelete",), ("AssignedPodAdd",)]),
        ("n1", "", [("AssignedPodDelete",), ("add", "p")]),
        ("", "n1", [("delete", "p"), ("AssignedPodAdd",)]),
        ("", "", [("delete", "p"), ("add", "p")]),
    ],
)
def test_a_pod_made_again_under_its_name_is_another_pod(
    harness: Harness, node: str, new_node: str, events: list[tuple[str, ...]]
) -> None:
    old, new = make_pod("p", uid="u1", node=node), make_pod("p", uid="u2", node=new_node)
    harness.handlers.pod_added(old)
    harness.calls.clear()
    harness.handlers.pod_updated(old, new)
    assert harness.calls == events
    assert harness.node_of(old) is None
    assert harness.node_of(new) == (new_node or None)


def test_the_place_of_an_assumed_pod_is_free_when_it_was_made_again(harness: Harness) -> None:
    old = make_pod("p", uid="u1")
    harness.assume(old, "n1")
    harness.handlers.pod_updated(old, make_pod("p", uid="u2"))
    assert harness.node_of(old) is None
    assert harness.calls == [("delete", "p"), ("AssignedPodDelete",), ("add", "p")]


def test_a_pod_without_uid_stops_no_handler(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    old = version(make_pod("p", uid=""), 1)
    harness.handlers.pod_updated(old, version(old, 2))
    harness.handlers.pod_deleted(old)
    assert harness.calls == [("update", "p", "p"), ("delete", "p")]
    assert "cannot get cache key for pod with empty UID" in caplog.text


def test_an_assumed_pod_of_no_profile_is_logged_and_left(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.assume(pod(scheduler_name=FOREIGN), "n1")
    harness.handlers.pod_deleted(pod())  # seen as ours, cached as foreign
    assert harness.calls == [("delete", "p")]
    assert "No profile for assumed pod default/p" in caplog.text
    assert harness.node_of(pod()) == "n1"


# --- nodes (§11.6) ---


def test_a_new_node(harness: Harness) -> None:
    node = make_node("n3")
    harness.handlers.node_added(node)
    assert harness.cache.node("n3").node is node
    assert harness.calls == [("NodeAdd",)]
    assert harness.queue.node_names_when_moved == ["n1", "n2", "n3"]


def test_a_node_is_deleted_after_the_queue_got_the_event(harness: Harness) -> None:
    harness.handlers.node_deleted(make_node("n1"))
    assert harness.calls == [("NodeDelete",)]
    assert harness.queue.node_names_when_moved == ["n1", "n2"]
    assert list(harness.cache.nodes) == ["n2"]


def test_deleting_an_unknown_node_is_an_event(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.handlers.node_deleted(make_node("x"))
    assert harness.calls == [("NodeDelete",)]
    assert "Scheduler cache RemoveNode failed" in caplog.text


def heartbeat(second: int) -> list[Condition]:
    beat = datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC)
    return [Condition(type="Ready", status="True", last_probe_time=beat)]


@pytest.mark.parametrize(
    ("old", "new", "events"),
    [
        pytest.param(
            make_node("n1", cpu="4", conditions=heartbeat(1)),
            make_node("n1", cpu="8", labels={"a": "b"}, conditions=heartbeat(2)),
            ["NodeUpdateNodeAllocatable", "NodeUpdateNodeLabel"],
            id="11.9-8-cpu-and-label",
        ),
        pytest.param(
            make_node("n1", unschedulable=True, taints=["u:NoSchedule"]),
            make_node("n1"),
            ["NodeUpdateNodeTaint", "NodeUpdateNodeTaint"],
            id="11.9-8-uncordon",
        ),
        pytest.param(
            make_node("n1"),
            make_node("n1", unschedulable=True, taints=["u:NoSchedule"]),
            ["NodeUpdateNodeTaint"],
            id="11.9-8-cordon",
        ),
        pytest.param(
            make_node("n1", memory="1Gi"), make_node("n1", memory="1024Mi"), [], id="11.9-8-units"
        ),
        pytest.param(
            make_node("n1"), make_node("n1", images={"i": 1}), [], id="11.9-8-images-only"
        ),
    ],
)
def test_a_node_that_changes(harness: Harness, old: Node, new: Node, events: list[str]) -> None:
    harness.handlers.node_updated(old, new)
    assert harness.calls == [(event,) for event in events]
    assert harness.cache.node("n1").node is new


# --- everything else (§11.7) ---


@pytest.mark.parametrize(
    ("has_old", "has_new", "label"),
    [
        (False, True, "PersistentVolumeAdd"),
        (True, True, "PersistentVolumeUpdate"),
        (True, False, "PersistentVolumeDelete"),
    ],
)
def test_other_objects_are_events_only(
    harness: Harness, has_old: bool, has_new: bool, label: str
) -> None:
    old = PersistentVolume() if has_old else None
    new = PersistentVolume() if has_new else None
    harness.handlers.object_changed(Resource.PERSISTENT_VOLUME, old, new)
    assert harness.calls == [(label,)]
    assert harness.queue.moves[0][1:] == (old, new, None)
