"""Requests and limits of pods as metrics (spec 09 §8.3)."""

import msgspec
import pytest

from kubestow.api.pod import Container, Pod, ResourceRequirements
from kubestow.service.metrics.pod_resources import pod_limits, pod_resource_texts, unit_of
from kubestow.testing import make_pod
from kubestow.testing.builders import make_resources


def container(requests: dict[str, str], limits: dict[str, str] | None = None) -> Container:
    resources = ResourceRequirements(
        requests=make_resources(requests), limits=make_resources(limits or {})
    )
    return Container(name="c", resources=resources)


EXAMPLE = make_pod(
    "a",
    namespace="ns",
    node="n1",
    priority=10,
    containers=[container({"cpu": "100m", "memory": "128Mi"}, {"cpu": "200m"})],
    init_containers=[container({"cpu": "500m"})],
    overhead={"cpu": "50m"},
)


def lines(*pods: Pod) -> list[str]:
    text = "".join(pod_resource_texts(pods))
    return [line for line in text.splitlines() if not line.startswith("#")]


def series(name: str, value: str, *, resource: str, unit: str, node: str = "n1") -> str:
    return (
        f'kube_pod_resource_{name}{{namespace="ns",node="{node}",pod="a",priority="10",'
        f'resource="{resource}",scheduler="default-scheduler",unit="{unit}"}} {value}'
    )


@pytest.mark.parametrize("node", ["n1", ""], ids=["1-assigned", "2-unassigned"])
def test_requests_and_limits_of_a_pod(node: str) -> None:
    spec = msgspec.structs.replace(EXAMPLE.spec, node_name=node)
    assert sorted(lines(msgspec.structs.replace(EXAMPLE, spec=spec))) == [
        series("limit", "0.25", resource="cpu", unit="cores", node=node),
        series("request", "0.55", resource="cpu", unit="cores", node=node),
        series("request", "1.34217728e+08", resource="memory", unit="bytes", node=node),
    ]


def test_extended_resources_have_no_unit() -> None:
    # Of the request, and of its limit.
    for line in lines(make_pod("a", requests={"nvidia.com/gpu": "2"})):
        assert 'resource="nvidia.com/gpu"' in line
        assert 'unit=""' in line
        assert line.endswith(" 2")


def test_pods_without_requests_have_no_series() -> None:
    assert lines(make_pod("a"), make_pod("b", cpu="0")) == []


def test_a_missing_priority_is_an_empty_label() -> None:
    (line,) = lines(make_pod("a", cpu="1"))
    assert 'priority=""' in line


@pytest.mark.parametrize(
    ("node", "phase", "count"),
    [("n1", "Succeeded", 0), ("n1", "Failed", 0), ("", "Failed", 1), ("n1", "Running", 1)],
)
def test_ended_pods_on_nodes_are_left_out(node: str, phase: str, count: int) -> None:
    assert len(lines(make_pod("a", cpu="1", node=node, phase=phase))) == count


@pytest.mark.parametrize(
    ("resource", "unit"),
    [
        ("cpu", "cores"),
        ("memory", "bytes"),
        ("ephemeral-storage", "bytes"),
        ("storage", "bytes"),
        ("hugepages-2Mi", "bytes"),
        ("attachable-volumes-aws-ebs", "integer"),
        ("pods", ""),
    ],
)
def test_units(resource: str, unit: str) -> None:
    assert unit_of(resource) == unit


def test_limits_of_sidecars_add_up_and_others_only_peak() -> None:
    sidecar = msgspec.structs.replace(container({}, {"cpu": "1"}), restart_policy="Always")
    pod = make_pod(
        containers=[container({}, {"cpu": "2"})],
        init_containers=[sidecar, container({}, {"cpu": "5", "memory": "1Gi"})],
    )
    assert pod_limits(pod) == make_resources({"cpu": "6", "memory": "1Gi"})


def test_limits_of_the_pod_replace_those_of_containers() -> None:
    pod = make_pod(containers=[container({}, {"cpu": "2", "nvidia.com/gpu": "1"})])
    resources = ResourceRequirements(limits=make_resources({"cpu": "3", "nvidia.com/gpu": "9"}))
    spec = msgspec.structs.replace(
        pod.spec, resources=resources, overhead=make_resources({"cpu": "1", "memory": "1Gi"})
    )
    assert pod_limits(msgspec.structs.replace(pod, spec=spec)) == make_resources(
        {"cpu": "4", "nvidia.com/gpu": "1"}
    )


def test_many_pods_come_in_pieces() -> None:
    pods = [make_pod(f"p{index}", cpu="1") for index in range(450)]
    pieces = list(pod_resource_texts(pods))
    assert len(pieces) == 2 + 2 * 3
    assert len(lines(*pods)) == 450
