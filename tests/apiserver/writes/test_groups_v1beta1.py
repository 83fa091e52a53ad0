"""Pod groups in the API of v1.37: defaults, rules, what may change (spec 12 §12)."""

import pytest

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.config.feature_gates import FeatureGates
from kubestow.editions import edition_named
from kubestow.errors import ApiError
from kubestow.testing import ManualClock

GATES = ("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup")
GANG: JsonObject = {"schedulingPolicy": {"gang": {"minCount": 2}}}
REFERENCE: JsonObject = {"workloadName": "w", "templateName": "t"}


@pytest.fixture
def cluster() -> MemoryCluster:
    gates = FeatureGates(dict.fromkeys(GATES, True), edition_named("v1.37"))
    return MemoryCluster(ManualClock(), gates=gates)


def create(cluster: MemoryCluster, plural: str, spec: JsonObject) -> StoredObject:
    resource = cluster.resources.named(f"{plural}.scheduling.k8s.io")
    metadata = {"name": "g", "namespace": "default"}
    document = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        "spec": spec,
    }
    return cluster.create(resource, document)


def test_a_group_is_of_v1beta1_and_evicted_pod_by_pod_by_default(cluster: MemoryCluster) -> None:
    stored = create(cluster, "podgroups", GANG)
    assert stored.document["apiVersion"] == "scheduling.k8s.io/v1beta1"
    assert stored.document["spec"]["disruptionMode"] == {"single": {}}


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"schedulingPolicy": {}}, "must specify one of: `basic`, `gang`"),
        (
            {"schedulingPolicy": {"basic": {}, "gang": {"minCount": 2}}},
            "must specify exactly one of: `basic`, `gang`",
        ),
        ({"schedulingPolicy": {"gang": {"minCount": 0}}}, "minCount: Required value"),
        (
            {**GANG, "disruptionMode": {"single": {}, "all": {}}},
            "must specify exactly one of: `single`, `all`",
        ),
        ({**GANG, "parentCompositePodGroupName": "root"}, "spec.workloadRef: Required value"),
    ],
)
def test_wrong_groups_are_refused(cluster: MemoryCluster, spec: JsonObject, error: str) -> None:
    with pytest.raises(ApiError, match=error):
        create(cluster, "podgroups", spec)


def test_the_minimum_of_a_gang_can_change_and_its_policy_cannot(cluster: MemoryCluster) -> None:
    create(cluster, "podgroups", GANG)
    resource = cluster.resources.named("podgroups.scheduling.k8s.io")
    patch: JsonObject = {"spec": {"schedulingPolicy": {"gang": {"minCount": 4}}}}
    changed = cluster.patch(resource, "default", "g", patch, "merge")
    assert changed.document["spec"]["schedulingPolicy"] == {"gang": {"minCount": 4}}
    patch = {"spec": {"schedulingPolicy": {"gang": None, "basic": {}}}}
    with pytest.raises(ApiError, match="field is immutable"):
        cluster.patch(resource, "default", "g", patch, "merge")


def test_a_composite_group_needs_a_workload(cluster: MemoryCluster) -> None:
    policy: JsonObject = {"schedulingPolicy": {"gang": {"minGroupCount": 2}}}
    with pytest.raises(ApiError, match="workloadRef: Required value"):
        create(cluster, "compositepodgroups", policy)
    stored = create(cluster, "compositepodgroups", {**policy, "workloadRef": REFERENCE})
    assert stored.document["apiVersion"] == "scheduling.k8s.io/v1alpha3"
