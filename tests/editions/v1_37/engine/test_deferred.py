"""Deferred resizes from queue to eviction (spec 12 §11)."""

import logging

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.editions.v1_37.engine.cluster import Cluster, play_run

from kubestow.api.meta import Condition, JsonObject
from kubestow.api.node import PodPreemptionPolicy
from kubestow.api.pod import Pod
from kubestow.api.resources import Resources
from kubestow.config.feature_gates import FeatureGates
from kubestow.editions import edition_named
from kubestow.editions.v1_37.api.deferred import DEFERRED_RESIZES
from kubestow.editions.v1_37.engine.deferred import SKIPPED
from kubestow.editions.v1_37.plugins.deferred_pod_scheduling import DeferredPodScheduling
from kubestow.editions.v1_37.plugins.node_resources_fit import HintsWithResizes
from kubestow.editions.v1_37.plugins.resize_request import ResizeRequest
from kubestow.framework.events import Hint
from kubestow.framework.status import Code
from kubestow.index.nodes import nodes_of
from kubestow.plugins.node_resources_fit.shortage import FitRequest, shortage_status, shortages
from kubestow.queue.moves import Place
from kubestow.testing import make_handle, make_node, make_pod, make_snapshot

DEFERRED: JsonObject = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL + 1, "kubestow")


def resize(cluster: Cluster, name: str, cpu: str) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    patch = {"spec": {"containers": [container]}, "status": {"conditions": [DEFERRED]}}
    cluster.world.patch("pods", f"default/{name}", patch)


def place_of(cluster: Cluster, name: str) -> Place | None:
    pod = cluster.world.scheduler.objects.pods.get("default", name)
    assert pod is not None
    return cluster.world.queue.place_of(pod)


def names(cluster: Cluster) -> set[str]:
    return {pod.metadata.name for pod in cluster.pods()}


def test_a_pod_of_lower_priority_is_evicted_for_a_resize() -> None:
    async def work(cluster: Cluster) -> None:
        cluster.node("n", "300m")
        cluster.pod("low", "200m", node="n", priority=1)
        cluster.pod("high", "100m", node="n", priority=100)
        resize(cluster, "high", "300m")
        assert await cluster.round() == "default/high"
        assert names(cluster) == {"high"}
        (high,) = cluster.pods()
        # It is scheduled, and waits for the kubelet.
        assert high.status.conditions[0].type == "PodResizePending"
        assert high.status.nominated_node_name == ""
        assert place_of(cluster, "high") is not None
        # Now it fits, and stays queued until the kubelet has done its part.
        assert await cluster.round() == "default/high"
        assert "is in the cache, so can't be assumed" in cluster.failures[0][1]
        cluster.world.patch("pods", "default/high", {"status": {"conditions": []}})
        assert place_of(cluster, "high") is None

    play_run(work, DEFERRED_RESIZES)


def test_members_of_groups_are_queued_by_themselves() -> None:
    async def work(cluster: Cluster) -> None:
        cluster.node("n", "300m")
        cluster.gang("g", 1)
        cluster.pod("low", "200m", node="n", priority=-1)
        cluster.pod("high", "100m", group="g", node="n")
        resize(cluster, "high", "300m")
        assert await cluster.round() == "default/high"
        assert names(cluster) == {"high"}

    play_run(work, DEFERRED_RESIZES, "GenericWorkload")


@pytest.mark.parametrize("is_disabled", [False, True])
def test_no_pod_is_evicted_where_it_is_forbidden(is_disabled: bool) -> None:
    async def work(cluster: Cluster) -> None:
        cluster.node("n", "300m")
        policy = {"disableResizePreemption": ["example.com/x"]}
        if is_disabled:
            cluster.world.patch("nodes", "n", {"spec": {"podPreemptionPolicy": policy}})
        cluster.pod("low", "200m", node="n", priority=1)
        cluster.pod("high", "100m", node="n", priority=100)
        if not is_disabled:
            patch = {"spec": {"preemptionPolicy": "Never"}}
            cluster.world.patch("pods", "default/high", patch)
        resize(cluster, "high", "300m")
        assert await cluster.round() == "default/high"
        assert names(cluster) == {"low", "high"}
        assert ("resize preemption disabled" in cluster.failures[0][1]) is is_disabled
        assert await cluster.round() == ""
        if is_disabled:
            cluster.world.patch("nodes", "n", {"spec": {"podPreemptionPolicy": None}})
            await cluster.advance(2)
            await cluster.round()
            assert names(cluster) == {"high"}

    play_run(work, DEFERRED_RESIZES)


def test_a_running_pod_is_not_queued_without_the_gate() -> None:
    async def work(cluster: Cluster) -> None:
        cluster.node("n", "300m")
        cluster.pod("high", "100m", node="n", priority=100)
        resize(cluster, "high", "300m")
        assert await cluster.round() == ""

    play_run(work)


def test_a_deleted_pod_leaves_the_queue() -> None:
    async def work(cluster: Cluster) -> None:
        cluster.node("n", "300m")
        cluster.pod("high", "100m", node="n", priority=100)
        resize(cluster, "high", "300m")
        cluster.world.delete("pods", "default/high")
        assert await cluster.round() == ""

    play_run(work, DEFERRED_RESIZES)


def test_what_skips_running_pods_has_a_pre_filter() -> None:
    async def work(cluster: Cluster) -> None:
        profile = cluster.world.scheduler.profiles["default-scheduler"]
        assert {name for name, _ in profile.pre_filter_steps} >= SKIPPED
        filters = [step.name for step in profile.filter_steps]
        assert filters.index("DeferredPodScheduling") + 1 == filters.index("NodeResourcesFit")

    play_run(work, DEFERRED_RESIZES)


# --- what is needed ---


NAMES = ("cpu", "memory", "example.com/a", "example.com/b")


def resources(amounts: dict[str, int]) -> Resources:
    scalar = {name: amount for name, amount in amounts.items() if "/" in name}
    return Resources(milli_cpu=1000 * amounts["cpu"], memory=amounts["memory"], scalar=scalar)


@given(st.data())
def test_the_part_that_is_counted_is_not_needed_again(data: st.DataObject) -> None:
    """Against a slow reading: one resource at a time."""
    amounts = st.integers(0, 4)
    whole = {name: data.draw(amounts) for name in NAMES}
    counted = {name: data.draw(amounts) for name in NAMES}
    offered = {name: data.draw(amounts) for name in NAMES}
    used = {name: data.draw(amounts) for name in NAMES}
    node = make_node("n", cpu=None, memory=None, allocatable=offered)
    nodes = nodes_of(make_snapshot([node], [make_pod("other", node="n", requests=used)]))
    request = ResizeRequest(
        FitRequest.of(resources(whole), device_classes=None), resources(counted)
    )
    codes = shortages(request, nodes)
    if codes is not None:
        codes = request.with_unresolvable(codes, nodes)
    code = 0 if codes is None else int(codes[0])
    needed = {name: max(0, whole[name] - counted[name]) for name in NAMES}
    compared = [name for name in NAMES if (needed[name] if "/" in name else whole[name])]
    short = [name for name in compared if needed[name] > offered[name] - used[name]]
    assert bool(code) is bool(short)
    if short:
        status = shortage_status(request, code)
        assert sorted(status.reasons) == sorted(f"Insufficient {name}" for name in short)
        is_hopeless = any(whole[name] > offered[name] for name in short)
        assert (status.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE) is is_hopeless


# --- hints ---


def deferred(name: str = "p", node: str = "n") -> Pod:
    return make_pod(name, node=node, conditions=[msgspec.convert(DEFERRED, Condition)])


def test_only_the_own_node_helps() -> None:
    gates = FeatureGates({DEFERRED_RESIZES: True}, edition_named("v1.37"))
    hints = HintsWithResizes(gates, None)
    waiting, resizing = make_pod("w"), deferred()
    here, there = make_pod("a", node="n"), make_pod("b", node="m")
    assert hints.for_deleted_pod(resizing, here, None) is Hint.QUEUE
    assert hints.for_deleted_pod(resizing, there, None) is Hint.SKIP
    assert hints.for_deleted_pod(waiting, there, None) is Hint.QUEUE
    assert hints.for_grown_pod(resizing, here, here) is Hint.QUEUE
    assert hints.for_grown_pod(resizing, there, there) is Hint.SKIP
    assert hints.for_grown_pod(waiting, here, here) is Hint.SKIP
    assert hints.for_node(resizing, None, make_node("n")) is Hint.QUEUE
    assert hints.for_node(resizing, None, make_node("m")) is Hint.SKIP
    assert hints.for_node(waiting, None, make_node("m")) is Hint.QUEUE


def test_a_node_that_permits_evictions_again_helps() -> None:
    opened, other = make_node("n"), make_node("m")
    policy = PodPreemptionPolicy(disable_resize_preemption=("x",))
    spec = msgspec.structs.replace(opened.spec, pod_preemption_policy=policy)
    closed = msgspec.structs.replace(opened, spec=spec)
    plugin = DeferredPodScheduling({}, make_handle())
    hints = [registration.hint for registration in plugin.events()]
    for hint in hints:
        assert hint is not None
        assert hint(deferred(), None, opened) is Hint.QUEUE
        assert hint(deferred(), None, closed) is Hint.SKIP
        assert hint(deferred(), None, other) is Hint.SKIP
        assert hint(deferred(), closed, opened) is Hint.QUEUE
        assert hint(deferred(), opened, closed) is Hint.SKIP
        assert hint(deferred(), opened, opened) is Hint.SKIP
