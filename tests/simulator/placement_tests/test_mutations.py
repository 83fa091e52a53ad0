"""The verdict on changed manifests equals placing by `simulate` and counting with plain loops."""

import copy
from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import pytest
from tests.simulator.placement_tests.small_tests import ZONE, cases_of, deployment

from kubestow import simulate
from kubestow.simulator.placement_tests.running import RunOptions, run_case

T = TypeVar("T")
CHANGES = 200
OLD = "old=yes:NoSchedule"
SPREAD = {
    "maxSkew": 1,
    "topologyKey": ZONE,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}
NODES = [
    {"name": "plain", "count": 3, "capacity": {"cpu": 4}},
    {"name": "gpu", "count": 2, "capacity": {"cpu": 8}, "labels": {"gpu": "yes"}},
    {"name": "old", "count": 2, "capacity": {"cpu": 8}, "taints": [OLD]},
]
EXPECT: list[dict[str, Any]] = [
    {"placed": "all"},
    {"spread": {"pods": "Deployment/web", "over": ZONE}},
    {"on": {"pods": "Deployment/train", "nodes": {"selector": "gpu=yes"}}},
    {"neverOn": {"pods": "Deployment/web", "nodes": {"selector": "gpu=yes"}}},
    {"pending": {"count": 0}},
    {"evicted": "none"},
]


def passing() -> list[dict[str, Any]]:
    not_gpu = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "gpu", "operator": "DoesNotExist"}]}
                ]
            }
        }
    }
    return [
        deployment("web", 6, "1", topologySpreadConstraints=[SPREAD], affinity=not_gpu),
        deployment("train", 4, "2", nodeSelector={"gpu": "yes"}),
    ]


def chosen(rng: np.random.Generator, values: Sequence[T]) -> T:
    return values[int(rng.integers(len(values)))]


def mutated(rng: np.random.Generator) -> list[dict[str, Any]]:
    """One to three changes of requests, selectors, tolerations, skew and replicas."""
    objects = copy.deepcopy(passing())
    for _ in range(int(rng.integers(1, 4))):
        spec = objects[int(rng.integers(len(objects)))]["spec"]
        pods = spec["template"]["spec"]
        match int(rng.integers(6)):
            case 0:
                requests = pods["containers"][0]["resources"]["requests"]
                requests["cpu"] = chosen(rng, ["500m", "1500m", "2", "3", "5"])
            case 1:
                selectors = [{}, {"gpu": "yes"}, {"gpu": "no"}, {ZONE: "zone-a"}]
                pods["nodeSelector"] = chosen(rng, selectors)
            case 2:
                pods["tolerations"] = [{"key": "old", "operator": "Exists"}]
            case 3:
                for constraint in pods.get("topologySpreadConstraints", []):
                    constraint["maxSkew"] = chosen(rng, [1, 2, 5])
            case 4:
                spec["replicas"] = chosen(rng, [1, 2, 8, 12])
            case _:
                pods.pop(chosen(rng, ["affinity", "topologySpreadConstraints"]), None)
    return objects


def counted(documents: list[dict[str, Any]], objects: list[dict[str, Any]]) -> list[bool]:
    """What holds of EXPECT, by placing with `simulate` and plain loops over its result."""
    labels = {node["metadata"]["name"]: node["metadata"]["labels"] for node in documents}
    result = simulate(documents, objects)
    where: dict[str, list[str]] = {"web": [], "train": []}
    waiting = 0
    for each in result.pods:
        if each.outcome == "Scheduled":
            where[each.owner.removeprefix("Deployment/")].append(each.node)
        else:
            waiting += 1
    zones = Counter({node_labels[ZONE]: 0 for node_labels in labels.values()})
    for node in where["web"]:
        zones[labels[node][ZONE]] += 1
    is_spread = bool(where["web"]) and max(zones.values()) - min(zones.values()) <= 1
    return [
        waiting == 0,
        is_spread,
        bool(where["train"]) and all("gpu" in labels[node] for node in where["train"]),
        bool(where["web"]) and not any("gpu" in labels[node] for node in where["web"]),
        waiting == 0,
        not result.evicted,
    ]


def judged(objects: list[dict[str, Any]]) -> tuple[list[bool], list[dict[str, Any]]]:
    content = {"cluster": {"nodes": NODES}, "given": [{"apply": objects}], "expect": EXPECT}
    (case,) = cases_of(content)
    result = run_case(case, RunOptions(explains=False))
    assert not result.error, result.error
    return [verdict.holds for verdict in result.verdicts], [one.raw for one in case.documents]


@pytest.mark.slow
def test_verdicts_on_changed_manifests_equal_counting_what_simulate_places() -> None:
    rng = np.random.default_rng(31)
    verdicts: Counter[bool] = Counter()
    holds, documents = judged(passing())
    assert all(holds)
    assert counted(documents, passing()) == holds
    for number in range(CHANGES):
        objects = mutated(rng)
        holds, documents = judged(objects)
        assert holds == counted(documents, objects), (number, objects)
        verdicts.update([all(holds)])
    # Both kinds are there in number: the changes matter, and not all break something.
    assert min(verdicts.values()) > CHANGES // 10, verdicts
