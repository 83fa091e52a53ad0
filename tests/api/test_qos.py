"""QoS classes: the worked examples of spec 01 §13.6."""

import pytest

from kubestow.api.decode import convert
from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.api.qos import qos_class

ONE = {"cpu": "1", "memory": "1Gi"}
BOTH: JsonObject = {"resources": {"requests": ONE, "limits": ONE}}


def pod(
    *containers: JsonObject,
    init: list[JsonObject] | None = None,
    resources: JsonObject | None = None,
    recorded: str = "",
) -> Pod:
    spec = {"containers": list(containers), "initContainers": init or [], "resources": resources}
    return convert(Pod, {"spec": spec, "status": {"qosClass": recorded}})


def requests(**quantities: str) -> JsonObject:
    return {"resources": {"requests": quantities}}


@pytest.mark.parametrize(
    ("example", "expected"),
    [
        pytest.param(pod({}), "BestEffort", id="O1-empty"),
        pytest.param(pod(requests(cpu="0")), "BestEffort", id="O1-zero"),
        pytest.param(pod(requests(**{"example.com/x": "1"})), "BestEffort", id="O1-extended"),
        pytest.param(pod(BOTH), "Guaranteed", id="O2-equal"),
        pytest.param(pod(BOTH, init=[{}]), "Burstable", id="O3-init-without"),
        pytest.param(pod({"resources": {"limits": ONE}}), "Burstable", id="O4-limits-only"),
        pytest.param(pod(requests(cpu="1"), resources={}), "BestEffort", id="O5-empty-pod-level"),
        pytest.param(pod({}, resources=BOTH["resources"]), "Guaranteed", id="O6-pod-level"),
        pytest.param(
            pod({}, resources={"requests": ONE, "limits": {"cpu": "1"}}),
            "Burstable",
            id="pod-level-limit-missing",
        ),
        pytest.param(pod({}, resources={"requests": ONE}), "Burstable", id="pod-level-requests"),
        pytest.param(
            pod(BOTH, {"resources": {"requests": {"cpu": "1"}, "limits": ONE}}),
            "Burstable",
            id="one-request-missing",
        ),
        pytest.param(pod(BOTH, BOTH), "Guaranteed", id="sums-are-compared"),
        pytest.param(pod({}, recorded="Guaranteed"), "Guaranteed", id="recorded-wins"),
        pytest.param(pod(), "BestEffort", id="no-containers"),
    ],
)
def test_class(example: Pod, expected: str) -> None:
    assert qos_class(example) == expected


def test_pod_level_lists_are_ignored_with_the_gate_off() -> None:
    assert qos_class(pod(requests(cpu="1"), resources={}), use_pod_level=False) == "Burstable"
