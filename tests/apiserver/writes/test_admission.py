"""What happens to an object when it is created (spec 01 §0.1, steps 5 and 6, and §12.4)."""

from collections.abc import Callable
from typing import Any

import pytest

from kubestow.api.decode import convert
from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    PRIORITY_CLASSES,
    RUNTIME_CLASSES,
    STORAGE_CLASSES,
)
from kubestow.errors import ApiError
from kubestow.testing.clock import ManualClock

Build = Callable[..., JsonObject]


def add_priority_class(cluster: MemoryCluster, name: str, value: int, **fields: Any) -> None:
    cluster.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value, **fields})


# --- Priority ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "priority", "policy", "class_name"),
    [
        pytest.param(
            {"priorityClassName": "high"}, 1000, "PreemptLowerPriority", "high", id="named"
        ),
        pytest.param(
            {"priorityClassName": "quiet"}, 10, "Never", "quiet", id="policy-of-the-class"
        ),
        pytest.param(
            {"priorityClassName": "high", "priority": 1000},
            1000,
            "PreemptLowerPriority",
            "high",
            id="same-number-given",
        ),
        pytest.param(
            {"priorityClassName": "system-node-critical"},
            2_000_001_000,
            "PreemptLowerPriority",
            "system-node-critical",
            id="system-node",
        ),
        pytest.param(
            {"priorityClassName": "system-cluster-critical"},
            2_000_000_000,
            "PreemptLowerPriority",
            "system-cluster-critical",
            id="system-cluster",
        ),
        pytest.param({}, 0, "PreemptLowerPriority", None, id="nothing-given"),
        pytest.param({"priority": 5}, 5, "PreemptLowerPriority", None, id="number-alone"),
        pytest.param({"preemptionPolicy": "Never"}, 0, "Never", None, id="policy-alone"),
    ],
)
def test_priority(
    cluster: MemoryCluster,
    pod_document: Build,
    spec: Any,
    priority: int,
    policy: str,
    class_name: str | None,
):
    add_priority_class(cluster, "high", 1000)
    add_priority_class(cluster, "quiet", 10, preemptionPolicy="Never")
    created = cluster.create(PODS, pod_document(**spec)).document["spec"]
    assert created["priority"] == priority
    assert created["preemptionPolicy"] == policy
    assert created.get("priorityClassName") == class_name


def test_the_global_default_is_taken_and_of_several_the_lowest(
    cluster: MemoryCluster, pod_document: Build
):
    add_priority_class(cluster, "usual", 50, globalDefault=True, preemptionPolicy="Never")
    add_priority_class(cluster, "unusual", 70, globalDefault=True)
    created = cluster.create(PODS, pod_document()).document["spec"]
    assert (created["priority"], created["priorityClassName"]) == (50, "usual")
    assert created["preemptionPolicy"] == "Never"
    own = cluster.create(PODS, pod_document("web-2", priority=3)).document["spec"]
    assert own["priority"] == 3
    assert "priorityClassName" not in own


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(
            {"priorityClassName": "none"},
            'pods "web-1" is forbidden: no PriorityClass with name none was found',
            id="missing",
        ),
        pytest.param(
            {"priorityClassName": "high", "priority": 3},
            "the integer value of priority (3) must not be provided in pod spec; priority admission"
            " controller computed 1000 from the given PriorityClass name",
            id="other-number",
        ),
        pytest.param(
            {"priorityClassName": "high", "preemptionPolicy": "Never"},
            "the string value of PreemptionPolicy (Never) must not be provided in pod spec;",
            id="other-policy",
        ),
        pytest.param(
            {"runtimeClassName": "none"}, 'RuntimeClass "none" not found', id="runtime-class"
        ),
    ],
)
def test_what_contradicts_a_class_is_forbidden(
    cluster: MemoryCluster, pod_document: Build, spec: Any, message: str
):
    add_priority_class(cluster, "high", 1000)
    with pytest.raises(ApiError) as caught:
        cluster.create(PODS, pod_document(**spec))
    assert (caught.value.code, caught.value.reason) == (403, "Forbidden")
    assert message in str(caught.value)


# --- Runtime class, tolerations ---------------------------------------------------------------


def test_a_runtime_class_adds_overhead_and_node_constraints(
    cluster: MemoryCluster, pod_document: Build
):
    toleration = {"key": "sandbox", "operator": "Exists"}
    cluster.create(
        RUNTIME_CLASSES,
        {
            "metadata": {"name": "sandboxed"},
            "handler": "x",
            "overhead": {"podFixed": {"cpu": "1500u"}},
            "scheduling": {"nodeSelector": {"sandbox": "yes"}, "tolerations": [toleration]},
        },
    )
    document = pod_document(runtimeClassName="sandboxed", nodeSelector={"disk": "ssd"})
    spec = cluster.create(PODS, document).document["spec"]
    assert spec["overhead"] == {"cpu": "2m"}
    assert spec["nodeSelector"] == {"sandbox": "yes", "disk": "ssd"}
    assert toleration in spec["tolerations"]


NOT_READY, UNREACHABLE = (
    {"key": f"node.kubernetes.io/{state}", "operator": "Exists", "effect": "NoExecute"}
    | {"tolerationSeconds": 300}
    for state in ("not-ready", "unreachable")
)


@pytest.mark.parametrize(
    ("given", "added"),
    [
        pytest.param([], [NOT_READY, UNREACHABLE], id="none"),
        pytest.param(
            [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
            [UNREACHABLE],
            id="one-of-them",
        ),
        pytest.param([{"operator": "Exists"}], [], id="everything"),
        pytest.param(
            [{"operator": "Exists", "effect": "NoSchedule"}],
            [NOT_READY, UNREACHABLE],
            id="other-effect",
        ),
    ],
)
def test_pods_tolerate_lost_nodes_for_five_minutes(
    cluster: MemoryCluster, pod_document: Build, given: Any, added: Any
):
    document = pod_document(tolerations=given) if given else pod_document()
    spec = cluster.create(PODS, document).document["spec"]
    assert spec.get("tolerations", []) == [*given, *added]


# --- Label keys -------------------------------------------------------------------------------

TERM = {
    "topologyKey": "zone",
    "labelSelector": {"matchLabels": {"app": "web"}},
    "matchLabelKeys": ["version", "missing"],
    "mismatchLabelKeys": ["tenant"],
}
ADDED = [
    {"key": "version", "operator": "In", "values": ["v1"]},
    {"key": "tenant", "operator": "NotIn", "values": ["t"]},
]
LABELS = {"labels": {"app": "web", "version": "v1", "tenant": "t"}}


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
def test_label_keys_narrow_all_four_lists_of_terms(
    cluster: MemoryCluster, pod_document: Build, kind: str
):
    affinity = {
        kind: {
            "requiredDuringSchedulingIgnoredDuringExecution": [TERM],
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": TERM}
            ],
        }
    }
    document = pod_document(metadata=LABELS, affinity=affinity)
    created = cluster.create(PODS, document).document["spec"]["affinity"][kind]
    required = created["requiredDuringSchedulingIgnoredDuringExecution"][0]
    preferred = created["preferredDuringSchedulingIgnoredDuringExecution"][0]
    assert required["labelSelector"]["matchExpressions"] == ADDED
    assert preferred["podAffinityTerm"]["labelSelector"]["matchExpressions"] == ADDED


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param(
            {"matchExpressions": [{"key": "x", "operator": "Exists"}]},
            {"matchExpressions": [{"key": "x", "operator": "Exists"}, ADDED[0]]},
            id="appended",
        ),
        pytest.param({}, {"matchExpressions": [ADDED[0]]}, id="empty-selector"),
        pytest.param(
            {"matchExpressions": [ADDED[0]]}, {"matchExpressions": [ADDED[0]]}, id="merged-before"
        ),
        pytest.param(None, None, id="no-selector"),
    ],
)
def test_label_keys_narrow_spread_constraints(
    cluster: MemoryCluster, pod_document: Build, selector: Any, expected: Any
):
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "matchLabelKeys": ["version"],
    }
    if selector is not None:
        constraint["labelSelector"] = selector
    document = pod_document(metadata=LABELS, topologySpreadConstraints=[constraint])
    (created,) = cluster.create(PODS, document).document["spec"]["topologySpreadConstraints"]
    assert created.get("labelSelector") == expected


# --- Status -----------------------------------------------------------------------------------


def test_a_new_pod_is_pending_and_has_a_quality_class(cluster: MemoryCluster, pod_document: Build):
    limits = {"cpu": "1", "memory": "1Gi"}
    guaranteed = [{"name": "main", "resources": {"limits": limits}}]
    for name, spec, expected in (
        ("a", {}, "BestEffort"),
        ("b", {"containers": guaranteed}, "Guaranteed"),
    ):
        stored = cluster.create(PODS, pod_document(name, **spec))
        assert stored.document["status"] == {"phase": "Pending", "qosClass": expected}
        assert stored.typed == convert(Pod, stored.document)


def test_a_gated_pod_has_the_condition(cluster: MemoryCluster, pod_document: Build):
    stored = cluster.create(PODS, pod_document(schedulingGates=[{"name": "example.com/gate"}]))
    (condition,) = stored.document["status"]["conditions"]
    assert condition == {
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }


def test_a_status_given_is_kept(cluster: MemoryCluster, pod_document: Build):
    status = {"phase": "Running", "qosClass": "Burstable", "startTime": "2020-01-01T00:00:00Z"}
    assert cluster.create(PODS, pod_document(status=status)).document["status"] == status


# --- Claims -----------------------------------------------------------------------------------


def add_storage_class(cluster: MemoryCluster, name: str, *, is_default: bool) -> None:
    annotations = {"storageclass.kubernetes.io/is-default-class": str(is_default).lower()}
    cluster.create(
        STORAGE_CLASSES,
        {"metadata": {"name": name, "annotations": annotations}, "provisioner": "x"},
    )


def test_a_claim_without_a_class_gets_the_newest_default_one(
    cluster: MemoryCluster, clock: ManualClock
):
    def chosen(name: str, **spec: Any) -> str | None:
        claim = {"metadata": {"name": name}, "spec": spec}
        stored = cluster.create(PERSISTENT_VOLUME_CLAIMS, claim)
        return stored.document["spec"].get("storageClassName")

    assert chosen("none") is None
    add_storage_class(cluster, "plain", is_default=False)
    add_storage_class(cluster, "b", is_default=True)
    add_storage_class(cluster, "a", is_default=True)
    assert chosen("same-age-by-name") == "a"
    clock.advance_s(5)
    add_storage_class(cluster, "c", is_default=True)
    assert chosen("newest") == "c"
    assert chosen("given", storageClassName="plain") == "plain"
    assert chosen("given-none", storageClassName="") == ""
