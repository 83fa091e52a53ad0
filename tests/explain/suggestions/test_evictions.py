"""Which pods are suggested to be deleted."""

from typing import Any

import pytest
from tests.explain.suggestions.families import HOSTNAME, POD, container, node, pod
from tests.explain.suggestions.trials import documents_of, suggestions_for

FULL = node("a", cpu="4")


def running(name: str, cpu: str, on: str = "a", priority: int = 0, **fields: Any) -> dict[str, Any]:
    return pod(name, on=on, requests={"cpu": cpu}, priority=priority, **fields)


def waiting(cpu: str = "2", priority: int = 0, **fields: Any) -> dict[str, Any]:
    return pod(POD, requests={"cpu": cpu}, priority=priority, preemptionPolicy="Never", **fields)


def budget(app: str, allowed: int) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed},
    }


def deleted(*documents: dict[str, Any]) -> list[str]:
    """The pods that are suggested to be deleted."""
    for suggestion in suggestions_for(documents_of(documents)):
        if suggestion.kind == "DeletePods":
            return sorted(patch.name for patch in suggestion.patches)
    return []


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        pytest.param(
            [FULL, running("x", "1"), running("y", "3"), waiting()], ["y"], id="the-fewest"
        ),
        pytest.param(
            [
                FULL,
                running("x", "2", priority=5),
                running("y", "2", priority=1),
                waiting(priority=9),
            ],
            ["y"],
            id="the-least-important",
        ),
        pytest.param(
            [
                FULL,
                running("high", "2", priority=5),
                *(running(f"low{number}", "1") for number in range(2)),
                waiting(priority=9),
            ],
            ["low0", "low1"],
            id="two-before-a-more-important-one",
        ),
        pytest.param([FULL, running("x", "4", priority=1), waiting()], [], id="more-important"),
        pytest.param(
            [
                FULL,
                running("x", "2", labels={"app": "db"}),
                running("y", "2"),
                budget("db", 0),
                waiting(),
            ],
            ["y"],
            id="budget",
        ),
        pytest.param(
            [
                FULL,
                *(running(f"x{number}", "2", labels={"app": "db"}) for number in range(2)),
                budget("db", 1),
                waiting("4"),
            ],
            [],
            id="budget-for-one-of-two",
        ),
        pytest.param(
            [
                FULL,
                node("b", cpu="4"),
                *(running(f"x{number}", "1") for number in range(4)),
                running("y", "4", on="b"),
                waiting("4"),
            ],
            ["y"],
            id="the-node-with-the-fewest",
        ),
        pytest.param(
            [
                FULL,
                node("b", cpu="4", labels={"pool": "other"}),
                running("x", "4"),
                running("y", "4", on="b"),
                waiting(nodeSelector={"pool": "other"}),
            ],
            ["y"],
            id="only-where-it-may-run",
        ),
        pytest.param(
            [
                node("a", pods="2"),
                running("x", "100m"),
                running("y", "100m", priority=1),
                waiting("100m", priority=1),
            ],
            ["x"],
            id="number-of-pods",
        ),
    ],
)
def test_victims(documents: list[dict[str, Any]], expected: list[str]) -> None:
    assert deleted(*documents) == expected


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param(
            {
                "ownerReferences": [
                    {
                        "apiVersion": "apps/v1",
                        "kind": "DaemonSet",
                        "name": "d",
                        "uid": "u",
                        "controller": True,
                    }
                ]
            },
            id="of-a-daemon-set",
        ),
        pytest.param({"annotations": {"kubernetes.io/config.mirror": "x"}}, id="static"),
    ],
)
def test_pods_that_come_back_on_the_same_node_stay(metadata: dict[str, Any]) -> None:
    other = running("x", "4")
    other["metadata"] |= metadata
    assert deleted(FULL, other, waiting()) == []


def test_pods_that_use_a_port_are_deleted_whatever_their_number() -> None:
    port = {"containerPort": 80, "hostPort": 80}
    users = [
        pod(
            f"u{number}",
            on="a",
            containers=[container("c", {}, ports=[{**port, "hostPort": 80 + number}])],
        )
        for number in range(3)
    ]
    wanted = [{"containerPort": 80 + number, "hostPort": 80 + number} for number in range(3)]
    assert deleted(FULL, *users, pod(POD, containers=[container("c", {}, ports=wanted)])) == [
        "u0",
        "u1",
        "u2",
    ]


def test_pods_of_a_whole_zone_are_deleted_for_anti_affinity() -> None:
    zone = "topology.kubernetes.io/zone"
    term = {"topologyKey": zone, "labelSelector": {"matchLabels": {"app": "web"}}}
    apart = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    documents = [
        *(node(f"n{number}", zone="z1" if number < 2 else "z2") for number in range(5)),
        *(pod(f"w{number}", on=f"n{number}", labels={"app": "web"}) for number in range(5)),
        pod("other", on="n0"),
        pod(POD, affinity={"podAntiAffinity": apart}),
    ]
    assert deleted(*documents) == ["w0", "w1"]
    assert HOSTNAME in documents[0]["metadata"]["labels"]


def test_less_important_pods_go_first_also_on_another_kind_of_node() -> None:
    """Resources are short on one node, ports are taken on the other."""
    ports = [{"containerPort": number, "hostPort": number} for number in (80, 81)]
    documents = [
        FULL,
        node("b", cpu="4"),
        running("high", "4", priority=5),
        *(
            pod(f"low{port['hostPort']}", on="b", containers=[container("c", {}, ports=[port])])
            for port in ports
        ),
        pod(
            POD,
            containers=[container("c", {"cpu": "1"}, ports=ports)],
            priority=9,
            preemptionPolicy="Never",
        ),
    ]
    assert deleted(*documents) == ["low80", "low81"]
