"""The schemas of the built-in kinds."""

import pytest

from kubestow.apiserver.schema.builtin import _schemas, schema_of
from kubestow.apiserver.schema.types import ANYTHING, Schema, Shape
from kubestow.apiserver.served import ServedResource, ServedTable
from kubestow.cluster.resources import default_resources

SERVED = list(ServedTable(default_resources()))


@pytest.mark.parametrize("served", SERVED, ids=lambda served: served.resource.qualified_name)
def test_every_kind_has_the_fields_of_every_object(served: ServedResource):
    schema = served.schema
    assert schema.shape is Shape.OBJECT
    assert {"apiVersion", "kind", "metadata"} <= schema.fields.keys()
    assert schema.fields["metadata"].type_name == "v1.ObjectMeta"


def test_an_unknown_kind_allows_anything():
    assert schema_of("shop.example.com", "v1", "Backup") is ANYTHING


def at(schema: Schema, path: str) -> Schema:
    for step in path.split("."):
        schema = schema.fields.get(step, schema.items or ANYTHING)
    return schema


@pytest.mark.parametrize(
    ("path", "type_name", "list_keys", "merge_key"),
    [
        pytest.param("spec.containers", "[]v1.Container", ("name",), "name", id="by-name"),
        pytest.param(
            "spec.containers.item.ports",
            "[]v1.ContainerPort",
            ("containerPort", "protocol"),
            "containerPort",
            id="by-two-keys",
        ),
        pytest.param("spec.containers.item.args", "[]string", (), None, id="owned-whole"),
        pytest.param("metadata.finalizers", "[]string", (), "", id="set"),
        pytest.param("spec.nodeSelector", "map[string]string", (), None, id="map"),
        pytest.param(
            "spec.containers.item.resources.requests", "v1.ResourceList", (), None, id="named"
        ),
    ],
)
def test_lists_and_types_of_pods(
    path: str, type_name: str, list_keys: tuple[str, ...], merge_key: str | None
):
    schema = at(schema_of("", "v1", "Pod"), path)
    assert (schema.type_name, schema.list_keys, schema.merge_key) == (
        type_name,
        list_keys,
        merge_key,
    )


# Sent to a server and answered, not stored.
NOT_STORED = frozenset(
    (
        "Binding", "DeleteOptions", "Eviction", "LocalSubjectAccessReview", "Scale",
        "SelfSubjectAccessReview", "SelfSubjectReview", "SelfSubjectRulesReview",
        "SubjectAccessReview", "TokenRequest", "TokenReview",
    )
)  # fmt: skip


def test_every_kind_of_the_table_is_served():
    in_table = {
        schema.struct_name
        for schema in _schemas().values()
        if {"apiVersion", "kind", "metadata"} <= schema.fields.keys()
    }
    # Served with the groups of v1.37 only.
    newer = {"CompositePodGroup"}
    assert in_table - NOT_STORED == {served.resource.kind for served in SERVED} | newer


def test_a_group_has_its_stable_versions_only():
    versions = {(one.resource.group, one.resource.version) for one in SERVED}
    assert {version for group, version in versions if group == "autoscaling"} == {"v1", "v2"}
    others = {version for group, version in versions if group != "autoscaling"}
    assert others == {"v1", "v1alpha2"}  # pod groups have no other
