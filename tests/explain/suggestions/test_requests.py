from typing import Any

import pytest

from kubestow.api.pod import Container, ResourceRequirements
from kubestow.explain.evidence.amounts import quantity_of
from kubestow.explain.suggestions.requests import lowered_request
from kubestow.testing import make_container, make_pod, make_resources


def cuts(pod: Any, name: str, total: int) -> list[str] | None:
    lowered = lowered_request(pod, name, total)
    if lowered is None:
        return None
    return [f"{cut.owner} {cut.before}>{cut.after}" for cut in lowered.cuts]


TWO = [make_container("a", cpu="3"), make_container("b", cpu="1")]


@pytest.mark.parametrize(
    ("pod", "total", "expected"),
    [
        pytest.param(make_pod(cpu="4"), 3500, ["container c 4>3500m"], id="one"),
        pytest.param(make_pod(containers=TWO), 3000, ["container a 3>2"], id="the-largest"),
        pytest.param(
            make_pod(containers=TWO),
            1000,
            ["container a 3>750m", "container b 1>250m"],
            id="all-if-one-is-not-enough",
        ),
        pytest.param(
            make_pod(cpu="1", init_containers=[make_container("i", cpu="4")]),
            2000,
            ["init container i 4>2"],
            id="init-container",
        ),
        pytest.param(
            make_pod(
                cpu="3", init_containers=[make_container("s", cpu="1", restart_policy="Always")]
            ),
            2500,
            ["container c 3>1500m"],
            id="sidecar-counts",
        ),
        pytest.param(
            make_pod(
                cpu="1",
                init_containers=[
                    make_container("s", cpu="1", restart_policy="Always"),
                    make_container("i", cpu="4"),
                ],
            ),
            3000,
            ["init container i 4>2"],
            id="init-container-beside-a-sidecar",
        ),
        pytest.param(
            make_pod(cpu="4", overhead={"cpu": "500m"}),
            3000,
            ["container c 4>2500m"],
            id="overhead",
        ),
        pytest.param(
            make_pod(cpu="1", pod_requests={"cpu": "4"}), 3000, ["the pod 4>3"], id="pod-level"
        ),
        pytest.param(make_pod(cpu="4", overhead={"cpu": "1"}), 1000, None, id="nothing-left"),
    ],
)
def test_what_gives_up_how_much(pod: Any, total: int, expected: list[str] | None) -> None:
    assert cuts(pod, "cpu", total) == expected


def test_a_limit_that_must_equal_the_request_is_lowered_too() -> None:
    amounts = make_resources({"example.com/gpu": 4, "cpu": 2})
    container = Container(
        name="c", resources=ResourceRequirements(requests=amounts, limits=amounts)
    )
    lowered = lowered_request(make_pod(containers=[container]), "example.com/gpu", 3)
    assert lowered is not None
    resources = lowered.pod.spec.containers[0].resources
    assert (
        resources.requests == resources.limits == make_resources({"example.com/gpu": 3, "cpu": 2})
    )
    lowered = lowered_request(make_pod(containers=[container]), "cpu", 1000)
    assert lowered is not None
    assert lowered.pod.spec.containers[0].resources.limits == amounts


@pytest.mark.parametrize(
    ("name", "units", "text"),
    [
        ("cpu", 2000, "2"),
        ("cpu", 2001, "2001m"),
        ("memory", 3 << 30, "3Gi"),
        ("memory", (3 << 30) + 1, "3221225473"),
        ("hugepages-2Mi", 4 << 20, "4Mi"),
        ("example.com/gpu", 2048, "2048"),
    ],
)
def test_quantities_are_written_as_usual(name: str, units: int, text: str) -> None:
    assert str(quantity_of(name, units)) == text
