"""A large cluster is compared in a time that a person waits for."""

import time
from typing import Any

import pytest

from kubestow.api.files import Document
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.editions import edition_named
from kubestow.editions.choosing import rules_of
from kubestow.editions.upgrading import changes_between
from kubestow.plugins.loading import LoadedPlugins
from kubestow.simulator.upgrade.decisions import compare_pods
from kubestow.simulator.upgrade.pair import EditionSide, pair_of
from kubestow.testing import ManualClock

NODES, WAITING = 5_000, 2_000
# Of CPU; it takes about a tenth.
LIMIT_S = 60.0
ZONE = "topology.kubernetes.io/zone"
Raw = dict[str, Any]


def side(version: str) -> EditionSide:
    gates = FeatureGates({}, edition_named(version))
    return EditionSide(
        gates, LoadedPlugins(SchedulerConfig(), dict(rules_of(gates.edition).registry))
    )


def node(number: int) -> Raw:
    name = f"node-{number}"
    room = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": name, ZONE: f"zone-{number % 3}"}
    metadata = {"name": name, "labels": labels}
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": room}
    }  # fmt: skip


def pod(name: str, cpu: str, number: int, **spec: Any) -> Raw:
    labels = {"app": f"app-{number % 200}"}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "namespace": "default", "uid": name, "labels": labels}
    spec["containers"] = [container]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def waiting(number: int) -> Raw:
    """Some fit, some evict others, some fit nowhere, some are rejected by affinity."""
    terms = [
        {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": f"app-{each % 200}"}}}
        for each in (number, number + 7)
    ]
    anti = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    fields: list[tuple[str, Raw]] = [
        ("500m", {}),
        ("10", {"priority": 5}),
        ("40", {}),
        ("500m", {"affinity": {"podAntiAffinity": anti}}),
    ]
    cpu, spec = fields[number % len(fields)]
    return pod(f"waiting-{number}", cpu, number, **spec)


@pytest.mark.slow
def test_two_thousand_pods_wait_on_five_thousand_nodes() -> None:
    standing = [
        pod(f"standing-{number}", "8", number, nodeName=f"node-{number}") for number in range(NODES)
    ]
    objects = [*map(node, range(NODES)), *standing, *map(waiting, range(WAITING))]
    documents = [Document(raw, "test") for raw in objects]
    started_s = time.process_time()
    before, after = side("v1.36"), side("v1.37")
    both = pair_of(documents, before, after, ManualClock(), is_back=False)
    noticed = changes_between(before.gates.edition, after.gates.edition)
    found = compare_pods(both, noticed, lambda _, __: None)
    assert time.process_time() - started_s < LIMIT_S
    assert found.compared == WAITING
    assert {cause.change for cause in found.causes} == {1, 5, 12}
