"""Worked examples of spec 12 §21 in both editions."""

import asyncio
from typing import Any

import pytest

from kubestow.api.decode import convert
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.editions import edition_named
from kubestow.editions.choosing import rules_of
from kubestow.editions.v1_37.plugins.default_binder import DefaultBinderV137
from kubestow.editions.v1_37.plugins.inter_pod_affinity import hint_for_assigned_pod
from kubestow.engine.factory import SchedulerFactory
from kubestow.errors import ApiError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import Action, ClusterEvent, Hint, Resource
from kubestow.framework.hints import build_hint_map
from kubestow.plugins.inter_pod_affinity.hints import hint_for_pod
from kubestow.simulator.still import still_cluster
from kubestow.simulator.virtual_time import run_in_virtual_time
from kubestow.testing import ManualClock, make_pod
from kubestow.testing.handles import make_handle

EDITIONS = ("v1.36", "v1.37")


def node(name: str, cpu: str = "1", **parts: Any) -> dict[str, Any]:
    status = {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "10"}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": status,
        **parts,
    }


def pod(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    requests = {"requests": {"cpu": cpu}}
    containers = [{"name": "c", "image": "i", "resources": requests}]
    metadata = {"name": name, "namespace": "default", "uid": name}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": containers, **spec},
    }


def message_of(version: str, name: str, *documents: dict[str, Any]) -> str:
    gates = FeatureGates({}, edition_named(version))
    cluster = still_cluster(documents, SchedulerConfig(), ManualClock(), gates=gates)
    found = cluster.objects.pods.get("default", name)
    assert isinstance(found, Pod)
    return cluster.decide(found).message


@pytest.mark.parametrize(
    ("version", "text"),
    [
        pytest.param("v1.36", "no new claims to deallocate, preemption: ", id="V1-v1.36"),
        pytest.param("v1.37", "preemption: ", id="V1-v1.37"),
    ],
)
def test_texts_without_victims(version: str, text: str) -> None:
    full = [pod(f"v{i}", "1", nodeName=f"n{i}", priority=10) for i in range(3)]
    got = message_of(version, "p", *(node(f"n{i}") for i in range(3)), *full, pod("p", "1"))
    nodes = "0/3 nodes are available: 3"
    assert got == (
        f"{nodes} Insufficient cpu. {text}{nodes} No preemption victims found for incoming pod."
    )


def test_a_preemptor_says_where() -> None:
    victim = pod("v", "1", nodeName="n1", priority=0)
    got = message_of("v1.37", "p", node("n1"), victim, pod("p", "1", priority=10))
    assert got == (
        "0/1 nodes are available: 1 Insufficient cpu. preemption: found a potential placement "
        "for pod on node n1, preempting 1 victims"
    )


@pytest.mark.parametrize(("version", "is_woken"), [("v1.36", True), ("v1.37", False)])
def test_a_taint_wakes_no_pod_that_lacks_cpu(version: str, is_woken: bool) -> None:
    """V2: who is registered for changes of taints."""
    rules = rules_of(edition_named(version))
    factory: type[SchedulerFactory] = rules.factory
    gates = FeatureGates({}, edition_named(version))
    cluster = still_cluster([node("n1")], SchedulerConfig(), ManualClock(), gates=gates)
    plugins = next(iter(cluster.scheduler.profiles.values())).plugins.values()
    hints = build_hint_map(plugins, adds_taint_events=factory.adds_taint_events)
    taint = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT)
    woken = {entry.plugin for entry in hints if entry.event.matches(taint)}
    assert ("NodeResourcesFit" in woken) is is_woken
    assert "TaintToleration" in woken  # V3


def test_any_anti_term_wakes() -> None:
    """Spec 12 §3.4: a pod that one of two terms selects is deleted."""
    term = {"topologyKey": "kubernetes.io/hostname"}
    required = [{**term, "labelSelector": {"matchLabels": {"app": app}}} for app in ("a", "b")]
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    waiting = convert(Pod, pod("w", "1", affinity=affinity))
    deleted = make_pod("d", labels={"app": "a"}, node="n1")
    assert isinstance(waiting, Pod)
    assert hint_for_pod(waiting, deleted, None) is Hint.SKIP
    assert hint_for_assigned_pod(waiting, deleted, None) is Hint.QUEUE


class FailingClient:
    """Refuses the first bindings."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)
        self.tries = 0

    async def bind(self, pod: Pod, node_name: str) -> None:
        self.tries += 1
        if self.codes:
            raise ApiError("refused", code=self.codes.pop(0))


@pytest.mark.parametrize(
    ("codes", "tries", "is_bound"),
    [
        pytest.param((503, 503), 3, True, id="V9"),
        pytest.param((500, 500, 500), 4, True, id="last-try"),
        pytest.param((409,), 1, False, id="conflict"),
    ],
)
def test_a_binding_is_tried_again(codes: tuple[int, ...], tries: int, is_bound: bool) -> None:
    client = FailingClient(*codes)

    async def run() -> float:
        binder = DefaultBinderV137(None, make_handle(client=client))  # type: ignore[arg-type]
        started_s = asyncio.get_running_loop().time()
        status = await binder.bind(CycleState(), PodInfo(make_pod("p")), "n1")
        assert (status is None) is is_bound
        return asyncio.get_running_loop().time() - started_s

    waited_s = run_in_virtual_time(run())
    assert client.tries == tries
    assert waited_s == pytest.approx({1: 0, 3: 0.06, 4: 0.31}[tries])


def test_a_process_that_was_stopped_does_not_bind_again_before_it_leads() -> None:
    client = FailingClient(503)

    async def run() -> None:
        leads = asyncio.Event()

        async def may_bind() -> None:
            await leads.wait()

        handle = make_handle(client=client)  # type: ignore[arg-type]
        handle.may_bind = may_bind
        binding = asyncio.create_task(
            DefaultBinderV137(None, handle).bind(CycleState(), PodInfo(make_pod("p")), "n1")
        )
        await asyncio.sleep(60)
        assert client.tries == 1
        leads.set()
        assert await binding is None

    run_in_virtual_time(run())
    assert client.tries == 2
