"""What an observer is called with, and when."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np
import pytest

from kubestow.config.feature_gates import FeatureGates
from kubestow.engine.observer import Observer, callers
from kubestow.errors import ApiError
from kubestow.framework.status import Status
from kubestow.queue import Place
from kubestow.testing import make_node, make_plugin, make_pod

Run = Callable[[Coroutine[Any, Any, None]], None]

GROUPS = FeatureGates({"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True})


class Everything(Observer):
    """Notes the names of the calls, and what shows their time."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.world: Any = None

    def began(self, queued_pod: Any, *, waits: bool) -> None:
        self.calls.append(("began", queued_pod.pod_info.name, waits))

    def searched(self, decision: Any) -> None:
        self.calls.append(("searched", decision.feasible_count, decision.node_name))

    def decided(self, decision: Any, queued_pod: Any) -> None:
        is_assumed = self.world.cache.is_assumed(queued_pod.pod)
        self.calls.append(("decided", queued_pod.pod_info.name, decision.node_name, is_assumed))

    def submitted(self, queued_pod: Any, node_name: str) -> None:
        self.calls.append(("submitted", node_name, self.world.cache.is_assumed(queued_pod.pod)))

    async def binding_failed(self, queued_pod: Any, status: Status) -> None:
        await asyncio.sleep(0)
        assert self.world.cache.is_assumed(queued_pod.pod)
        self.calls.append(("binding_failed", status.code.label))

    def bound(self, queued_pod: Any, node_name: str) -> None:
        self.calls.append(("bound", node_name, self.world.server.bound[queued_pod.pod_info.name]))

    def failed(self, queued_pod: Any, status: Status, nomination: Any) -> None:
        place = self.world.place_of(queued_pod.pod)
        self.calls.append(("failed", queued_pod.pod_info.name, status.code.label, place))

    def collected(self, key: Any, queued_pods: Any) -> None:
        self.calls.append(("collected", key.name, [each.pod_info.name for each in queued_pods]))

    def placements_generated(self, placements: Any, node_names: Any) -> None:
        names = [[node_names[row] for row in each.rows] for each in placements]
        self.calls.append(("placements_generated", names))

    def group_tried(self, outcome: Any, placement: Any) -> None:
        nodes = [member.node_name for member in outcome.members]
        self.calls.append(("group_tried", nodes, placement is not None))

    def placements_scored(self, candidates: Any, totals: Any) -> None:
        self.calls.append(("placements_scored", totals.total))


@pytest.fixture
def observer() -> Everything:
    return Everything()


@pytest.fixture
def watched(make_world: Any, observer: Everything) -> Callable[..., Any]:
    """Makes a world that the observer sees."""

    def make(*plugins: Any, **options: Any) -> Any:
        world = observer.world = make_world(*plugins, observers=[observer], **options)
        return world

    return make


def test_a_pod_that_is_bound(watched: Any, observer: Everything, run: Run) -> None:
    async def go() -> None:
        world = watched(nodes=[make_node("n1")])
        world.create(make_pod("p"))
        world.schedule()
        await world.settle()
        assert observer.calls == [
            ("began", "p", False),
            ("searched", 1, ""),
            ("decided", "p", "n1", False),
            ("submitted", "n1", True),
            ("bound", "n1", "n1"),
        ]

    run(go())


def test_a_pod_that_fits_nowhere(watched: Any, observer: Everything, run: Run) -> None:
    asked: list[int] = []

    def post_filter(*_: Any) -> Any:
        asked.append(len(observer.calls))
        return None, Status.unschedulable("no")

    rejects = make_plugin(
        "Rejects",
        filter=lambda state, pod, nodes: np.ones(len(nodes), np.int64),
        filter_status=lambda state, code: Status.unschedulable("full"),
        post_filter=post_filter,
    )

    async def go() -> None:
        world = watched(rejects, nodes=[make_node("n1")])
        world.create(make_pod("p"))
        world.schedule()
        assert observer.calls == [
            ("began", "p", False),
            ("searched", 0, ""),
            ("decided", "p", "", False),
            ("failed", "p", "Unschedulable", Place.IN_FLIGHT),
        ]
        assert asked == [2]  # PostFilter comes after the search, and before the decision.

    run(go())


def test_a_binding_that_is_refused(watched: Any, observer: Everything, run: Run) -> None:
    """The pod keeps its node until the observer lets it go."""

    async def go() -> None:
        world = watched(nodes=[make_node("n1")])
        pod = world.create(make_pod("p"))
        world.server.refusal = ApiError("refused", code=500)
        world.schedule()
        await world.settle()
        assert observer.calls[2:] == [
            ("decided", "p", "n1", False),
            ("submitted", "n1", True),
            ("binding_failed", "Error"),
            ("failed", "p", "Error", None),
        ]
        assert not world.cache.is_assumed(pod)

    run(go())


def test_a_pod_that_is_skipped_is_not_shown(watched: Any, observer: Everything, run: Run) -> None:
    async def go() -> None:
        world = watched(nodes=[make_node("n1")])
        pod = world.create(make_pod("p"))
        queued_pod = world.queue.pop_nowait()
        world.scheduler.cache.assume_pod(queued_pod.pod_info.assigned_to("n1"))
        assert world.scheduler.schedule_one(queued_pod) is None
        assert observer.calls == []
        assert world.place_of(pod) is None

    run(go())


def test_a_group(watched: Any, observer: Everything, run: Run) -> None:
    """Members are collected and tried, once for each placement, before one is submitted."""

    async def go() -> None:
        world = watched(nodes=[make_node("n1", cpu="4")], gates=GROUPS)
        for name in ("p1", "p2"):
            world.create(make_pod(name, cpu="1", group="g"))
        world.scheduler.schedule_one(world.queue.pop_nowait())
        await world.settle()
        assert observer.calls == [
            ("collected", "g", ["p1", "p2"]),
            ("began", "p1", False),
            ("placements_generated", [["n1"]]),
            ("searched", 1, ""),
            ("decided", "p1", "n1", False),
            ("searched", 1, ""),
            ("decided", "p2", "n1", False),
            ("group_tried", ["n1", "n1"], True),
            ("submitted", "n1", True),
            ("submitted", "n1", True),
            ("bound", "n1", "n1"),
            ("bound", "n1", "n1"),
        ]

    run(go())


class Decisions(Observer):
    def __init__(self) -> None:
        self.count = 0

    def decided(self, decision: Any, queued_pod: Any) -> None:
        self.count += 1


def test_what_an_observer_does_not_define_is_not_called() -> None:
    some, everything = Decisions(), Everything()
    assert callers([some], Observer.searched) == ()
    assert callers([some, everything], Observer.decided) == (some.decided, everything.decided)
    assert callers([some, everything], Observer.searched) == (everything.searched,)
