"""Gangs in a whole cluster: wholeness, progress, finished members, pods that Kueue holds back."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from tests.cache.dice import Dice
from tests.simulator.gang_cluster import GangCluster, gang_cluster, own_profile

from kubestow.api.decode import to_document
from kubestow.api.meta import ApiObject, JsonObject
from kubestow.api.pod import Pod
from kubestow.simulator.virtual_time import run_in_virtual_time
from kubestow.testing import make_node, make_pod, make_pod_group

# Of one run; more of them find more.
STEPS = 30
KUEUE_GATE = "kueue.x-k8s.io/admission"


def run(work: Coroutine[Any, Any, None]) -> None:
    run_in_virtual_time(work)


# --- finished members ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "node"),
    [
        pytest.param({}, "", id="upstream"),
        pytest.param(own_profile(countFinished=False), "", id="option-off"),
        pytest.param(own_profile(), "n1", id="own"),
    ],
)
def test_members_that_have_succeeded_count(profile: JsonObject, node: str) -> None:
    objects = [
        make_node("n1", cpu="4"),
        make_pod_group("g", min_count=3),
        make_pod("done", cpu="1", node="n1", phase="Succeeded", group="g"),
        make_pod("runs", cpu="1", node="n1", phase="Running", group="g"),
        make_pod("again", cpu="1", group="g"),
    ]

    async def test() -> None:
        async with gang_cluster(*objects, profile=profile) as cluster:
            await cluster.settle()
            assert cluster.nodes_of("again") == [node]
            # Without the object of the finished pod there is nothing to count.
            cluster.delete("done", "again")
            await cluster.settle()
            cluster.load(make_pod("once-more", cpu="1", group="g"))
            await cluster.settle()
            assert cluster.nodes_of("once-more") == [""]

    run(test())


def test_a_member_that_succeeds_lets_the_rest_go_on() -> None:
    objects = [
        make_node("n1", cpu="4"),
        make_pod_group("g", min_count=2),
        make_pod("short", cpu="1", node="n1", phase="Running", group="g"),
    ]

    async def test() -> None:
        async with gang_cluster(*objects, profile=own_profile()) as cluster:
            await cluster.settle()
            pods = cluster.store.resources.named("pods")
            cluster.store.patch(
                pods, "default", "short", {"status": {"phase": "Succeeded"}}, subresource="status"
            )
            await cluster.settle()
            cluster.load(make_pod("rest", cpu="1", group="g"))
            await cluster.settle()
            assert cluster.nodes_of("rest") == ["n1"]

    run(test())


# --- Kueue ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", [{}, own_profile()], ids=["upstream", "own"])
def test_pods_that_kueue_admits_run_on_the_nodes_it_selects(profile: JsonObject) -> None:
    """Kueue holds pods back by a gate; when it admits them, it adds node selectors."""
    nodes = [make_node(f"n{i}", cpu="2", labels={"flavor": "ab"[i % 2]}) for i in range(4)]
    pods = [make_pod(f"p{i}", cpu="2", group="g", gates=[KUEUE_GATE]) for i in range(2)]
    admission = {"spec": {"schedulingGates": None, "nodeSelector": {"flavor": "b"}}}

    async def test() -> None:
        group = make_pod_group("g", min_count=2)
        async with gang_cluster(*nodes, group, *pods, profile=profile) as cluster:
            # Upstream tries the incomplete gang again and again, so the cluster is never at rest.
            await asyncio.sleep(30)
            assert cluster.nodes_of("p0", "p1") == ["", ""]
            cluster.patch("p0", admission)
            await asyncio.sleep(30)
            # One alone is no gang.
            assert cluster.nodes_of("p0", "p1") == ["", ""]
            cluster.patch("p1", admission)
            await asyncio.sleep(30)
            assert sorted(cluster.nodes_of("p0", "p1")) == ["n1", "n3"]

    run(test())


@pytest.mark.parametrize("profile", [{}, own_profile()], ids=["upstream", "own"])
def test_pods_of_their_own_that_kueue_admits(profile: JsonObject) -> None:
    nodes = [make_node("n0", cpu="2"), make_node("n1", cpu="2", labels={"flavor": "b"})]

    async def test() -> None:
        pod = make_pod("p", cpu="1", gates=[KUEUE_GATE, "example.com/second"])
        async with gang_cluster(*nodes, pod, profile=profile) as cluster:
            await asyncio.sleep(30)
            gates = [{"name": "example.com/second"}]
            cluster.patch("p", {"spec": {"schedulingGates": gates}})
            await asyncio.sleep(30)
            assert cluster.nodes_of("p") == [""]
            selector = {"flavor": "b"}
            cluster.patch("p", {"spec": {"schedulingGates": None, "nodeSelector": selector}})
            await asyncio.sleep(30)
            assert cluster.nodes_of("p") == ["n1"]

    run(test())


# --- properties ----------------------------------------------------------------------------------


class Gang:
    def __init__(self, rng: Dice, name: str, *, most: int) -> None:
        self.name = name
        self.min_count = rng.between(1, most)
        self.surplus = rng.between(0, 2)
        self.cpu = rng.choice(("500m", "1", "2"))
        self.priority = rng.choice((0, 10, 100))

    @property
    def pods(self) -> list[str]:
        return [f"{self.name}-{i}" for i in range(self.min_count + self.surplus)]

    def objects(self, **more: Any) -> list[Any]:
        group = make_pod_group(self.name, min_count=self.min_count)
        return [
            group,
            *(
                make_pod(name, cpu=self.cpu, priority=self.priority, group=self.name, **more)
                for name in self.pods
            ),
        ]


def ending(each: ApiObject) -> JsonObject:
    """A pod that is not started again when it has ended."""
    document = to_document(each)
    if isinstance(each, Pod):
        document["spec"]["restartPolicy"] = "Never"
    return document


def broken(cluster: GangCluster, gangs: list[Gang]) -> list[str]:
    """Gangs of which some members run, but too few."""
    placed = cluster.placed_counts()
    return [gang.name for gang in gangs if 0 < placed[gang.name] < gang.min_count]


@pytest.mark.parametrize("seed", range(12))
def test_a_gang_is_whole_or_absent_at_every_quiet_moment(seed: int) -> None:
    rng = Dice(seed)

    async def test() -> None:
        nodes = [make_node(f"n{i}", cpu=str(rng.between(2, 4))) for i in range(rng.between(2, 4))]
        async with gang_cluster(*nodes, profile=own_profile()) as cluster:
            gangs: list[Gang] = []
            for step in range(STEPS):
                gone = rng.choice(gangs) if gangs and rng.is_likely(0.35) else None
                if gone is not None:
                    cluster.delete(*gone.pods)
                    gangs.remove(gone)
                elif rng.is_likely(0.25):
                    priority = rng.choice((5, 50, 500))
                    cluster.load(make_pod(f"single-{step}", cpu="1", priority=priority))
                else:
                    gangs.append(Gang(rng, f"g{step}", most=5))
                    cluster.load(*gangs[-1].objects())
                if rng.is_likely(0.7):
                    await cluster.settle()
                    assert broken(cluster, gangs) == []
            await cluster.settle()
            assert broken(cluster, gangs) == []

    run(test())


@pytest.mark.parametrize("seed", range(12))
def test_gangs_that_fit_one_after_the_other_all_run(seed: int) -> None:
    rng = Dice(100 + seed)
    nodes = [make_node(f"n{i}", cpu="2") for i in range(3)]

    async def test() -> None:
        async with gang_cluster(*nodes, profile=own_profile()) as cluster:
            gangs = [Gang(rng, f"g{i}", most=3) for i in range(rng.between(3, 8))]
            for gang in gangs:
                gang.priority = 0
                runs = {"kubestow.io/run-seconds": str(rng.between(1, 40))}
                objects = [ending(each) for each in gang.objects(annotations=runs)]
                cluster.load(*rng.sample(objects, len(objects)))
                if rng.is_likely(0.3):
                    await cluster.settle()
            await cluster.settle()
            phases = {pod.metadata.name: pod.status.phase for pod in cluster.pods()}
            assert set(phases.values()) == {"Succeeded"}, phases

    run(test())
