"""What of a directory of manifests a simulation reads, warns about and forgets."""

from typing import Any

import pytest

from kubestow.api.files import Document
from kubestow.simulator.manifests import select_manifests, unknown_field_texts


def documents(*raw: dict[str, Any]) -> list[Document]:
    return [Document(one, f"all.yaml#{number}") for number, one in enumerate(raw, 1)]


def of_kind(kind: str, api_version: str = "v1") -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}}


@pytest.mark.parametrize(
    ("kind", "api_version", "is_read"),
    [
        ("Node", "v1", True),
        ("Pod", "v1", True),
        ("Deployment", "apps/v1", True),
        ("Job", "batch/v1", True),
        ("DaemonSet", "apps/v1", True),
        ("PriorityClass", "scheduling.k8s.io/v1", True),
        ("RuntimeClass", "node.k8s.io/v1", True),
        ("ResourceClaimTemplate", "resource.k8s.io/v1", True),
        # Another version than the one served: an error follows, instead of a wrong result.
        ("Deployment", "extensions/v1beta1", True),
        ("CSIStorageCapacity", "storage.k8s.io/v1beta1", True),
        ("Ingress", "networking.k8s.io/v1", False),
        ("Role", "rbac.authorization.k8s.io/v1", False),
        ("HorizontalPodAutoscaler", "autoscaling/v2", False),
        ("ConfigMap", "v1", False),
        ("Lease", "coordination.k8s.io/v1", False),
        ("CronJob", "batch/v1", False),
        ("Kustomization", "kustomize.config.k8s.io/v1beta1", False),
        ("CustomResourceDefinition", "apiextensions.k8s.io/v1", False),
        ("Rollout", "argoproj.io/v1alpha1", False),
        ("Service", "serving.knative.dev/v1", False),
        ("Job", "batch.volcano.sh/v1alpha1", False),
        ("PodGroup", "scheduling.x-k8s.io/v1alpha1", False),
    ],
)
def test_what_no_scheduler_reads_is_left_out(kind: str, api_version: str, is_read: bool) -> None:
    manifests = select_manifests(documents(of_kind(kind, api_version)))
    assert bool(manifests.documents) == is_read
    assert bool(manifests.ignored) != is_read


@pytest.mark.parametrize(
    ("fields", "is_noted"),
    [
        pytest.param({"resources": ["web.yaml"], "images": []}, False, id="plain"),
        pytest.param({"patches": [{"path": "more.yaml"}]}, True, id="patches"),
        pytest.param({"resources": ["../base"]}, True, id="overlay"),
    ],
)
def test_a_kustomization_that_would_change_objects_is_noted(
    fields: dict[str, Any], is_noted: bool
) -> None:
    raw = of_kind("Kustomization", "kustomize.config.k8s.io/v1beta1") | fields
    manifests = select_manifests([Document(raw, "base/kustomization.yaml#1")])
    note = (
        "base/kustomization.yaml is not applied; to have it applied, give -f the output of: "
        "kubectl kustomize base"
    )
    assert manifests.notes == ([note] if is_noted else [])
    assert manifests.ignored_text() == "ignored: 1 Kustomization"


@pytest.mark.parametrize(
    ("hook", "metadata", "is_ignored"),
    [
        ("test", {}, True),
        ("test-success, test-failure", {}, True),
        ("test", {"uid": "u"}, False),
        ("pre-install", {}, False),
        ("post-install,test", {}, False),
    ],
)
def test_tests_of_a_chart_are_left_out(
    hook: str, metadata: dict[str, str], is_ignored: bool
) -> None:
    pod = of_kind("Pod")
    pod["metadata"] |= {"annotations": {"helm.sh/hook": hook}, **metadata}
    manifests = select_manifests(documents(pod))
    assert manifests.ignored_text() == ("ignored: 1 Helm test" if is_ignored else "")


def test_what_is_ignored_is_counted_by_kind() -> None:
    manifests = select_manifests(
        documents(
            of_kind("Role", "rbac.authorization.k8s.io/v1"),
            *[of_kind("Ingress", "networking.k8s.io/v1")] * 3,
            of_kind("Service", "serving.knative.dev/v1"),
            of_kind("Node"),
        )
    )
    assert manifests.ignored_text() == "ignored: 3 Ingress, 1 Role, 1 Service.serving.knative.dev"
    assert select_manifests(documents(of_kind("Node"))).ignored_text() == ""


@pytest.mark.parametrize(
    ("kind", "api_version", "meant"),
    [
        ("Deploymnt", "apps/v1", "Deployment"),
        ("Deployments", "apps/v1", "Deployment"),
        ("deployment", "apps/v1", "Deployment"),
        ("pod", "v1", "Pod"),
        ("Ndoe", "v1", "Node"),
        ("PriortyClass", "scheduling.k8s.io/v1", "PriorityClass"),
        ("Pods", "example.com/v1", ""),
    ],
)
def test_a_kind_that_is_misspelt_is_named(kind: str, api_version: str, meant: str) -> None:
    raw = {"kind": kind, "apiVersion": api_version}
    found = select_manifests([Document(raw, f"a.yaml#{number}") for number in (1, 2)])
    expected = [f'a.yaml#1: unknown kind "{kind}" (did you mean "{meant}"?)'] if meant else []
    assert (found.notes, found.ignored) == (expected, {kind: 2})


# Kinds of Kubernetes that are not read.
OTHER_KINDS = [
    "APIService",
    "ClusterRole",
    "ClusterRoleBinding",
    "ClusterTrustBundle",
    "ComponentStatus",
    "ConfigMap",
    "ControllerRevision",
    "CronJob",
    "CustomResourceDefinition",
    "EndpointSlice",
    "Endpoints",
    "Event",
    "FlowSchema",
    "HorizontalPodAutoscaler",
    "IPAddress",
    "Ingress",
    "IngressClass",
    "Lease",
    "LeaseCandidate",
    "LimitRange",
    "MutatingAdmissionPolicy",
    "MutatingWebhookConfiguration",
    "NetworkPolicy",
    "NodeMetrics",
    "PodCertificateRequest",
    "PodMetrics",
    "PodTemplate",
    "PriorityLevelConfiguration",
    "ResourceQuota",
    "Role",
    "RoleBinding",
    "Secret",
    "Service",
    "ServiceAccount",
    "ServiceCIDR",
    "StorageVersion",
    "StorageVersionMigration",
    "ValidatingAdmissionPolicy",
    "ValidatingWebhookConfiguration",
    "VolumeAttributesClass",
]


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_no_kind_of_kubernetes_is_taken_for_another(kind: str) -> None:
    document = Document({"kind": kind, "apiVersion": "v1"}, "a.yaml#1")
    assert select_manifests([document]).notes == []


def test_config_maps_are_kept_where_a_policy_may_be_in_one() -> None:
    given = documents(of_kind("ConfigMap"), of_kind("Secret"))
    manifests = select_manifests(given, reads_config_maps=True)
    assert manifests.config_maps == given[:1]
    assert manifests.ignored_text() == "ignored: 1 Secret"


def test_unknown_fields_are_named_once_and_counted() -> None:
    def pod(*containers: dict[str, Any]) -> dict[str, Any]:
        return {**of_kind("Pod"), "spec": {"nodeSelectr": {}, "containers": list(containers)}}

    texts = unknown_field_texts(documents(pod({"imagee": "x"}, {"imagee": "y"}), pod()))
    assert texts == [
        'all.yaml#1: unknown field "spec.nodeSelectr" (did you mean "nodeSelector"?), and 1 more '
        "like it",
        'all.yaml#1: unknown field "spec.containers[0].imagee" (did you mean "image"?), and 1 more '
        "like it",
    ]
