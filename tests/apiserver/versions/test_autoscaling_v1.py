"""Autoscalers in their two versions."""

from typing import Any

import pytest

from kubestow.apiserver.versions.autoscaling_v1 import from_v1, to_v1

CPU = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
MEMORY = {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}


def autoscaler(*resources: Any, **spec: Any) -> dict[str, Any]:
    metrics = [{"type": "Resource", "resource": resource} for resource in resources]
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"maxReplicas": 3, **({"metrics": metrics} if metrics else {}), **spec},
    }


def test_the_use_of_the_cpu_is_a_field_of_its_own():
    v1 = to_v1(autoscaler(CPU))
    assert v1["apiVersion"] == "autoscaling/v1"
    assert v1["spec"] == {"maxReplicas": 3, "targetCPUUtilizationPercentage": 50}
    assert v1["metadata"] == {"name": "web"}


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param(autoscaler(), id="plain"),
        pytest.param(autoscaler(CPU), id="cpu"),
        pytest.param(autoscaler(CPU, MEMORY), id="memory"),
        pytest.param(autoscaler(CPU, behavior={"scaleDown": {}}), id="behavior"),
    ],
)
def test_nothing_is_lost_on_the_way_there_and_back(stored: Any):
    back = from_v1(to_v1(stored))
    back["metadata"] = {key: value for key, value in back["metadata"].items() if value}
    assert back == stored
