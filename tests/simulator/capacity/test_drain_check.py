"""Nodes that could go are found in an order in which every step works."""

from typing import Any

import numpy as np
import pytest

from kubestow.api.files import Document
from kubestow.config.scheduler import SchedulerConfig
from kubestow.simulator.capacity.drain_check import (
    NO_CONTROLLER,
    NO_ROOM,
    DrainCheck,
    Move,
    NeededNode,
    RemovableNode,
    drain_check,
)
from kubestow.simulator.simulation import place

Raw = dict[str, Any]


def node(name: str, cpu: str = "4", zone: str = "z") -> Raw:
    capacity = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": capacity, "allocatable": capacity},
    }


def pod(name: str, on: str, cpu: str = "1", owner: str = "ReplicaSet", **spec: Any) -> Raw:
    container = {"name": "c", "image": "c", "resources": {"requests": {"cpu": cpu}}}
    owners = [{"apiVersion": "apps/v1", "kind": owner, "name": "o", "uid": "u", "controller": True}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"app": "a"},
            "ownerReferences": owners if owner else [],
        },
        "spec": {"nodeName": on, "containers": [container], **spec},
    }


def documents(*raw: Raw) -> list[Document]:
    return [Document(one, f"all.yaml#{number}") for number, one in enumerate(raw, 1)]


def check(*raw: Raw) -> DrainCheck:
    return drain_check(documents(*raw))


def removable(found: DrainCheck) -> list[str]:
    return [entry.name for entry in found.removable]


def test_the_least_used_node_goes_first() -> None:
    found = check(
        node("a"), node("b"), node("c"), pod("pa", "a", "3"), pod("pb", "b"), pod("pc", "c", "2")
    )
    # On "a" there is less room than on "c".
    assert found.removable == [RemovableNode("b", [Move("default/pb", "c")])]
    assert {entry.name for entry in found.needed} == {"a", "c"}
    assert found.node_count == 3


def test_daemons_and_static_pods_go_with_their_node() -> None:
    static = pod("s", "a", "4", owner="Node")
    static["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    found = check(node("a"), node("b"), static, pod("d", "b", "1", owner="DaemonSet"))
    # All nodes could go, if nothing has to move.
    assert sorted(removable(found)) == ["a", "b"]
    assert all(not entry.moves for entry in found.removable)


def test_a_pod_without_a_controller_keeps_its_node() -> None:
    found = check(node("a"), node("b"), pod("bare", "a", owner=""), pod("p", "b", "2"))
    assert removable(found) == ["b"]
    assert found.needed == [NeededNode("a", NO_CONTROLLER, "default/bare")]


def test_pods_that_are_alike_are_counted_together() -> None:
    """There is room for one of them, but not for both."""
    found = check(node("a"), node("b"), pod("p1", "a"), pod("p2", "a"), pod("pb", "b", "3"))
    assert found.needed[0] == NeededNode("a", NO_ROOM, "default/p2")


def test_nodes_that_are_full_stay() -> None:
    found = check(node("a"), node("b"), pod("pa", "a", "3"), pod("pb", "b", "3"))
    assert found.removable == []
    assert found.needed == [
        NeededNode("a", NO_ROOM, "default/pa"),
        NeededNode("b", NO_ROOM, "default/pb"),
    ]


def test_after_a_failed_try_everything_is_as_before() -> None:
    """The pods of "a" find room on "b" one by one, but not together."""
    found = check(
        node("a"),
        node("b"),
        node("c", "1"),
        pod("p1", "a", "1"),
        pod("p2", "a", "900m"),
        pod("pb", "b", "3"),
        pod("c1", "c", "300m"),
        pod("c2", "c", "500m", nodeSelector={"kubernetes.io/hostname": "b"}),
    )
    reasons = {entry.name: (entry.reason, entry.pod) for entry in found.needed}
    assert reasons["a"] == ("0/2 nodes are available: 2 Insufficient cpu.", "default/p2")
    # Neither is "b" full, nor is "a" away.
    assert found.removable == [
        RemovableNode("c", [Move("default/c1", "a"), Move("default/c2", "b")])
    ]


def test_claims_of_pods_are_made_again() -> None:
    """Devices are tried in a cluster of their own: a pod moves only to a node with a free one."""
    api_version = "resource.k8s.io/v1"
    slices = [
        {
            "apiVersion": api_version,
            "kind": "ResourceSlice",
            "metadata": {"name": f"s-{name}"},
            "spec": {
                "driver": "d.example.com",
                "nodeName": name,
                "pool": {"name": name, "resourceSliceCount": 1},
                "devices": [{"name": f"g{index}"} for index in range(count)],
            },
        }
        for name, count in (("a", 1), ("b", 2), ("c", 0))
        if count
    ]
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    entries = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]

    def using(name: str) -> Raw:
        made = pod(name, "", "100m", resourceClaims=entries)
        del made["spec"]["nodeName"]
        return made

    cluster = [
        node("a"),
        node("b"),
        node("c"),
        {"apiVersion": api_version, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}},
        *slices,
        {
            "apiVersion": api_version,
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "gpu", "namespace": "default"},
            "spec": {"spec": {"devices": {"requests": [request]}}},
        },
    ]
    two = check(*cluster, using("g1"), using("g2"))
    assert sorted(removable(two)) == ["a", "c"]
    three = check(*cluster, using("g1"), using("g2"), using("g3"))
    assert removable(three) == ["c"]


@pytest.mark.parametrize("seed", range(2))
def test_the_steps_work_one_after_the_other(seed: int) -> None:
    """Each step, done again in a simulation of its own, leaves no pod without a node."""
    rng = np.random.default_rng(seed)
    nodes = [node(f"n{index}", str(rng.integers(2, 6)), f"z{index % 2}") for index in range(6)]
    spread = {
        "maxSkew": 2,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }
    pods = [
        pod(f"p{index}", f"n{rng.integers(6)}", str(rng.choice(["300m", "600m", "1"])))
        for index in range(9)
    ]
    for one in pods[::3]:
        one["spec"]["topologySpreadConstraints"] = [spread]
    found = check(*nodes, *pods)
    assert len(found.removable) + len(found.needed) == 6
    places = {one["metadata"]["name"]: one["spec"]["nodeName"] for one in pods}
    left = {one["metadata"]["name"] for one in nodes}
    for step in found.removable:
        left.remove(step.name)
        moving = [name for name, place in places.items() if place == step.name]
        assert sorted(move.pod for move in step.moves) == sorted(f"default/{n}" for n in moving)
        for move in step.moves:
            name = move.pod.removeprefix("default/")
            assert move.node in left
            # Only the node that the step names is open: the pod is placed there.
            assert _placed(nodes, pods, places, left, name, move.node) == move.node
            places[name] = move.node
    assert set(places.values()) <= left


def _placed(
    nodes: list[Raw], pods: list[Raw], places: dict[str, str], left: set[str], name: str, on: str
) -> str:
    """Where a simulation puts the pod, if it may choose one node only."""

    def now(one: Raw) -> Raw:
        spec = {**one["spec"], "nodeName": places[one["metadata"]["name"]]}
        if one["metadata"]["name"] == name:
            del spec["nodeName"]
            spec["nodeSelector"] = {"kubernetes.io/hostname": on}
            # With the policy Ignore, constraints count all nodes, as without the selector.
            spec["topologySpreadConstraints"] = [
                {**rule, "nodeAffinityPolicy": "Ignore"}
                for rule in spec.get("topologySpreadConstraints", [])
            ]
        return {**one, "spec": spec}

    # Pods of the node that goes and are still to be moved are not on any node.
    there = [
        now(one)
        for one in pods
        if one["metadata"]["name"] == name or places[one["metadata"]["name"]] in left
    ]
    kept = [one for one in nodes if one["metadata"]["name"] in left]
    return place([*kept, *there], SchedulerConfig()).pods[0].node
