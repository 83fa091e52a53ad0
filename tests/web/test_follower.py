"""What a page is sent of a scheduler: state and batches, and no work without a page."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import numpy as np
import pytest
from tests.web.followed_cluster import FollowedCluster, followed_cluster
from tests.web.page_model import PageModel

from kubestow.api.labels import NAME_LENGTH_MAX
from kubestow.cluster.resources import NODES, PODS
from kubestow.queue import SchedulingQueue
from kubestow.simulator.virtual_time import run_in_virtual_time
from kubestow.testing import make_node, make_pod
from kubestow.web import follower as follower_module
from kubestow.web import words as words_module
from kubestow.web.follower import PageFollower
from kubestow.web.picture import PastMoment, take_picture

ZONE = "topology.kubernetes.io/zone"
TAINTS = ["k=v:NoSchedule", "lost:NoExecute"]


def run(work: Coroutine[Any, Any, None]) -> None:
    run_in_virtual_time(work)


def test_the_state_has_nodes_pods_and_what_rejected_them():
    async def main() -> None:
        nodes = (
            make_node("a", cpu="2", memory="4Gi", labels={ZONE: "east"}),
            make_node("b", cpu="1", unschedulable=True, taints=TAINTS),
        )
        pods = (make_pod("fits", cpu="500m", priority=7), make_pod("large", cpu="9"))
        async with followed_cluster(*nodes, *pods) as cluster:
            await cluster.follower.start()
            state = cluster.state()
            shown = PageModel(state).shown()
            assert state["places"] == [
                "active",
                "backoff",
                "error backoff",
                "unschedulable",
                "gated",
                "in flight",
            ]
            assert shown["nodes"]["a"]["requested"] == {"cpu": 500, "pods": 1}
            assert shown["nodes"]["a"]["groups"] == {ZONE: "east"}
            assert shown["nodes"]["b"]["unschedulable"]
            assert shown["nodes"]["b"]["taints"] == TAINTS
            assert shown["pods"]["default/fits"]["node"] == "a"
            assert shown["pods"]["default/fits"]["priority"] == 7
            assert shown["pods"]["default/fits"]["reason"] == ""
            large = shown["pods"]["default/large"]
            assert state["places"][large["place"]] == "unschedulable"
            assert large["reason"].startswith("0/2 nodes are available: 1 Insufficient cpu")
            assert large["rejectors"] == "NodeResourcesFit, NodeUnschedulable"
            assert shown["places"] == [0, 0, 0, 1, 0, 0]
            assert shown["rejectors"] == {large["rejectors"]: 1}

    run(main())


def test_without_a_page_nothing_is_connected_to_the_scheduler():
    async def main() -> None:
        async with followed_cluster(make_node("a"), make_pod("first")) as cluster:
            follower, objects = cluster.follower, cluster.scheduler.objects
            queue = cluster.scheduler.queue
            assert isinstance(queue, SchedulingQueue)

            def connections() -> list[object]:
                pods, nodes = objects.pods, objects.nodes
                return [
                    *cluster.embedded.listeners,
                    *pods._subscribers,
                    *nodes._subscribers,
                    *([queue.on_moved] if queue.on_moved else []),
                ]

            before = connections()
            await follower.start()
            assert len(connections()) == len(before) + 4
            follower.stop()
            assert connections() == before
            cluster.add(make_pod("second"))
            await cluster.settle()
            assert follower.attempts.count == 0
            assert not follower.table.pods

    run(main())


def test_batches_lead_to_the_state_that_a_new_page_gets():
    """Random changes; after each batch the page shows what one that opens then shows."""

    async def main() -> None:
        rng = np.random.default_rng(3)
        nodes = [make_node(f"n{i}", cpu="2", labels={ZONE: f"z{i % 2}"}) for i in range(4)]
        async with followed_cluster(*nodes) as cluster:
            await cluster.follower.start()
            model = cluster.model()
            for step in range(60):
                change(cluster, rng, step)
                await asyncio.sleep(float(rng.choice([0.0, 0.1, 2.0])))
                model.apply(await cluster.batch())
                fresh = cluster.model()
                assert model.shown() == fresh.shown()
                assert model.series == fresh.series
                if step % 10 == 9:
                    await cluster.settle()
                    model.apply(await cluster.batch())
                    assert model.shown() == await anew(cluster)
            assert len(model.attempts) == cluster.follower.attempts.count > 30
            assert {row[4] for row in model.attempts} >= {
                "scheduled",
                "unschedulable",
            }

    run(main())


def change(cluster: FollowedCluster, rng: np.random.Generator, step: int) -> None:
    """One random thing that happens to the cluster."""
    pods = [stored.key for stored in cluster.store.objects_of(PODS)]
    nodes = [stored.name for stored in cluster.store.objects_of(NODES)]
    match int(rng.integers(7)):
        case 0 | 1 | 2:
            cpu = str(rng.choice(["500m", "1", "3"]))
            cluster.add(make_pod(f"p{step}", cpu=cpu, labels={"app": f"a{step % 3}"}))
        case 3 if pods:
            cluster.store.delete(PODS, *pods[int(rng.integers(len(pods)))])
        case 4:
            cluster.add(make_node(f"m{step}", cpu="4", labels={f"label-{step}": "x"}))
        case 5 if nodes:
            name = nodes[int(rng.integers(len(nodes)))]
            patch = {"spec": {"unschedulable": bool(rng.integers(2))}}
            cluster.store.patch(NODES, "", name, patch, "merge")
        case 6 if len(nodes) > 2:
            cluster.store.delete(NODES, "", nodes[int(rng.integers(len(nodes)))])
        case _:
            pass


async def anew(cluster: FollowedCluster) -> dict[str, Any]:
    """What a page shows whose follower begins now."""
    queue = cluster.scheduler.queue
    assert isinstance(queue, SchedulingQueue)
    on_moved, other = queue.on_moved, PageFollower(cluster.follower.parts)
    await other.start()
    shown = PageModel(cluster.state(follower=other)).shown()
    other.stop()
    queue.on_moved = on_moved
    return shown


def test_changes_of_one_pod_are_one_row():
    async def main() -> None:
        async with followed_cluster(make_node("a", cpu="4")) as cluster:
            await cluster.follower.start()
            await cluster.batch()
            cluster.add(make_pod("x", cpu="1"))
            await cluster.settle()
            for number in range(20):
                patch = {"metadata": {"labels": {"n": str(number)}}}
                cluster.store.patch(PODS, "default", "x", patch, "merge")
                await asyncio.sleep(0)
            batch = await cluster.batch()
            assert [row[0] for row in batch["pods"]["set"]] == ["default/x"]
            assert [row[1] for row in batch["nodes"]["set"]] == ["a"]
            # What changed only in a label is no row.
            cluster.store.patch(PODS, "default", "x", {"metadata": {"labels": {"n": "y"}}}, "merge")
            await asyncio.sleep(1)
            assert {*(await cluster.batch())} == {"seq", "clock"}

    run(main())


def test_a_move_in_the_queue_wakes_the_page():
    async def main() -> None:
        pod = make_pod("x", cpu="3")
        async with followed_cluster(make_node("a", cpu="1"), pod) as cluster:
            await cluster.follower.start()
            await cluster.batch()
            waiting = asyncio.create_task(cluster.follower.wait_changed())
            await asyncio.sleep(0)
            assert not waiting.done()
            queue = cluster.scheduler.queue
            assert isinstance(queue, SchedulingQueue)
            queue.activate(cluster.scheduler.objects.pods.list())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert waiting.done()

    run(main())


def test_attempts_are_sent_with_time_node_and_reason():
    async def main() -> None:
        async with followed_cluster(make_node("a", cpu="1")) as cluster:
            await cluster.follower.start()
            cluster.add(make_pod("fits", cpu="1"), make_pod("waits", cpu="1"))
            await cluster.settle()
            model = cluster.model()
            rows = [
                (row[2], row[3], row[4], model.words["reasons"][row[5]]) for row in model.attempts
            ]
            assert rows[0] == ("default/fits", "a", "scheduled", "")
            assert rows[1][:3] == ("default/waits", "", "unschedulable")
            assert rows[1][3].startswith("0/1 nodes are available: 1 Insufficient cpu.")
            assert [row[0] for row in model.attempts] == [1, 2]
            state = cluster.state()
            times = {(point, plugin): calls for point, plugin, calls, _ in state["pluginTimes"]}
            assert times["Filter", ""] == 2
            # Its filter is a rule, whose codes are not timed apart.
            assert times["PreFilter", "NodeResourcesFit"] >= 1
            (profile,) = state["scheduler"]["profiles"]
            fit = next(one for one in profile["plugins"] if one["name"] == "NodeResourcesFit")
            assert fit == {
                "name": "NodeResourcesFit",
                "points": ["PreFilter", "Filter", "PreScore", "Score"],
                "weight": 1,
            }

    run(main())


def test_an_earlier_moment_is_shown_as_it_was():
    async def main() -> None:
        async with followed_cluster(make_node("a", cpu="4"), make_node("b", cpu="4")) as cluster:
            await cluster.follower.start()
            seen: list[tuple[int, dict[str, Any]]] = []
            for number in range(8):
                cluster.add(make_pod(f"p{number}", cpu="1500m"))
                await asyncio.sleep(3)
                if number == 3:
                    cluster.store.delete(NODES, "", "b")
                    await asyncio.sleep(3)
                await cluster.batch()
                seen.append((cluster.follower.now_ms(), cluster.model().shown()))
                await asyncio.sleep(1)
            for time_ms, shown in seen:
                then = cluster.state(PastMoment(time_ms=time_ms))
                assert PageModel(then).shown() == shown
                assert then["clock"]["time"] == time_ms
                assert all(row[1] <= time_ms for row in then["attempts"])
            assert seen[0][1] != seen[-1][1]

    run(main())


def test_each_attempt_can_be_gone_back_to():
    async def main() -> None:
        pods = [make_pod(f"p{number}", cpu="1") for number in range(6)]
        async with followed_cluster(make_node("a", cpu="4")) as cluster:
            await cluster.follower.start()
            cluster.add(*pods)
            await cluster.settle()
            for attempt in range(1, 7):
                state = cluster.state(PastMoment(attempt=attempt))
                shown = PageModel(state).shown()
                assert len([pod for pod in shown["pods"].values() if pod["node"]]) == min(
                    attempt, 4
                )
                assert state["attempts"][-1][0] == attempt
            assert take_picture(cluster.follower, PastMoment(attempt=99)) is None

    run(main())


def test_what_was_is_kept_up_to_a_limit():
    async def main() -> None:
        async with followed_cluster(make_node("a", cpu="100")) as cluster:
            parts = cluster.follower.parts._replace(past_rows=10)
            cluster.follower = PageFollower(parts)
            await cluster.follower.start()
            begin_ms = cluster.follower.past.span(0).begin
            for number in range(20):
                cluster.add(make_pod(f"p{number}"))
                await asyncio.sleep(2)
            span = cluster.follower.past.span(cluster.follower.now_ms())
            assert begin_ms < span.begin < span.end
            assert take_picture(cluster.follower, PastMoment(time_ms=begin_ms)) is None
            assert take_picture(cluster.follower, PastMoment(attempt=1)) is None
            assert take_picture(cluster.follower, PastMoment(time_ms=span.begin)) is not None

    run(main())


@pytest.mark.parametrize("limit", ["words", "unsent", "nodes"])
def test_too_much_to_send_starts_again(limit: str, monkeypatch: pytest.MonkeyPatch):
    async def main() -> None:
        async with followed_cluster(make_node("a", cpu="1")) as cluster:
            await cluster.follower.start()
            model = cluster.model()
            if limit == "words":
                monkeypatch.setattr(words_module, "WORDS_MAX", 5)
            elif limit == "unsent":
                monkeypatch.setattr(follower_module, "UNSENT_MAX", 5)
            else:
                monkeypatch.setattr(follower_module, "NODE_IDS_MAX", 5)
            for number in range(9):
                name = f"n{number}"
                cluster.add(
                    make_node(name), make_pod(f"p{number}", cpu=f"{number + 1}m", node=name)
                )
            await cluster.settle()
            number = await cluster.follower.collect()
            assert number == model.seq + 1
            assert cluster.follower.resets == 1
            monkeypatch.undo()
            assert len(cluster.model().pods) == 9
            cluster.add(make_pod("later"))
            await cluster.settle()
            model = cluster.model()
            model.apply(await cluster.batch())
            assert "default/later" in model.shown()["pods"]

    run(main())


def test_a_large_change_is_sent_in_parts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(follower_module, "ROWS_PER_CUT", 10)

    async def main() -> None:
        async with followed_cluster(make_node("a", cpu="1")) as cluster:
            await cluster.follower.start()
            cluster.add(*(make_pod(f"p{number}", node="a") for number in range(25)))
            await asyncio.sleep(0)
            sizes: list[int] = []
            async with asyncio.timeout(10):
                while sum(sizes) < 25:
                    await cluster.follower.wait_changed()
                    sizes.append(len((await cluster.batch())["pods"]["set"]))
            assert max(sizes) <= 10

    run(main())


def test_attempts_of_a_batch_are_limited(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(follower_module, "BATCH_ATTEMPTS_MAX", 4)

    async def main() -> None:
        async with followed_cluster(make_node("a", cpu="1")) as cluster:
            await cluster.follower.start()
            cluster.add(*(make_pod(f"p{number}") for number in range(10)))
            await cluster.settle()
            batch = await cluster.batch()
            assert [row[0] for row in batch["attempts"]] == [7, 8, 9, 10]
            assert batch["counts"]["attempts"] == 10

    run(main())


def test_long_texts_are_cut_and_names_stay_as_they_are():
    async def main() -> None:
        name = "x" * NAME_LENGTH_MAX
        async with followed_cluster(make_node("a", cpu="1")) as cluster:
            await cluster.follower.start()
            cluster.add(make_pod(name))
            await cluster.settle()
            words = cluster.follower.words
            assert words.reason("y" * 5000) == words.reason("y" * 6000)
            assert len(words.reasons.words[-1]) == words_module.TEXT_LENGTH_MAX
            assert f"default/{name}" in cluster.model().pods

    run(main())
