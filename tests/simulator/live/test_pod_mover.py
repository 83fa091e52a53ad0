"""A pod of the demo is moved: away from its node, which then takes the pod that waits."""

import asyncio
import json
from typing import Any

import pytest
from tests.simulator.live.test_actions import Demo, demo, run

from kubestow.api.meta import JsonObject
from kubestow.cluster.documents import value_at
from kubestow.cluster.resources import NODES
from kubestow.errors import NotFoundError

LABELS = {"app": "one"}


def node(name: str) -> JsonObject:
    status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def spec(cpu: str, **more: Any) -> JsonObject:
    resources = {"requests": {"cpu": cpu}}
    return {"containers": [{"name": "main", "image": "i", "resources": resources}], **more}


def pod(name: str, cpu: str, **more: Any) -> JsonObject:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec(cpu, **more)}


def deployment(replicas: int, cpu: str) -> JsonObject:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "one", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": LABELS},
            "template": {"metadata": {"labels": LABELS}, "spec": spec(cpu)},
        },
    }


async def delete_nodes(running: Demo) -> None:
    for name in [each.name for each in running.store.objects_of(NODES)]:
        await running.act("delete", kind="Node", name=name)


async def places(running: Demo) -> dict[str, str]:
    """The node of each pod, once nothing is left to be done."""
    await asyncio.sleep(30)
    return {
        each["metadata"]["name"]: value_at(each, "spec", "nodeName") or ""
        for each in running.pods("default")
    }


def is_cordoned(running: Demo, name: str) -> bool:
    return bool(value_at(running.node(name), "spec", "unschedulable"))


def test_the_pod_that_waits_gets_the_node() -> None:
    async def main() -> None:
        async with demo() as running:
            await delete_nodes(running)
            held = pod("held", "2500m", nodeName="b")
            running.store.load([node("a"), node("b"), held, deployment(1, "1500m")])
            found = await places(running)
            (one,) = (name for name in found if name.startswith("one-"))
            assert found[one] == "a"
            running.store.load([pod("large", "3")])
            assert (await places(running))["large"] == ""
            answer = await running.act("move", namespace="default", name=one)
            assert answer["message"] == f'moves "{one}" from a'
            assert is_cordoned(running, "a")
            found = await places(running)
            assert not is_cordoned(running, "a")
            assert found.pop("large") == "a"
            assert sorted(found.values()) == ["b", "b"]
            assert one not in found

    run(main)


def test_a_node_is_cordoned_until_the_last_of_its_moves_is_over() -> None:
    async def main() -> None:
        async with demo() as running:
            await delete_nodes(running)
            running.store.load([node("a"), deployment(2, "1")])
            first, second = await places(running)
            await running.act("move", namespace="default", name=first)
            await running.act("move", namespace="default", name=second)
            assert is_cordoned(running, "a")
            # No other node is there: both end after a minute.
            await asyncio.sleep(40)
            assert is_cordoned(running, "a")
            await asyncio.sleep(40)
            assert not is_cordoned(running, "a")
            assert set((await places(running)).values()) == {"a"}

    run(main)


def test_a_node_that_was_cordoned_stays_so() -> None:
    async def main() -> None:
        async with demo() as running:
            running.store.load([deployment(1, "1")])
            ((one, there),) = (await places(running)).items()
            await running.act("cordon", node=there)
            await running.act("move", namespace="default", name=one)
            ((_, moved),) = (await places(running)).items()
            assert moved != there
            assert is_cordoned(running, there)

    run(main)


def test_a_cluster_that_is_loaded_meanwhile_is_left_alone() -> None:
    async def main() -> None:
        async with demo() as running:
            running.store.load([deployment(1, "1")])
            ((one, there),) = (await places(running)).items()
            await running.act("move", namespace="default", name=one)
            unready = {**node(there), "spec": {"unschedulable": True}}
            text = json.dumps(unready)
            await running.act("load", text=text)
            await asyncio.sleep(90)
            assert is_cordoned(running, there)

    run(main)


def test_what_cannot_be_moved_is_refused() -> None:
    async def main() -> None:
        async with demo() as running:
            running.store.load([pod("alone", "1"), pod("large", "999")])
            await places(running)
            for name, reason in (
                ("alone", "no controller makes it again"),
                ("large", "it is on no node"),
            ):
                refusal = await running.refusal("move", namespace="default", name=name)
                assert reason in str(refusal)
            with pytest.raises(NotFoundError):
                await running.act("move", namespace="default", name="missing")

    run(main)
