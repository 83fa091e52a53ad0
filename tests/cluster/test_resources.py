"""The table of served resources."""

import pytest

from kubestow.api.decode import KINDS
from kubestow.api.meta import ApiObject
from kubestow.api.pod import Pod
from kubestow.api.storage import StorageClass
from kubestow.cluster.resources import (
    NEWER_POD_GROUP_VERSION,
    PODS,
    ApiResource,
    default_resources,
)
from kubestow.errors import NotFoundError

RESOURCES = default_resources()


def test_groups_of_groups_are_served_beside_newer_groups():
    resource = default_resources(NEWER_POD_GROUP_VERSION).of_type(KINDS["CompositePodGroup"])
    assert resource.api_version == "scheduling.k8s.io/v1alpha3"


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"Binding", "CompositePodGroup"}))
def test_every_kind_the_scheduler_decodes_is_served(kind: str):
    resource = RESOURCES.of_type(KINDS[kind])
    assert resource.kind == kind
    assert resource.cls is KINDS[kind]


@pytest.mark.parametrize(
    ("name", "api_version", "kind", "namespaced"),
    [
        ("pods", "v1", "Pod", True),
        ("nodes", "v1", "Node", False),
        ("statefulsets.apps", "apps/v1", "StatefulSet", True),
        ("poddisruptionbudgets.policy", "policy/v1", "PodDisruptionBudget", True),
        ("csistoragecapacities.storage.k8s.io", "storage.k8s.io/v1", "CSIStorageCapacity", True),
        ("csinodes.storage.k8s.io", "storage.k8s.io/v1", "CSINode", False),
        ("deviceclasses.resource.k8s.io", "resource.k8s.io/v1", "DeviceClass", False),
        ("resourceslices.resource.k8s.io", "resource.k8s.io/v1", "ResourceSlice", False),
        ("resourceclaims.resource.k8s.io", "resource.k8s.io/v1", "ResourceClaim", True),
        (
            "resourceclaimtemplates.resource.k8s.io",
            "resource.k8s.io/v1",
            "ResourceClaimTemplate",
            True,
        ),
        ("podgroups.scheduling.k8s.io", "scheduling.k8s.io/v1alpha2", "PodGroup", True),
    ],
)
def test_a_resource_is_found_by_its_name_and_by_its_kind(
    name: str, api_version: str, kind: str, namespaced: bool
):
    resource = RESOURCES.named(name)
    assert RESOURCES.of_kind(api_version, kind) is resource
    assert resource.namespaced is namespaced


def test_types_lead_to_resources():
    assert RESOURCES.of_type(Pod) is PODS
    assert RESOURCES.of_type(StorageClass).qualified_name == "storageclasses.storage.k8s.io"


def test_what_is_not_served_is_not_found():
    with pytest.raises(NotFoundError, match="could not find the requested resource"):
        RESOURCES.named("widgets")
    with pytest.raises(NotFoundError, match='no matches for kind "Pod" in version "v2"'):
        RESOURCES.of_kind("v2", "Pod")


def test_a_kind_of_another_group_is_not_found():
    knative = ApiResource(
        group="serving.knative.dev",
        version="v1",
        plural="services",
        kind="Service",
        namespaced=True,
    )
    assert knative.cls is ApiObject
