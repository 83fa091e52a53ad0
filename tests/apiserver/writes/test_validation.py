"""Objects that an API server refuses: the error names the field and the value."""

from typing import Any

import pytest

from kubestow.api.decode import KINDS, convert
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.writes.validation import field_errors
from kubestow.errors import InvalidError
from kubestow.testing import ManualClock


def errors_of(kind: str, **parts: Any) -> list[str]:
    document = {"kind": kind, "metadata": {"name": "web-1"}, **parts}
    return list(field_errors(convert(KINDS[kind], document)))


def pod_errors(**spec: Any) -> list[str]:
    return errors_of("Pod", spec={"containers": [{"name": "a"}], **spec})


def container(**fields: Any) -> Any:
    return {"containers": [{"name": "a", **fields}]}


def node_affinity(*terms: Any) -> Any:
    required = {"nodeSelectorTerms": list(terms)}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    }


def expression(**fields: Any) -> Any:
    return node_affinity({"matchExpressions": [fields]})


def pod_affinity(**term: Any) -> Any:
    terms = [{"topologyKey": "zone", "labelSelector": {}, **term}]
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def spread(**fields: Any) -> Any:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [{**constraint, **fields}]}


TERM = (
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
)
POD_TERM = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
SPREAD = "spec.topologySpreadConstraints[0]"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": []}, "spec.containers: Required value"),
        ({"containers": [{}]}, "spec.containers[0].name: Required value"),
        (
            {"containers": [{"name": "a"}, {"name": "a"}]},
            'spec.containers[1].name: Duplicate value: "a"',
        ),
        (
            {"initContainers": [{"name": "a"}]},
            'spec.containers[0].name: Duplicate value: "a"',
        ),
        (
            container(resources={"requests": {"cpu": "-1"}}),
            'spec.containers[0].resources.requests[cpu]: Invalid value: "-1":'
            " must be greater than or equal to 0",
        ),
        (
            container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
            'spec.containers[0].resources.requests: Invalid value: "2":'
            " must be less than or equal to cpu limit of 1",
        ),
        (
            {"overhead": {"memory": "-1Gi"}},
            'spec.overhead.limits[memory]: Invalid value: "-1Gi":'
            " must be greater than or equal to 0",
        ),
        (
            container(ports=[{"containerPort": 0, "protocol": "TCP"}]),
            "spec.containers[0].ports[0].containerPort: Invalid value: 0:"
            " must be between 1 and 65535, inclusive",
        ),
        (
            container(ports=[{"containerPort": 1, "hostPort": 70000, "protocol": "TCP"}]),
            "spec.containers[0].ports[0].hostPort: Invalid value: 70000:"
            " must be between 1 and 65535, inclusive",
        ),
        (
            container(ports=[{"containerPort": 1, "protocol": "tcp"}]),
            'spec.containers[0].ports[0].protocol: Unsupported value: "tcp":'
            ' supported values: "TCP", "UDP", "SCTP"',
        ),
        (
            container(ports=[{"containerPort": 1, "hostPort": 80, "protocol": "TCP"}] * 2),
            'spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//80"',
        ),
        (
            {"volumes": [{"name": "v"}, {"name": "v"}]},
            'spec.volumes[1].name: Duplicate value: "v"',
        ),
        (
            {"tolerations": [{"key": "a", "operator": "Maybe"}]},
            'spec.tolerations[0].operator: Unsupported value: "Maybe":'
            ' supported values: "Equal", "Exists", "Lt", "Gt"',
        ),
        (
            {"tolerations": [{"key": "a", "operator": "Exists", "effect": "Never"}]},
            'spec.tolerations[0].effect: Unsupported value: "Never":'
            ' supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
        ),
        (
            {"tolerations": [{"value": "x"}]},
            'spec.tolerations[0].operator: Invalid value: "": operator must be Exists when `key`'
            ' is empty, which means "match all values"',
        ),
        (
            {"tolerations": [{"key": "a", "operator": "Exists", "value": "x"}]},
            'spec.tolerations[0].value: Invalid value: "x":'
            " value must be empty when `operator` is 'Exists'",
        ),
        (
            node_affinity(),
            TERM.removesuffix("[0]")
            + ": Required value: must have at least one node selector term",
        ),
        (
            expression(key="a", operator="Is", values=["x"]),
            f'{TERM}.matchExpressions[0].operator: Invalid value: "Is":'
            " not a valid selector operator",
        ),
        (
            expression(key="a", operator="In"),
            f"{TERM}.matchExpressions[0].values: Required value:"
            " must be specified when `operator` is 'In' or 'NotIn'",
        ),
        (
            expression(key="a", operator="Exists", values=["x"]),
            f"{TERM}.matchExpressions[0].values: Forbidden:"
            " may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        ),
        (
            expression(key="a", operator="Gt", values=["1", "2"]),
            f"{TERM}.matchExpressions[0].values: Required value:"
            " must be specified single value when `operator` is 'Lt' or 'Gt'",
        ),
        (
            expression(key="", operator="Exists"),
            f"{TERM}.matchExpressions[0].key: Required value",
        ),
        (
            node_affinity({"matchFields": [{"key": "spec.x", "operator": "In", "values": ["n1"]}]}),
            f'{TERM}.matchFields[0].key: Invalid value: "spec.x": not a valid field selector key',
        ),
        (
            {
                "affinity": {
                    "nodeAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {"weight": 101, "preference": {}}
                        ]
                    }
                }
            },
            "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight:"
            " Invalid value: 101: must be in the range 1-100",
        ),
        (
            pod_affinity(topologyKey=""),
            f"{POD_TERM}.topologyKey: Required value: can not be empty",
        ),
        (
            pod_affinity(labelSelector={"matchExpressions": [{"key": "a", "operator": "Gt"}]}),
            f'{POD_TERM}.labelSelector.matchExpressions[0].operator: Invalid value: "Gt":'
            " not a valid selector operator",
        ),
        (
            spread(maxSkew=0),
            f"{SPREAD}.maxSkew: Invalid value: 0: must be greater than zero",
        ),
        (
            spread(whenUnsatisfiable="Ignore"),
            f'{SPREAD}.whenUnsatisfiable: Unsupported value: "Ignore":'
            ' supported values: "DoNotSchedule", "ScheduleAnyway"',
        ),
        (
            spread(minDomains=0),
            f"{SPREAD}.minDomains: Invalid value: 0: must be greater than zero",
        ),
        (
            spread(minDomains=2, whenUnsatisfiable="ScheduleAnyway"),
            f"{SPREAD}.minDomains: Invalid value: 2: can only use minDomains if"
            " whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway",
        ),
        (
            spread(nodeTaintsPolicy="Maybe"),
            f'{SPREAD}.nodeTaintsPolicy: Unsupported value: "Maybe":'
            ' supported values: "Honor", "Ignore"',
        ),
        (
            {"schedulingGates": [{"name": "a"}], "nodeName": "n1"},
            "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
        ),
        (
            {"preemptionPolicy": "Sometimes"},
            'spec.preemptionPolicy: Unsupported value: "Sometimes":'
            ' supported values: "PreemptLowerPriority", "Never"',
        ),
    ],
)
def test_a_pod_that_violates_a_rule(spec: Any, expected: str):
    assert pod_errors(**spec) == [expected]


@pytest.mark.parametrize(
    ("kind", "parts", "expected"),
    [
        (
            "Node",
            {"spec": {"taints": [{"key": "a", "effect": "Never"}]}},
            'spec.taints[0].effect: Unsupported value: "Never":'
            ' supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
        ),
        (
            "Node",
            {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}] * 2}},
            "spec.taints[1]: Duplicate value: taints must be unique by key and effect pair",
        ),
        (
            "Node",
            {"status": {"allocatable": {"cpu": "-2"}}},
            'status.allocatable.cpu: Invalid value: "-2": must be greater than or equal to 0',
        ),
        (
            "PodDisruptionBudget",
            {"spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}},
            'spec.selector.matchExpressions[0].operator: Invalid value: "Is":'
            " not a valid selector operator",
        ),
        (
            "PersistentVolume",
            {"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": []}}}},
            "spec.nodeAffinity.required.nodeSelectorTerms: Required value:"
            " must have at least one node selector term",
        ),
    ],
)
def test_other_kinds(kind: str, parts: Any, expected: str):
    assert errors_of(kind, **parts) == [expected]


def test_all_errors_are_listed():
    found = pod_errors(containers=[], overhead={"cpu": "-1"})
    assert len(found) == 2


def test_a_number_that_is_none_passes_as_it_does_on_a_server():
    assert not pod_errors(**expression(key="a", operator="Gt", values=["abc"]))


def test_a_pod_that_uses_everything_well_passes():
    assert not pod_errors(
        **pod_affinity(namespaceSelector={"matchLabels": {"a": "b"}}),
        **spread(minDomains=2, nodeAffinityPolicy="Ignore"),
        tolerations=[{"operator": "Exists"}, {"key": "a", "operator": "Gt", "value": "5"}],
    )


# --- labels, selectors and names of resources ---

NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def refusal(kind: str, document: dict[str, Any]) -> str:
    """The text of the refusal; empty if the object is accepted."""
    cluster = MemoryCluster(ManualClock())
    resource = next(each for each in cluster.resources if each.kind == kind)
    try:
        cluster.create(resource, {"metadata": {"name": "x"}, **document})
    except InvalidError as error:
        return str(error)
    return ""


def pod_spec(**spec: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "image": "i"}], **spec}


def requesting(name: str) -> dict[str, Any]:
    resources = {"requests": {name: "1"}, "limits": {name: "1"}}
    return {"containers": [{"name": "c", "image": "i", "resources": resources}]}


@pytest.mark.parametrize("kind", ["Pod", "Node", "Namespace", "ConfigMap"])
def test_labels_are_checked_on_every_kind(kind: str) -> None:
    spec = {"spec": pod_spec()} if kind == "Pod" else {}
    text = refusal(kind, {"metadata": {"name": "x", "labels": {"a b": "c d"}}, **spec})
    assert text.startswith(f'{kind} "x" is invalid: [metadata.labels: Invalid value: "a b": ')
    assert 'metadata.labels: Invalid value: "c d": a valid label must be an empty string' in text
    text = refusal(kind, {"metadata": {"name": "x", "annotations": {"a b": "c d"}}, **spec})
    assert text == f'{kind} "x" is invalid: metadata.annotations: Invalid value: "a b": {NAME_RULE}'
    good = {"example.com/A_b.c-d": "", "tier": "v1.2_x"}
    metadata = {"name": "x", "labels": good, "annotations": {**good, "note": "any text: ü"}}
    assert refusal(kind, {"metadata": metadata, **spec}) == ""


@pytest.mark.parametrize(
    ("spec", "where"),
    [
        ({"nodeSelector": {"a b": ""}}, "spec.nodeSelector"),
        ({"tolerations": [{"key": "a b", "operator": "Exists"}]}, "spec.tolerations[0].key"),
        (
            {
                "topologySpreadConstraints": [
                    {
                        "maxSkew": 1,
                        "topologyKey": "a b",
                        "whenUnsatisfiable": "DoNotSchedule",
                        "labelSelector": {},
                    }
                ]
            },
            "spec.topologySpreadConstraints[0].topologyKey",
        ),
    ],
)
def test_keys_of_labels_are_checked_where_pods_name_them(spec: dict[str, Any], where: str) -> None:
    text = refusal("Pod", {"spec": pod_spec(**spec)})
    assert text == f'Pod "x" is invalid: {where}: Invalid value: "a b": {NAME_RULE}'


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        (
            "memroy",
            [
                "must be a standard resource type or fully qualified",
                "must be a standard resource for containers",
            ],
        ),
        ("pods", ["must be a standard resource for containers"]),
        ("requests.example.com/gpu", ["doesn't follow extended resource name standard"]),
    ],
)
def test_names_of_resources_are_checked(name: str, rules: list[str]) -> None:
    paths = [f"spec.containers[0].resources.{field}[{name}]" for field in ("limits", "requests")]
    errors = [f'{path}: Invalid value: "{name}": {rule}' for path in paths for rule in rules]
    expected = f'Pod "x" is invalid: [{", ".join(errors)}]'
    assert refusal("Pod", {"spec": requesting(name)}) == expected


@pytest.mark.parametrize(
    "name",
    ["cpu", "memory", "ephemeral-storage", "nvidia.com/gpu", "kubernetes.io/x"],
)
def test_resources_that_containers_have_are_accepted(name: str) -> None:
    assert refusal("Pod", {"spec": requesting(name)}) == ""


# --- amounts of resources ---

GPU = "example.com/gpu"
HUGE = "hugepages-2Mi"


def with_resources(requests: dict[str, str], limits: dict[str, str]) -> dict[str, Any]:
    resources = {"requests": requests, "limits": limits}
    return {"containers": [{"name": "c", "image": "i", "resources": resources}]}


@pytest.mark.parametrize(
    ("requests", "limits", "errors"),
    [
        pytest.param(
            {GPU: "1"},
            {},
            ["limits: Required value: Limit must be set for non overcommitable resources"],
            id="without-limit",
        ),
        pytest.param(
            {GPU: "1"},
            {GPU: "2"},
            [f'requests: Invalid value: "1": must be equal to {GPU} limit of 2'],
            id="below-the-limit",
        ),
        pytest.param(
            {GPU: "3"},
            {GPU: "2"},
            [f'requests: Invalid value: "3": must be equal to {GPU} limit of 2'],
            id="above-the-limit",
        ),
        pytest.param(
            {GPU: "500m"},
            {GPU: "500m"},
            [
                f'limits[{GPU}]: Invalid value: "500m": must be an integer',
                f'requests[{GPU}]: Invalid value: "500m": must be an integer',
            ],
            id="not-whole",
        ),
        pytest.param(
            {"cpu": "1", HUGE: "4Mi"},
            {HUGE: "6Mi"},
            [f'requests: Invalid value: "4Mi": must be equal to {HUGE} limit of 6Mi'],
            id="huge-pages-below-the-limit",
        ),
        pytest.param(
            {"cpu": "1", HUGE: "4Mi"},
            {},
            ["limits: Required value: Limit must be set for non overcommitable resources"],
            id="huge-pages-without-limit",
        ),
        pytest.param(
            {"memory": "1Gi"},
            {HUGE: "3Mi"},
            [
                f'{field}[{HUGE}]: Invalid value: "3Mi":'
                f" 3Mi is not positive integer multiple of {HUGE}"
                for field in ("limits", "requests")
            ],
            id="half-a-page",
        ),
        pytest.param(
            {"cpu": "1", "hugepages-x": "1"},
            {"hugepages-x": "1"},
            [
                f'{field}[hugepages-x]: Invalid value: "1":'
                " 1 is not positive integer multiple of hugepages-x"
                for field in ("limits", "requests")
            ],
            id="pages-of-no-size",
        ),
        pytest.param(
            {"cpu": "2", "kubernetes.io/x": "2"},
            {"cpu": "1", "kubernetes.io/x": "1"},
            [
                'requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
                'requests: Invalid value: "2":'
                " must be less than or equal to kubernetes.io/x limit of 1",
            ],
            id="native-above-the-limit",
        ),
        pytest.param({GPU: "2"}, {GPU: "2"}, [], id="extended"),
        pytest.param({}, {GPU: "2"}, [], id="extended-limit-only"),
        pytest.param({GPU: "2000m"}, {GPU: "2"}, [], id="whole-in-another-unit"),
        pytest.param({"cpu": "1", HUGE: "4Mi"}, {HUGE: "4Mi"}, [], id="huge-pages"),
        pytest.param({"cpu": "500m", "kubernetes.io/x": "500m"}, {}, [], id="native-part"),
    ],
)
def test_amounts_and_limits(
    requests: dict[str, str], limits: dict[str, str], errors: list[str]
) -> None:
    texts = [f"spec.containers[0].resources.{error}" for error in errors]
    expected = ", ".join(texts) if len(texts) < 2 else f"[{', '.join(texts)}]"
    found = refusal("Pod", {"spec": with_resources(requests, limits)})
    assert found == (f'Pod "x" is invalid: {expected}' if errors else "")


def test_huge_pages_need_cpu_or_memory() -> None:
    found = refusal("Pod", {"spec": with_resources({}, {HUGE: "2Mi"})})
    where = "spec.containers[0].resources"
    assert found == f'Pod "x" is invalid: {where}: Forbidden: HugePages require cpu or memory'


@pytest.mark.parametrize(
    ("requests", "limits", "error"),
    [
        pytest.param(
            {GPU: "1"},
            {GPU: "1"},
            f'limits[{GPU}]: Unsupported value: "{GPU}":'
            ' supported values: "cpu", "hugepages-", "memory"',
            id="extended",
        ),
        pytest.param(
            {"cpu": "500m"},
            {},
            'requests[cpu]: Invalid value: "500m":'
            " must be greater than or equal to aggregate container requests of 1",
            id="below-its-containers",
        ),
        pytest.param(
            {},
            {"memory": "1Gi"},
            'containers[0][memory].limits: Invalid value: "2Gi":'
            " must be less than or equal to pod limits of 1Gi",
            id="limit-below-its-containers",
        ),
    ],
)
def test_what_a_pod_requests_as_a_whole(
    requests: dict[str, str], limits: dict[str, str], error: str
) -> None:
    spec = with_resources({"cpu": "1"}, {"memory": "2Gi"})
    found = refusal(
        "Pod", {"spec": {**spec, "resources": {"requests": requests, "limits": limits}}}
    )
    assert f"spec.resources.{error}" in found


@pytest.mark.parametrize("name", [GPU, "pods"])
def test_nodes_have_whole_amounts(name: str) -> None:
    found = refusal("Node", {"status": {"capacity": {name: "1500m", "cpu": "1500m"}}})
    errors = [
        f'status.{field}.{name}: Invalid value: "1500m": must be an integer'
        for field in ("capacity", "allocatable")
    ]
    assert found == f'Node "x" is invalid: [{", ".join(errors)}]'
    assert refusal("Node", {"status": {"capacity": {name: "3", "cpu": "1500m"}}}) == ""


def test_templates_of_pods_are_checked() -> None:
    labels = {"app": "a"}
    template = {"metadata": {"labels": {**labels, "a b": ""}}, "spec": requesting("memroy")}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    text = refusal("Deployment", {"spec": spec})
    assert 'spec.template.labels: Invalid value: "a b": ' in text
    where = "spec.template.spec.containers[0].resources.requests[memroy]"
    assert f'{where}: Invalid value: "memroy": must be a standard resource for containers' in text


def test_taints_are_checked() -> None:
    taints = [{"key": "a b", "value": "c d", "effect": "NoSchedule"}]
    text = refusal("Node", {"spec": {"taints": taints}})
    assert 'spec.taints[0].key: Invalid value: "a b": ' in text
    assert 'spec.taints[0].value: Invalid value: "c d": ' in text
