"""What an API server fills in (spec 01 §0.1, steps 1 to 4)."""

from copy import deepcopy
from typing import Any

import pytest

from kubestow.apiserver.writes.defaults import apply_defaults

POD_FIELDS = {
    "securityContext": {},
    "schedulerName": "default-scheduler",
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
}


def pod(*containers: Any, **spec: Any) -> Any:
    return {"kind": "Pod", "spec": {"containers": list(containers), **POD_FIELDS, **spec}}


def container(requests: Any = None, limits: Any = None, **more: Any) -> Any:
    lists = {"requests": requests, "limits": limits}
    return {"resources": {name: value for name, value in lists.items() if value}, **more}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param("1500u", "2m", id="Q4-rounded-up"),
        pytest.param("100.5m", "101m", id="Q3-rounded-up"),
        pytest.param("1n", "1m", id="tiny"),
        pytest.param("0.1", "0.1", id="exact-is-left-as-written"),
        pytest.param("1.5Gi", "1.5Gi", id="binary"),
        pytest.param(2, "2", id="number"),
        pytest.param(0.5, "500m", id="fraction"),
        pytest.param("1x", "1x", id="nonsense-is-left-to-the-decoder"),
    ],
)
def test_quantities_are_whole_thousandths(given: Any, expected: str):
    document = pod(
        container({"cpu": given}, initial=True),
        initContainers=[container({"cpu": given}, {"cpu": given})],
        overhead={"cpu": given},
    )
    spec = apply_defaults(document)["spec"]
    assert spec["containers"][0]["resources"]["requests"]["cpu"] == expected
    assert spec["initContainers"][0]["resources"]["limits"]["cpu"] == expected
    assert spec["overhead"]["cpu"] == expected


def test_a_limit_without_a_request_is_a_request():
    document = pod(
        container({"cpu": "1"}, {"cpu": "2", "memory": "1Gi"}),
        initContainers=[container(None, {"example.com/gpu": "1"})],
    )
    spec = apply_defaults(document)["spec"]
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    assert spec["initContainers"][0]["resources"]["requests"] == {"example.com/gpu": "1"}


@pytest.mark.parametrize(
    ("resources", "containers", "expected"),
    [
        pytest.param({}, [container({"cpu": "1"})], {}, id="empty-stays-empty"),
        pytest.param(
            {"requests": {"cpu": "1"}},
            [container({"memory": "1Gi"})],
            {"requests": {"cpu": "1"}},
            id="no-limits-nothing-to-do",
        ),
        pytest.param(
            {"limits": {"cpu": "4", "memory": "4Gi"}},
            [container({"cpu": "1"}), container({"cpu": "500m"})],
            {
                "limits": {"cpu": "4", "memory": "4Gi"},
                "requests": {"cpu": "1500m", "memory": "4Gi"},
            },
            id="from-containers-then-from-limits",
        ),
        pytest.param(
            {"limits": {"cpu": "4"}, "requests": {"cpu": "3"}},
            [container({"cpu": "1", "memory": "1Gi"})],
            {"limits": {"cpu": "4"}, "requests": {"cpu": "3", "memory": "1Gi"}},
            id="given-requests-win",
        ),
        pytest.param(
            {"requests": {"cpu": "3"}},
            [container(None, {"hugepages-2Mi": "4Mi"}), container(None, {"hugepages-2Mi": "2Mi"})],
            {
                "requests": {"cpu": "3", "hugepages-2Mi": "6Mi"},
                "limits": {"hugepages-2Mi": "6Mi"},
            },
            id="huge-pages-become-a-limit",
        ),
        pytest.param(
            {"limits": {"cpu": "9", "example.com/gpu": "1"}},
            [container({"cpu": "1"})],
            {"limits": {"cpu": "9", "example.com/gpu": "1"}, "requests": {"cpu": "1"}},
            id="only-supported-names",
        ),
    ],
)
def test_resources_of_a_whole_pod(resources: Any, containers: Any, expected: Any):
    document = apply_defaults(pod(*containers, resources=resources))
    assert document["spec"]["resources"] == expected


def test_init_containers_and_sidecars_count_as_in_the_request_formula():
    # Sidecar 1 runs on beside the init container of 2: at most 3, more than 1 + 1 later.
    document = pod(
        container({"cpu": "1"}),
        initContainers=[container({"cpu": "1"}, restartPolicy="Always"), container({"cpu": "2"})],
        resources={"limits": {"cpu": "8"}},
    )
    assert apply_defaults(document)["spec"]["resources"]["requests"] == {"cpu": "3"}


def test_ports_on_the_host_network_are_host_ports():
    ports = [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP", "hostPort": 5353}]
    document = pod({"ports": ports}, hostNetwork=True, initContainers=[{"ports": ports[:1]}])
    spec = apply_defaults(document)["spec"]
    first = {"containerPort": 80, "hostPort": 80, "protocol": "TCP"}
    assert spec["containers"][0]["ports"] == [first, ports[1]]
    assert spec["initContainers"][0]["ports"] == [first]


def test_ports_elsewhere_only_get_a_protocol():
    spec = apply_defaults(pod({"ports": [{"containerPort": 80}]}))["spec"]
    assert spec["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]


def test_default_fields_of_a_pod():
    document = apply_defaults({"kind": "Pod", "spec": {"schedulerName": "", "containers": []}})
    assert document["spec"] == {"containers": [], **POD_FIELDS}


@pytest.mark.parametrize(
    ("document", "path", "expected"),
    [
        pytest.param(
            {"kind": "Node", "status": {"capacity": {"cpu": "1500u"}}},
            ("status", "allocatable"),
            {"cpu": "2m"},
            id="allocatable-is-capacity",
        ),
        pytest.param(
            {"kind": "Node", "status": {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}}},
            ("status", "allocatable"),
            {"cpu": "3"},
            id="allocatable-given",
        ),
        pytest.param(
            {"kind": "Namespace", "metadata": {"name": "shop"}},
            ("metadata", "labels"),
            {"kubernetes.io/metadata.name": "shop"},
            id="namespace-label",
        ),
        pytest.param(
            {"kind": "PersistentVolumeClaim", "spec": {}}, ("status",), {"phase": "Pending"},
            id="claim-phase",
        ),
        pytest.param(
            {"kind": "PersistentVolumeClaim", "spec": {"volumeMode": "Block"}},
            ("spec", "volumeMode"),
            "Block",
            id="claim-mode-given",
        ),
        pytest.param(
            {"kind": "StorageClass"}, ("volumeBindingMode",), "Immediate", id="binding-mode"
        ),
        pytest.param(
            {"kind": "CSIDriver", "spec": {"attachRequired": False}},
            ("spec",),
            {"attachRequired": False, "storageCapacity": False},
            id="driver",
        ),
    ],
)  # fmt: skip
def test_other_kinds(document: Any, path: tuple[str, ...], expected: Any):
    value = apply_defaults(document)
    for step in path:
        value = value[step]
    assert value == expected


FULL_POD = pod(
    container({"cpu": "1500u"}, {"memory": "1Gi"}, ports=[{"containerPort": 80}]),
    hostNetwork=True,
    resources={"limits": {"cpu": "2"}},
)


def test_defaults_do_not_modify_the_given_document():
    before = deepcopy(FULL_POD)
    apply_defaults(FULL_POD)
    assert before == FULL_POD


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(FULL_POD, id="pod"),
        pytest.param({"kind": "Node", "status": {"capacity": {"cpu": 4}}}, id="node"),
        pytest.param({"kind": "Pod"}, id="no-spec"),
        pytest.param({"kind": "Pod", "spec": {"containers": None}}, id="null"),
        pytest.param({"kind": "Widget", "spec": 1}, id="unknown"),
    ],
)
def test_defaults_twice_are_defaults_once(document: Any):
    once = apply_defaults(document)
    assert apply_defaults(once) is once
