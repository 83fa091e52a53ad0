"""Placement tests of a few nodes, as texts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from kubestow.simulator.placement_tests.cases import PlacementCase
from kubestow.simulator.placement_tests.reading import parse_test
from kubestow.simulator.placement_tests.results import CaseResult
from kubestow.simulator.placement_tests.running import RunOptions, run_case

ZONE = "topology.kubernetes.io/zone"


def deployment(name: str, replicas: int, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    return workload("Deployment", name, replicas, cpu, **spec)


def workload(kind: str, name: str, replicas: int, cpu: str, **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {**containers(cpu), **spec}},
        },
    }


def containers(cpu: str) -> dict[str, Any]:
    return {"containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu}}}]}


def pod(name: str, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "labels": {"app": name}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {**containers(cpu), **spec},
    }


def document(
    *objects: dict[str, Any],
    expect: Sequence[dict[str, Any]],
    nodes: int = 3,
    cpu: str = "4",
    given: Sequence[dict[str, Any]] = (),
    cluster: dict[str, Any] | None = None,
    **fields: Any,
) -> dict[str, Any]:
    shape = {"name": "n", "count": nodes, "capacity": {"cpu": cpu}}
    applied = [{"apply": list(objects)}] if objects else []
    return {
        "cluster": {"nodes": [shape], **(cluster or {})},
        "given": [*applied, *given],
        "expect": list(expect),
        **fields,
    }


def cases_of(content: dict[str, Any], folder: Path | None = None) -> list[PlacementCase]:
    return parse_test(msgspec.json.encode(content), "t.json", folder)


def result_of(*objects: dict[str, Any], **fields: Any) -> CaseResult:
    (case,) = cases_of(document(*objects, **fields))
    return run_case(case, RunOptions(explains=False))


def found(*objects: dict[str, Any], **fields: Any) -> str:
    """What does not hold of the one expectation; empty if it does."""
    result = result_of(*objects, **fields)
    assert not result.error, result.error
    (verdict,) = result.verdicts
    return verdict.found
