"""How victims are evicted beside the scheduling loop (spec 08 A10)."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from kubestow.api.meta import Condition
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cache.objects import ObjectStore
from kubestow.cluster.resources import NAMESPACES, PODS
from kubestow.errors import ApiError, NotFoundError
from kubestow.framework.status import Code
from kubestow.framework.waiting import PodInPreBind
from kubestow.logs import FIELDS, level_of
from kubestow.plugins.default_preemption.executor import Executor, Preemptor
from kubestow.testing import ManualClock, make_node, make_pod
from tools.small_cluster import SmallCluster

DELETED = datetime(2024, 1, 1, tzinfo=UTC)
NOW_S = 1_700_000_000
P = make_pod("p", uid="u1", priority=10)


class RecordingClient(MemoryClient):
    """Records its calls; fails where configured, or calls back. Pods deleted leave the store."""

    store: ObjectStore[Pod]

    def __init__(self) -> None:
        super().__init__(MemoryCluster(ManualClock()))
        self.calls: list[tuple[str, ...]] = []
        self.conditions: list[Condition] = []
        self.failures: dict[tuple[str, ...], Exception] = {}
        self.on_call: Callable[[tuple[str, ...]], None] = lambda call: None

    async def patch_pod_status(
        self,
        pod: Pod,
        *,
        condition: Condition | None = None,
        nominated_node_name: str | None = None,
    ) -> None:
        if condition is not None:
            self.conditions.append(condition)
            await self._called("condition", pod.metadata.name)
        if nominated_node_name is not None:
            assert nominated_node_name == ""
            await self._called("clear", pod.metadata.name)

    async def delete_pod(self, pod: Pod) -> None:
        await self._called("delete", pod.metadata.name)

    async def _called(self, *call: str) -> None:
        self.calls.append(call)
        self.on_call(call)
        # Let the others have a turn, as a request over a network would.
        await asyncio.sleep(0)
        failure = self.failures.get(call)
        if isinstance(failure, NotFoundError) or (failure is None and call[0] == "delete"):
            self.store.remove("default", call[1])
        if failure is not None:
            raise failure


class Setting:
    def __init__(
        self, victims: Sequence[Pod], *, waiting: Sequence[Pod] = (), is_async: bool = True
    ) -> None:
        self.client = RecordingClient()
        self.cluster = SmallCluster(
            [make_node("n1")],
            victims,
            plugins=(),
            waiting=[P, *waiting],
            client=self.client,
            now_s=NOW_S,
        )
        self.client.store = self.cluster.objects.pods
        self.executor = Executor("DefaultPreemption", self.cluster.handle, is_async=is_async)
        self.victims = [PodInfo(victim) for victim in victims]

    def evict(self) -> None:
        self.executor.evict(Preemptor.of_pod(PodInfo(P), is_member=False), "n1", self.victims)

    def run(self) -> None:
        self.evict()
        asyncio.run(self.cluster.run_work())

    @property
    def notes(self) -> list[tuple[str, str]]:
        return [(event.regarding.metadata.name, event.note) for event in self.cluster.events.events]


def victim(name: str, *, deleted: datetime | None = None) -> Pod:
    return make_pod(name, uid=f"uid-{name}", node="n1", priority=1, deleted=deleted)


def test_victims_that_are_leaving_are_not_touched() -> None:
    # A10 example 1.
    setting = Setting([victim("v1"), victim("v2", deleted=DELETED)])
    setting.run()
    assert setting.client.calls == [("condition", "v1"), ("delete", "v1")]
    assert setting.notes == [("v1", "Preempted by pod u1 on node n1")]
    (event,) = setting.cluster.events.events
    assert (event.type, event.reason, event.action) == ("Normal", "Preempted", "Preempting")
    assert event.related is None
    assert setting.cluster.activated == []


def test_the_condition_names_the_preempting_scheduler() -> None:
    setting = Setting([victim("v1")])
    setting.run()
    (written,) = setting.client.conditions
    assert written == Condition(
        type="DisruptionTarget",
        status="True",
        reason="PreemptionByScheduler",
        message="default-scheduler: preempting to accommodate a higher priority pod",
        last_transition_time=datetime.fromtimestamp(NOW_S, UTC),
    )


def test_a_condition_that_is_there_already_is_not_written_again() -> None:
    condition = Condition(
        type="DisruptionTarget",
        status="True",
        reason="PreemptionByScheduler",
        message="default-scheduler: preempting to accommodate a higher priority pod",
    )
    setting = Setting([make_pod("v1", node="n1", priority=1, conditions=[condition])])
    setting.run()
    assert setting.client.calls == [("delete", "v1")]


def test_nothing_to_do_where_all_victims_are_leaving() -> None:
    # A10 example 2.
    nominated = make_pod("q", priority=1, nominated_node="n1")
    setting = Setting([victim("v1", deleted=DELETED)], waiting=[nominated])
    setting.evict()
    assert not setting.executor.is_preempting(P.metadata.uid)
    assert len(setting.cluster.pending_work) == 0


def test_a_victim_waiting_at_permit_is_turned_back_in_memory() -> None:
    # A10 example 3.
    setting = Setting([victim("v1")])

    async def scenario() -> None:
        waiting_pods = setting.cluster.handle.waiting_pods
        waiting_pods.add(setting.victims[0], {"Gang": 10.0})
        setting.evict()
        await setting.cluster.run_work()
        waiting = waiting_pods.get(setting.victims[0].uid)
        assert waiting is not None
        status = await waiting.wait_outcome()
        assert (status.code, status.message, status.plugin) == (
            Code.ERROR,
            "preempted",
            "DefaultPreemption",
        )

    asyncio.run(scenario())
    assert setting.client.calls == []
    assert setting.notes == [("v1", "Preempted by pod u1 on node n1 (in kube-scheduler memory).")]


def test_a_victim_allowed_a_moment_ago_is_deleted() -> None:
    setting = Setting([victim("v1")])

    async def scenario() -> None:
        waiting_pods = setting.cluster.handle.waiting_pods
        waiting_pods.add(setting.victims[0], {"Gang": 10.0})
        waiting = waiting_pods.get(setting.victims[0].uid)
        assert waiting is not None
        waiting.allow("Gang")
        setting.evict()
        await setting.cluster.run_work()

    asyncio.run(scenario())
    assert setting.client.calls == [("condition", "v1"), ("delete", "v1")]
    assert setting.notes == [("v1", "Preempted by pod u1 on node n1")]


@pytest.mark.parametrize("is_prebound", [False, True])
def test_a_victim_in_pre_bind_is_cancelled_unless_it_is_too_late(is_prebound: bool) -> None:
    setting = Setting([victim("v1")])
    entry = PodInPreBind(None)
    if is_prebound:
        entry.mark_prebound()
    setting.cluster.handle.in_pre_bind[setting.victims[0].uid] = entry
    setting.run()
    if is_prebound:
        assert setting.client.calls == [("condition", "v1"), ("delete", "v1")]
    else:
        assert entry.cancel_reason == "preempted by DefaultPreemption"
        assert setting.client.calls == []
        assert setting.notes == [
            ("v1", "Preempted by pod u1 on node n1 (in kube-scheduler memory).")
        ]


@pytest.mark.parametrize("place", ["at permit", "in prebind"])
def test_a_victim_that_was_stopped_is_not_evicted_again(place: str) -> None:
    """Its place is free when its binding has ended; the event of that queues the preemptor."""
    setting = Setting([victim("v1")])

    async def scenario() -> None:
        handle, stopped = setting.cluster.handle, setting.victims[0]
        if place == "at permit":
            handle.waiting_pods.add(stopped, {"Gang": 10.0})
        else:
            handle.in_pre_bind[stopped.uid] = PodInPreBind(None)
        setting.evict()
        await setting.cluster.run_work()
        # Tried again before the end of the binding: other pods were deleted.
        setting.evict()
        assert not setting.executor.is_preempting(P.metadata.uid)
        handle.waiting_pods.remove(stopped.uid)
        handle.in_pre_bind.pop(stopped.uid, None)
        await setting.cluster.run_work()

    asyncio.run(scenario())
    assert setting.client.calls == []
    assert setting.notes == [("v1", "Preempted by pod u1 on node n1 (in kube-scheduler memory).")]


def test_the_last_victim_goes_last() -> None:
    setting = Setting([victim("v1"), victim("v2"), victim("v3")])
    setting.run()
    assert set(setting.client.calls[:2]) == {("condition", "v1"), ("condition", "v2")}
    assert setting.client.calls[-2:] == [("condition", "v3"), ("delete", "v3")]


def test_a_failure_spares_the_last_victim_and_wakes_the_preemptor() -> None:
    # A10 example 4.
    setting = Setting([victim("v1"), victim("v2"), victim("v3")])
    setting.client.failures["delete", "v1"] = ApiError("no")
    setting.run()
    assert not any(name == "v3" for _, name in setting.client.calls)
    assert setting.cluster.activated == [P]
    assert not setting.executor.is_preempting(P.metadata.uid)


def test_the_preemptor_is_unmarked_before_it_is_woken() -> None:
    setting = Setting([victim("v1")])
    setting.client.failures["condition", "v1"] = ApiError("no")
    marked: list[bool] = []
    setting.cluster.handle.activate = lambda pods: marked.append(
        setting.executor.is_preempting(P.metadata.uid)
    )
    setting.run()
    assert marked == [False]


@pytest.mark.parametrize("call", ["condition", "delete"])
def test_a_victim_that_is_gone_is_done_without_an_event(call: str) -> None:
    setting = Setting([victim("v1")])
    setting.client.failures[call, "v1"] = NotFoundError("gone")
    setting.run()
    assert setting.notes == []
    assert setting.cluster.activated == []


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("when", ["before the condition", "before the deletion"])
def test_a_pod_made_again_under_the_name_of_a_victim_is_left_alone(
    when: str, is_async: bool
) -> None:
    """As a StatefulSet does: the API server has another pod of this name than was chosen."""
    api = MemoryCluster(ManualClock())
    document = {
        "metadata": {"name": "db-0", "namespace": "default"},
        "spec": {"nodeName": "n1", "containers": [{"name": "main", "image": "db"}]},
    }
    api.create(NAMESPACES, {"metadata": {"name": "default"}})
    chosen = api.create(PODS, document).typed
    assert isinstance(chosen, Pod)

    def make_again() -> None:
        api.delete(PODS, "default", "db-0", grace_period_s=0)
        api.create(PODS, document)

    class Client(MemoryClient):
        async def patch_pod_status(self, pod: Pod, **changes: Any) -> None:
            if when == "before the condition":
                make_again()
            await super().patch_pod_status(pod, **changes)
            if when == "before the deletion":
                make_again()

    cluster = SmallCluster([make_node("n1")], [chosen], plugins=(), waiting=[P], client=Client(api))
    executor = Executor("DefaultPreemption", cluster.handle, is_async=is_async)
    executor.evict(Preemptor.of_pod(PodInfo(P), is_member=False), "n1", [PodInfo(chosen)])

    async def evict_before_the_watch_shows_it() -> None:
        work = asyncio.ensure_future(cluster.run_work())
        for _ in range(20):
            await asyncio.sleep(0)
        cluster.objects.put(api.get(PODS, "default", "db-0").typed)
        await work

    asyncio.run(evict_before_the_watch_shows_it())
    again = api.get(PODS, "default", "db-0").typed
    assert isinstance(again, Pod)
    assert again.metadata.uid != chosen.metadata.uid
    assert (again.metadata.deletion_timestamp, again.status.conditions) == (None, ())
    assert cluster.events.events == []


class Watch:
    """Shows what the API server has done when the test lets it, as a watch that is behind."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self.is_queued: list[bool] = []

    def show_gone(self, name: str) -> None:
        """The pod is gone, and the queue asks whether the preemptor may be tried again."""
        self._setting.cluster.objects.pods.remove("default", name)
        self.ask()

    def show_terminating(self, name: str) -> None:
        """No plugin registers for this: the queue asks nothing."""
        self._setting.cluster.objects.pods.put(victim(name, deleted=DELETED))

    def ask(self) -> None:
        self.is_queued.append(not self._setting.executor.is_preempting(P.metadata.uid))


class LateSetting(Setting):
    """Deletions reach the store only through `watch`."""

    def __init__(self, victims: Sequence[Pod]) -> None:
        super().__init__(victims)
        self.client.store = ObjectStore[Pod]()
        self.watch = Watch(self)


async def turns() -> None:
    for _ in range(40):
        await asyncio.sleep(0)


Steps = Sequence[Callable[[Watch], None]]


@pytest.mark.parametrize(
    ("names", "before", "after", "is_queued", "is_activated"),
    [
        # Another preemptor evicted the victim, and the event came before the own work began. The
        # only victim is known from the start.
        pytest.param("v", [lambda w: w.show_gone("v")], [], [True], False, id="gone-at-first"),
        pytest.param(
            "vw",
            [lambda w: w.show_gone("w"), lambda w: w.show_gone("v")],
            [],
            [False, False],
            True,
            id="all-gone-at-first",
        ),
        # An event is still to come: that of the last victim that leaves.
        pytest.param(
            "vw",
            [lambda w: w.show_gone("v"), lambda w: w.show_terminating("w")],
            [],
            [False],
            False,
            id="one-gone-one-leaving",
        ),
        pytest.param(
            "vw",
            [lambda w: w.show_gone("v")],
            [lambda w: w.show_gone("w")],
            [False, True],
            False,
            id="the-last-event-queues-it",
        ),
        # The answers came before the watch.
        pytest.param("v", [], [Watch.ask], [False], None, id="not-seen-yet"),
        pytest.param(
            "v", [], [lambda w: w.show_gone("v")], [True], False, id="its-own-event-queues-it"
        ),
        pytest.param(
            "vw",
            [],
            [lambda w: w.show_gone("v"), lambda w: w.show_gone("w")],
            [False, True],
            False,
            id="all-are-awaited",
        ),
        pytest.param(
            "v", [], [lambda w: w.show_terminating("v"), Watch.ask], [True], False, id="leaving"
        ),
        # An event of another pod came before: the preemptor may fit elsewhere.
        pytest.param(
            "v", [], [Watch.ask, lambda w: w.show_terminating("v")], [False], True, id="given-back"
        ),
    ],
)
def test_no_event_is_lost_to_a_preemptor_that_was_held_back(
    names: str, before: Steps, after: Steps, is_queued: list[bool], is_activated: bool | None
) -> None:
    """`before`: what the watch shows before the evictions begin; `after`: when all are answered.

    Activated or not; None: the preemptor still waits.
    """
    setting = LateSetting([victim(name) for name in names])

    async def main() -> None:
        setting.evict()
        for step in before:
            step(setting.watch)
        work = asyncio.create_task(setting.cluster.run_work())
        await turns()
        for step in after:
            step(setting.watch)
        await turns()
        assert setting.watch.is_queued == is_queued
        assert work.done() == (is_activated is not None)
        assert setting.cluster.activated == ([P] if is_activated else [])
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)

    asyncio.run(main())


def test_a_victim_stopped_in_memory_has_an_event_of_its_own() -> None:
    setting = LateSetting([victim("v1"), victim("v2")])

    async def main() -> None:
        setting.cluster.handle.waiting_pods.add(setting.victims[1], {"Gang": 10.0})
        setting.evict()
        setting.watch.show_gone("v1")
        await setting.cluster.run_work()

    asyncio.run(main())
    assert setting.watch.is_queued == [False]
    # The end of its binding, which is yet to come, queues the preemptor.
    assert setting.cluster.activated == []


def test_a_victim_whose_binding_fails_meanwhile_leaves_no_event_to_wait_for() -> None:
    setting = LateSetting([victim("v1")])
    pods = setting.cluster.objects.pods
    pods.put(make_pod("v1", uid="uid-v1", priority=1))  # It is being bound.

    def bind_failed(call: tuple[str, ...]) -> None:
        if call == ("delete", "v1"):
            setting.watch.ask()

    async def main() -> None:
        setting.client.on_call = bind_failed
        setting.evict()
        work = asyncio.create_task(setting.cluster.run_work())
        await turns()
        # No plugin registers for the deletion of a pod without a node: the queue asks nothing.
        pods.remove("default", "v1")
        await work

    asyncio.run(main())
    assert setting.watch.is_queued == [False]
    assert setting.cluster.activated == [P]


def test_two_evictions_of_one_preemptor_have_one_mark() -> None:
    """As upstream: the victim that was noted last counts, and the first that ends removes it."""
    setting = LateSetting([victim("v1")])
    others = [PodInfo(victim(name)) for name in ("v2", "v3")]
    for other in others:
        setting.cluster.objects.pods.put(other.pod)

    async def main() -> None:
        setting.evict()
        first = asyncio.create_task(setting.cluster.run_work())
        for _ in range(3):  # Tasks start, one in the other.
            await asyncio.sleep(0)
        # The watch is faster than the answer, and the pod is tried again.
        setting.watch.show_gone("v1")
        setting.executor.evict(Preemptor.of_pod(PodInfo(P), is_member=False), "n1", others)
        setting.watch.ask()
        assert not first.done()
        await first
        setting.watch.ask()
        setting.cluster.drop_work()

    asyncio.run(main())
    assert setting.watch.is_queued == [True, True, True]


def test_the_deletion_of_a_victim_stopped_in_memory_is_not_awaited() -> None:
    setting = Setting([victim("v1"), victim("v2")])

    async def main() -> None:
        setting.cluster.handle.waiting_pods.add(setting.victims[1], {"Gang": 10.0})
        setting.evict()
        await setting.cluster.run_work()

    asyncio.run(main())
    assert setting.client.calls == [("condition", "v1"), ("delete", "v1")]
    assert not setting.executor.is_preempting(P.metadata.uid)


def test_the_preemptor_waits_until_the_last_victim_is_on_its_way() -> None:
    # A10 example 5.
    setting = Setting([victim("v1"), victim("v2")])
    seen: list[tuple[tuple[str, ...], bool]] = []

    def look(call: tuple[str, ...]) -> None:
        if call == ("delete", "v2"):
            # The watch is quicker than the answer to the request.
            setting.cluster.objects.pods.put(victim("v2", deleted=DELETED))
        seen.append((call, setting.executor.is_preempting(P.metadata.uid)))

    setting.client.on_call = look
    setting.run()
    assert seen == [
        (("condition", "v1"), True),
        (("delete", "v1"), True),
        (("condition", "v2"), True),
        (("delete", "v2"), False),
    ]
    assert not setting.executor.is_preempting(P.metadata.uid)


def test_the_preemptor_need_not_wait_for_a_last_victim_that_is_gone() -> None:
    setting = Setting([victim("v1")])
    seen: list[bool] = []

    def look(call: tuple[str, ...]) -> None:
        setting.cluster.objects.pods.remove("default", "v1")
        seen.append(setting.executor.is_preempting(P.metadata.uid))

    setting.client.on_call = look
    setting.run()
    assert seen == [False, False]


def test_less_important_nominations_are_cleared_first() -> None:
    waiting = [
        make_pod("less", priority=9, nominated_node="n1"),
        make_pod("equal", priority=10, nominated_node="n1"),
        make_pod("elsewhere", priority=1, nominated_node="n2"),
    ]
    setting = Setting([victim("v1")], waiting=waiting)
    # Nominated, but its status does not show it yet: there is nothing to clear.
    unseen = make_pod("unseen", priority=1)
    setting.cluster.wait(unseen)
    setting.cluster.nominator.add(unseen, override="n1")
    setting.run()
    assert setting.client.calls == [("clear", "less"), ("condition", "v1"), ("delete", "v1")]


def test_a_failed_clearing_stops_no_eviction_and_activates_the_preemptor() -> None:
    waiting = [make_pod(name, priority=9, nominated_node="n1") for name in ("q1", "q2")]
    setting = Setting([victim("v1")], waiting=waiting)
    setting.client.failures["clear", "q1"] = ApiError("no")
    setting.run()
    assert setting.client.calls == [
        ("clear", "q1"),
        ("clear", "q2"),
        ("condition", "v1"),
        ("delete", "v1"),
    ]
    assert setting.cluster.activated == [P]


def test_the_log_has_what_was_evicted_for_what(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(level_of(2))
    setting = Setting([victim("v1"), victim("v2", deleted=DELETED)])
    setting.run()
    [line] = caplog.records
    assert line.message == "Preemptor Pod preempted victim Pod"
    shown = {key: str(value) for key, value in vars(line)[FIELDS].items()}
    assert shown == {"preemptor": "default/p", "victim": "default/v1", "node": "n1"}


def test_an_unexpected_fault_activates_the_preemptor_too(caplog: pytest.LogCaptureFixture) -> None:
    setting = Setting([victim("v1")])
    setting.client.failures["delete", "v1"] = RuntimeError("bug")
    setting.run()
    assert setting.cluster.activated == [P]
    assert "cannot evict all victims for pod default/p on node n1: bug" in caplog.text


# --- without the gate SchedulerAsyncPreemption ---


def test_synchronous_order_evicts_all_then_clears() -> None:
    waiting = [make_pod("less", priority=9, nominated_node="n1")]
    setting = Setting(
        [victim("v1"), victim("v2", deleted=DELETED)], waiting=waiting, is_async=False
    )
    setting.evict()
    assert not setting.executor.is_preempting(P.metadata.uid)
    asyncio.run(setting.cluster.run_work())
    assert setting.client.calls == [("condition", "v1"), ("delete", "v1"), ("clear", "less")]


def test_synchronous_failure_goes_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    setting = Setting([victim("v1")], is_async=False)
    setting.client.failures["delete", "v1"] = ApiError("refused")
    setting.run()
    assert setting.cluster.activated == []
    assert "refused" in caplog.text


def test_synchronous_failure_to_clear_is_of_no_consequence() -> None:
    waiting = [make_pod("less", priority=9, nominated_node="n1")]
    setting = Setting([victim("v1")], waiting=waiting, is_async=False)
    setting.client.failures["clear", "less"] = ApiError("no")
    setting.run()
    assert setting.notes == [("v1", "Preempted by pod u1 on node n1")]
    assert setting.cluster.activated == []
