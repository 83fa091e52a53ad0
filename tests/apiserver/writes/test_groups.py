"""Pod groups and workloads in the embedded server: spec 11 §2, examples E46 and E47."""

from typing import Any

import pytest

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.writes.groups import FINALIZER
from kubestow.cluster.resources import POD_GROUPS, PODS, PRIORITY_CLASSES, WORKLOADS
from kubestow.config.feature_gates import FeatureGates
from kubestow.errors import ApiError, InvalidError
from kubestow.testing import ManualClock

GENERIC = ("GenericWorkload",)
ALL = (
    "GenericWorkload",
    "GangScheduling",
    "TopologyAwareWorkloadScheduling",
    "WorkloadAwarePreemption",
    "DRAWorkloadResourceClaims",
)
GANG = {"schedulingPolicy": {"gang": {"minCount": 2}}}


def cluster(*gates: str) -> MemoryCluster:
    return MemoryCluster(ManualClock(), gates=FeatureGates(dict.fromkeys(gates, True)))


def group(**spec: Any) -> JsonObject:
    return {"metadata": {"name": "g", "namespace": "ns"}, "spec": {**GANG, **spec}}


def workload(*names: str, **more: Any) -> JsonObject:
    templates = [{"name": name, **GANG, **more} for name in names]
    return {"metadata": {"name": "w", "namespace": "ns"}, "spec": {"podGroupTemplates": templates}}


def pod(**spec: Any) -> JsonObject:
    containers = [{"name": "c", "image": "i"}]
    return {
        "metadata": {"name": "p", "namespace": "ns"},
        "spec": {"containers": containers, **spec},
    }


def spec_of(store: MemoryCluster, document: JsonObject) -> JsonObject:
    return store.create(POD_GROUPS, document).document["spec"]


def test_a_pod_keeps_its_group_only_with_the_gate() -> None:
    member = pod(schedulingGroup={"podGroupName": "g"})
    assert "schedulingGroup" not in cluster().create(PODS, member).document["spec"]
    store = cluster(*GENERIC)
    stored = store.create(PODS, member)
    assert stored.document["spec"]["schedulingGroup"] == {"podGroupName": "g"}


def test_a_pod_must_name_its_group() -> None:
    with pytest.raises(InvalidError, match="must specify one of: `podGroupName`"):
        cluster(*GENERIC).create(PODS, pod(schedulingGroup={}))


def test_e46_fields_of_gates_that_are_off_are_dropped() -> None:
    given = group(
        disruptionMode="PodGroup",
        priority=7,
        priorityClassName="high",
        schedulingConstraints={"topology": [{"key": "rack"}]},
        resourceClaims=[{"name": "c", "resourceClaimName": "c"}],
    )
    assert spec_of(cluster(*GENERIC), given) == GANG


def test_e47_system_classes_are_too_high_for_groups() -> None:
    with pytest.raises(InvalidError, match="must be less than or equal to 1000000000"):
        cluster(*ALL).create(POD_GROUPS, group(priorityClassName="system-cluster-critical"))


def test_the_mode_defaults_to_pod_and_the_priority_to_that_of_the_class() -> None:
    store = cluster(*ALL)
    assert spec_of(store, group()) == {**GANG, "disruptionMode": "Pod", "priority": 0}
    store = cluster(*ALL)
    store.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 10})
    found = spec_of(store, group(priorityClassName="high"))
    assert found["priority"] == 10


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        pytest.param(
            {"priorityClassName": "c"}, "no PriorityClass with name c was found", id="unknown"
        ),
        pytest.param(
            {"priority": 5},
            r"priority set in the pod group \(5\) must match the priority computed \(0\)",
            id="another-priority",
        ),
        pytest.param(
            {
                "podGroupTemplateRef": {
                    "workload": {"workloadName": "x", "podGroupTemplateName": "t"}
                }
            },
            'PodGroup rejected: Workload "x" not found',
            id="no-workload",
        ),
        pytest.param(
            {
                "podGroupTemplateRef": {
                    "workload": {"workloadName": "w", "podGroupTemplateName": "x"}
                }
            },
            'PodGroup rejected: PodGroupTemplate "x" not found in Workload "w"',
            id="no-template",
        ),
    ],
)
def test_what_admission_refuses(spec: JsonObject, text: str) -> None:
    store = cluster(*ALL)
    store.create(WORKLOADS, workload("t"))
    with pytest.raises(ApiError, match=text) as raised:
        store.create(POD_GROUPS, group(**spec))
    assert raised.value.code == 403


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        pytest.param(
            {"schedulingPolicy": {}},
            'spec.schedulingPolicy: Invalid value: "": must specify one of: `basic`, `gang`',
            id="neither",
        ),
        pytest.param(
            {"schedulingPolicy": {"basic": {}, "gang": {"minCount": 1}}},
            "must specify exactly one of: `basic`, `gang`",
            id="both",
        ),
        pytest.param(
            {"schedulingPolicy": {"gang": {}}},
            "spec.schedulingPolicy.gang.minCount: Required value",
            id="no-count",
        ),
        pytest.param(
            {"schedulingPolicy": {"gang": {"minCount": -1}}},
            "must be greater than or equal to 1",
            id="negative",
        ),
        pytest.param(
            {"schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}},
            "Too many: 2: must have at most 1 item",
            id="two-keys",
        ),
        pytest.param(
            {"resourceClaims": [{"name": "c"}]},
            "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
            id="claim-of-nothing",
        ),
        pytest.param({"disruptionMode": "Some"}, 'Unsupported value: "Some"', id="mode"),
    ],
)
def test_what_validation_refuses(spec: JsonObject, text: str) -> None:
    with pytest.raises(InvalidError) as raised:
        cluster(*ALL).create(POD_GROUPS, group(**spec))
    assert text in str(raised.value)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"schedulingPolicy": {"gang": {"minCount": 3}}}, id="policy"),
        pytest.param({"priority": 3}, id="priority"),
        pytest.param({"disruptionMode": "PodGroup"}, id="mode"),
    ],
)
def test_the_spec_cannot_change(change: JsonObject) -> None:
    store = cluster(*ALL)
    store.create(POD_GROUPS, group())
    with pytest.raises(InvalidError, match="field is immutable"):
        store.patch(POD_GROUPS, "ns", "g", {"spec": change}, "merge")


def test_the_status_is_written_by_itself() -> None:
    store = cluster(*ALL)
    store.create(POD_GROUPS, group())
    condition = {"type": "PodGroupScheduled", "status": "True", "reason": "Scheduled"}
    patch = {"status": {"conditions": [condition]}}
    stored = store.patch(POD_GROUPS, "ns", "g", patch, subresource="status")
    assert stored.document["status"]["conditions"] == [condition]
    assert stored.metadata["generation"] == 1


@pytest.mark.parametrize(
    ("templates", "text"),
    [
        pytest.param([], "spec.podGroupTemplates: Required value", id="none"),
        pytest.param(["a"] * 9, "Too many: 9: must have at most 8 items", id="too-many"),
        pytest.param(["a", "a"], 'Duplicate value: {"name":"a"}', id="twice"),
        pytest.param(["A"], "a lowercase RFC 1123 label", id="name"),
    ],
)
def test_rules_for_workloads(templates: list[str], text: str) -> None:
    with pytest.raises(InvalidError) as raised:
        cluster(*ALL).create(WORKLOADS, workload(*templates))
    assert text in str(raised.value)


def test_templates_lose_fields_of_gates_that_are_off() -> None:
    stored = cluster(*GENERIC).create(WORKLOADS, workload("t", priority=4))
    assert stored.document["spec"]["podGroupTemplates"] == [{"name": "t", **GANG}]


def test_groups_are_protected() -> None:
    store = cluster(*GENERIC)
    stored = store.create(POD_GROUPS, group())
    assert stored.metadata["finalizers"] == [FINALIZER]
    store.delete(POD_GROUPS, "ns", "g")
    assert "deletionTimestamp" in store.get(POD_GROUPS, "ns", "g").metadata
    assert cluster().create(POD_GROUPS, group()).metadata.get("finalizers") is None


def test_the_parallelism_of_a_gang_cannot_change() -> None:
    store = cluster(*GENERIC)
    store.create(POD_GROUPS, group())
    jobs = store.resources.named("jobs.batch")
    template = {
        "spec": {**pod(schedulingGroup={"podGroupName": "g"})["spec"], "restartPolicy": "Never"}
    }
    store.create(
        jobs,
        {
            "metadata": {"name": "j", "namespace": "ns"},
            "spec": {"parallelism": 2, "template": template},
        },
    )
    with pytest.raises(ApiError, match='gang-scheduled PodGroup "g"'):
        store.patch(jobs, "ns", "j", {"spec": {"parallelism": 3}}, "merge")
