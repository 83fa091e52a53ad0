"""Updates of pods change what upstream lets them change, and nothing else."""

from typing import Any

import pytest

from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.resources import PODS
from kubestow.errors import InvalidError
from kubestow.testing import ManualClock

CONTAINER = {"name": "c", "image": "a", "resources": {"requests": {"cpu": "1"}}}
TOLERATION = {"key": "k", "operator": "Exists", "tolerationSeconds": 5}
RULE = (
    'Pod "p" is invalid: spec: Forbidden: pod updates may not change fields other than '
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"
)


def cluster_with(**spec: Any) -> MemoryCluster:
    cluster = MemoryCluster(ManualClock())
    document = {"metadata": {"name": "p"}, "spec": {"containers": [CONTAINER], **spec}}
    cluster.create(PODS, document)
    return cluster


def patch(cluster: MemoryCluster, **spec: Any) -> dict[str, Any]:
    return cluster.patch(PODS, "default", "p", {"spec": spec}, "merge").document["spec"]


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        (
            {"containers": [{**CONTAINER, "resources": {"requests": {"cpu": "2"}}}]},
            'spec.containers[0].resources.requests.cpu: "1" to "2"',
        ),
        ({"nodeSelector": {"disk": "ssd"}}, 'spec.nodeSelector: null to {"disk": "ssd"}'),
        ({"priority": 7}, "spec.priority: 0 to 7"),
        ({"schedulerName": "mine"}, 'spec.schedulerName: "default-scheduler" to "mine"'),
        ({"nodeName": "n"}, 'spec.nodeName: null to "n"'),
        ({"terminationGracePeriodSeconds": 1}, "spec.terminationGracePeriodSeconds: 30 to 1"),
        (
            {"containers": [{**CONTAINER, "env": [{"name": "A", "value": "b"}]}]},
            'spec.containers[0].env: null to [{"name": "A", "value": "b"}]',
        ),
    ],
)
def test_other_fields_are_forbidden(change: dict[str, Any], changed: str) -> None:
    cluster = cluster_with()
    with pytest.raises(InvalidError) as refused:
        patch(cluster, **change)
    assert str(refused.value) == RULE + changed


@pytest.mark.parametrize(
    "change",
    [
        {"containers": [{**CONTAINER, "image": "b"}]},
        {"containers": [{**CONTAINER, "resources": {"requests": {"cpu": "1000m"}}}]},
        {"activeDeadlineSeconds": 60},
        {"tolerations": [TOLERATION, {"operator": "Exists"}]},
        {"tolerations": [{**TOLERATION, "tolerationSeconds": 9}, {"operator": "Exists"}]},
        {"securityContext": {}},
        {"nodeSelector": None},
    ],
)
def test_some_may_change(change: dict[str, Any]) -> None:
    cluster = cluster_with(tolerations=[TOLERATION, {"operator": "Exists"}])
    patch(cluster, **change)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (
            {"tolerations": [{"operator": "Exists"}]},
            "spec.tolerations: Forbidden: existing toleration can not be modified except its "
            "tolerationSeconds",
        ),
        (
            {"schedulingGates": [{"name": "g"}]},
            "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new "
            "scheduling gate 'g'",
        ),
        (
            {"containers": [CONTAINER, {"name": "d", "image": "d"}]},
            "spec.containers: Forbidden: pod updates may not add or remove containers",
        ),
    ],
)
def test_lists_have_rules_of_their_own(change: dict[str, Any], error: str) -> None:
    cluster = cluster_with(tolerations=[TOLERATION])
    with pytest.raises(InvalidError) as refused:
        patch(cluster, **change)
    assert str(refused.value) == f'Pod "p" is invalid: {error}'


def in_zone(*values: str) -> dict[str, Any]:
    expressions = [{"key": value, "operator": "Exists"} for value in values]
    terms = [{"matchExpressions": expressions}]
    required = {"nodeSelectorTerms": terms}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def test_a_pod_with_gates_can_be_narrowed() -> None:
    gates = [{"name": "g"}, {"name": "h"}]
    cluster = cluster_with(schedulingGates=gates, nodeSelector={"a": "1"}, affinity=in_zone("a"))
    patch(cluster, nodeSelector={"b": "2"}, affinity=in_zone("a", "b"))
    for change, error in (
        ({"nodeSelector": {"a": "2"}}, "only additions to spec.nodeSelector are allowed"),
        ({"affinity": in_zone("b")}, "only additions are allowed (no mutations or deletions)"),
        ({"affinity": None}, "no additions/deletions to non-empty NodeSelectorTerms list"),
        ({"affinity": {"podAffinity": {"x": 1}, **in_zone("a", "b")}}, "pod updates may not"),
    ):
        with pytest.raises(InvalidError) as refused:
            patch(cluster, **change)
        assert error in str(refused.value)
    patch(cluster, schedulingGates=[{"name": "h"}])
    patch(cluster, schedulingGates=None)
    with pytest.raises(InvalidError, match="pod updates may not change fields"):
        patch(cluster, nodeSelector={"c": "3"})


def test_binding_is_no_update() -> None:
    cluster = cluster_with()
    cluster.bind("default", "p", "n")
    assert patch(cluster, activeDeadlineSeconds=5)["nodeName"] == "n"


def test_metadata_may_change() -> None:
    cluster = cluster_with()
    patched = cluster.patch(PODS, "default", "p", {"metadata": {"labels": {"a": "b"}}}, "merge")
    assert patched.metadata["labels"] == {"a": "b"}
