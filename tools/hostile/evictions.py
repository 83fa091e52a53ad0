"""Urgent pods for which others have to be evicted, where the victims or the preemptor are hostile.

A few nodes of their own are full of pods of low priority; the urgent pod fits on none of them.
"""

from collections.abc import Iterator
from typing import Any, Final

from tools.hostile.objects import (
    HOSTNAME,
    REQUIRED,
    Case,
    Manifest,
    adder,
    expression,
    node,
    pod,
    with_metadata,
)

CASES: Final[list[Case]] = []
case = adder(CASES)

_MILLI_CPU: Final = 32_000
_RACK: Final = "rack"
_FULL: Final = "full"


def _nodes(count: int, labels: dict[str, str] | None = None) -> Iterator[Manifest]:
    resources = {"cpu": f"{_MILLI_CPU}m", "memory": "64Gi", "pods": "600"}
    for number in range(count):
        name = f"full-{number}"
        yield with_metadata(
            node(name, status={"capacity": resources, "allocatable": resources}),
            labels={HOSTNAME: name, _RACK: _FULL, **(labels or {})},
        )


def _victims(
    nodes: int, each: int, labels: dict[str, str] | None = None, **spec: Any
) -> Iterator[Manifest]:
    requests = {"requests": {"cpu": f"{_MILLI_CPU // each}m"}}
    for number in range(nodes):
        for index in range(each):
            name = f"victim-{number}-{index}"
            victim = pod(
                name,
                container={"resources": requests},
                nodeName=f"full-{number}",
                priority=0,
                **spec,
            )
            yield with_metadata(victim, labels=labels or {"app": name})


def _urgent(**spec: Any) -> Manifest:
    return pod(
        container={"resources": {"requests": {"cpu": f"{_MILLI_CPU - 1000}m"}}},
        nodeSelector={_RACK: _FULL},
        priority=1000,
        **spec,
    )


def _anti_affinity(terms: list[Any]) -> Any:
    return {"podAntiAffinity": {REQUIRED: terms}}


def _terms(count: int, prefix: str) -> list[Any]:
    return [
        {
            "topologyKey": HOSTNAME,
            "labelSelector": {"matchLabels": {f"{prefix}-{number}": "v"}},
        }
        for number in range(count)
    ]


@case(500)
def evictions_with_budgets(size: int) -> Iterator[Manifest]:
    """Each budget covers each of the victims."""
    values = [f"value-{number}" for number in range(200)]
    for number in range(size):
        selector = {"matchExpressions": [expression("app", "NotIn", *values, f"own-{number}")]}
        yield Manifest(
            "poddisruptionbudgets.policy",
            {
                "metadata": {"name": f"budget-{number}", "namespace": "default"},
                "spec": {"minAvailable": 1, "selector": selector},
            },
        )
    yield from _nodes(20)
    yield from _victims(20, 100)
    yield _urgent()


@case(200)
def evictions_of_pods_with_200_terms(size: int) -> Iterator[Manifest]:
    yield from _nodes(5)
    yield from _victims(5, size, affinity=_anti_affinity(_terms(200, "label")))
    yield _urgent(affinity=_anti_affinity(_terms(50, "other")))


@case(6_000)
def evictions_for_a_pod_with_terms(size: int) -> Iterator[Manifest]:
    """Terms of two requirements, of which one reads the labels of the victims."""
    terms = [
        {
            "topologyKey": HOSTNAME,
            "labelSelector": {
                "matchExpressions": [
                    expression("app", "NotIn", f"app-{number}"),
                    expression(f"label-{number}", "Exists"),
                ]
            },
        }
        for number in range(size)
    ]
    yield from _nodes(10)
    yield from _victims(10, 100)
    yield _urgent(affinity=_anti_affinity(terms))


@case(60)
def evictions_for_a_pod_with_spread_keys(size: int) -> Iterator[Manifest]:
    """The nodes have all of the keys: a user cannot add any, and each may be used once."""
    keys = [f"key-{number}" for number in range(size)]
    constraints = [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchExpressions": [expression("app", "NotIn", key)]},
        }
        for key in keys
    ]
    yield from _nodes(10, dict.fromkeys(keys, "v"))
    yield from _victims(10, 100)
    yield _urgent(topologySpreadConstraints=constraints)


@case(10_000)
def evictions_beside_host_ports(size: int) -> Iterator[Manifest]:
    def ports(first: int, count: int) -> Any:
        return [
            {"containerPort": 1, "hostPort": first + number, "hostIP": f"10.0.0.{number % 250 + 1}"}
            for number in range(count)
        ]

    yield from _nodes(5)
    requests = {"requests": {"cpu": f"{_MILLI_CPU // 50}m"}}
    for number in range(5):
        for index in range(50):
            container = {"resources": requests, "ports": ports(1 + index * 200, 200)}
            yield pod(
                f"victim-{number}-{index}",
                container=container,
                nodeName=f"full-{number}",
                priority=0,
            )
    urgent = _urgent()
    spec: Any = urgent.document["spec"]
    spec["containers"][0]["ports"] = ports(20_000, size)
    yield urgent


@case(8_000)
def affinity_terms_of_two_requirements(size: int) -> Iterator[Manifest]:
    """Pods with terms of two requirements: as many kinds of pods as terms, no eviction."""
    terms = [
        {
            "topologyKey": HOSTNAME,
            "labelSelector": {
                "matchExpressions": [
                    expression("app", "NotIn", f"x-{number}"),
                    expression("own", "Exists"),
                ]
            },
        }
        for number in range(size)
    ]
    for number in range(size):
        labels = {"app": f"app-{number}", "own": f"{number}"}
        small = pod(f"pod-{number}", nodeName=f"node-{number % 500}", priority=0)
        yield with_metadata(small, labels=labels)
    yield pod(affinity=_anti_affinity(terms))
