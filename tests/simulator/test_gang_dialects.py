"""Groups of other APIs in a whole cluster."""

import logging
from collections.abc import Coroutine
from typing import Any

import msgspec
import pytest
from tests.simulator.gang_cluster import gang_cluster, own_profile

from kubestow.api.meta import JsonObject
from kubestow.cluster.resources import POD_GROUPS, default_resources
from kubestow.simulator.virtual_time import run_in_virtual_time
from kubestow.testing import make_node, make_pod

PLUGINS = "scheduling.x-k8s.io/v1alpha1"
V1BETA1 = "scheduling.k8s.io/v1beta1"
LABEL = "scheduling.x-k8s.io/pod-group"


def run(work: Coroutine[Any, Any, None]) -> None:
    run_in_virtual_time(work)


def plugins_group(name: str = "g", **spec: Any) -> JsonObject:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": PLUGINS, "kind": "PodGroup", "metadata": metadata, "spec": spec}


def labelled(name: str, group: str = "g", **more: Any) -> Any:
    return make_pod(name, cpu="1", labels={LABEL: group}, **more)


def test_groups_of_scheduler_plugins_are_gangs_by_choice() -> None:
    objects = [
        make_node("n1", cpu="2"),
        *(labelled(f"p{i}") for i in range(3)),
        plugins_group(minMember=3),
    ]

    async def test() -> None:
        # Without the dialect the label means nothing.
        async with gang_cluster(*objects[:-1], profile=own_profile()) as cluster:
            await cluster.settle()
            assert sorted(cluster.nodes_of("p0", "p1", "p2")) == ["", "n1", "n1"]
        async with gang_cluster(*objects, profile=own_profile(dialects=[PLUGINS])) as cluster:
            await cluster.settle()
            assert cluster.nodes_of("p0", "p1", "p2") == ["", "", ""]
            cluster.load(make_node("n2", cpu="1"))
            await cluster.settle()
            assert sorted(cluster.nodes_of("p0", "p1", "p2")) == ["n1", "n1", "n2"]

    run(test())


def test_pods_wait_for_their_group_of_scheduler_plugins() -> None:
    async def test() -> None:
        profile = own_profile(dialects=[PLUGINS])
        async with gang_cluster(make_node("n1"), labelled("p0"), profile=profile) as cluster:
            await cluster.settle()
            assert cluster.nodes_of("p0") == [""]
            cluster.load(plugins_group(minMember=1))
            await cluster.settle()
            assert cluster.nodes_of("p0") == ["n1"]

    run(test())


def test_min_resources_have_to_be_free() -> None:
    resources = {"cpu": "6", "memory": "1Gi", "example.com/gpu": 1}

    async def test() -> None:
        objects = [
            make_node("n1", cpu="4", memory="8Gi"),
            plugins_group(minMember=2, minResources=resources),
            labelled("p0"),
            labelled("p1"),
        ]
        profile = own_profile(dialects=[PLUGINS])
        async with gang_cluster(*objects, profile=profile) as cluster:
            await cluster.settle()
            (pod, _) = cluster.pods()
            (condition,) = pod.status.conditions
            assert condition.message.startswith(
                "0/1 nodes are available: the nodes have less cpu free than the minResources of "
                "pod group default/g: 6."
            )
            cluster.load(make_node("n2", cpu="4"))
            await cluster.settle()
            assert cluster.nodes_of("p0", "p1") == ["", ""]
            cluster.load(make_node("n3", allocatable={"example.com/gpu": "1"}))
            await cluster.settle()
            assert "" not in cluster.nodes_of("p0", "p1")

    run(test())


def test_unknown_fields_are_named_once(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        objects = [
            make_node("n1"),
            plugins_group("a", minMember=1, queue="x"),
            plugins_group("b", minMember=1, queue="y"),
            labelled("p0", "a"),
            labelled("p1", "b"),
        ]
        profile = own_profile(dialects=[PLUGINS])
        async with gang_cluster(*objects, profile=profile) as cluster:
            await cluster.settle()
            assert cluster.nodes_of("p0", "p1") == ["n1", "n1"]

    with caplog.at_level(logging.WARNING):
        run(test())
    assert [record.getMessage() for record in caplog.records] == [
        'the field "spec.queue" of PodGroup default/a (scheduling.x-k8s.io/v1alpha1) '
        "is not known and has no effect"
    ]


def test_groups_of_v1_37() -> None:
    """A server of v1.37 has no v1alpha2."""
    resources = default_resources()
    resources.unregister("podgroups.scheduling.k8s.io")
    resources.register(msgspec.structs.replace(POD_GROUPS, version="v1beta1"))
    group = {
        "apiVersion": V1BETA1,
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": {"all": {}}},
    }

    async def test() -> None:
        pods = [make_pod(f"p{i}", cpu="1", group="g") for i in range(2)]
        profile = own_profile(dialects=[V1BETA1])
        async with gang_cluster(
            make_node("n1", cpu="1"), group, *pods, profile=profile, resources=resources
        ) as cluster:
            await cluster.settle()
            assert cluster.nodes_of("p0", "p1") == ["", ""]
            cluster.load(make_node("n2", cpu="1"))
            await cluster.settle()
            assert sorted(cluster.nodes_of("p0", "p1")) == ["n1", "n2"]
            stored = cluster.store.get(resources.named(POD_GROUPS.qualified_name), "default", "g")
            (condition,) = stored.document["status"]["conditions"]
            assert (condition["type"], condition["status"]) == (
                "PodGroupInitiallyScheduled",
                "True",
            )

    run(test())
