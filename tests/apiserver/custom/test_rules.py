"""The rules that definitions follow, and their deletion."""

import asyncio
from typing import Any

import pytest

from kubestow.api.meta import JsonObject
from kubestow.apiserver.controllers.emptying import DefinitionController
from kubestow.apiserver.custom.definitions import version_order
from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.resources import CUSTOM_RESOURCE_DEFINITIONS
from kubestow.errors import InvalidError, NotFoundError
from kubestow.testing.clock import ManualClock

NAME = "widgets.acme.example.com"
SPEC: JsonObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@pytest.fixture
def cluster(clock: ManualClock) -> MemoryCluster:
    cluster = MemoryCluster(clock, namespace_lifecycle=True)
    cluster.load([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}])
    return cluster


def version(name: str, spec: JsonObject = SPEC, **more: Any) -> JsonObject:
    schema = {"type": "object", "properties": {"spec": spec}}
    return {"name": name, "served": True, "schema": {"openAPIV3Schema": schema}, **more}


def definition(**spec: Any) -> JsonObject:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": "acme.example.com",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [version("v1", storage=True)],
            **spec,
        },
    }


def widget(name: str) -> JsonObject:
    return {
        "apiVersion": "acme.example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"size": 3},
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param({"scope": "Both"}, "spec.scope: Unsupported value", id="scope"),
        pytest.param({"group": "other.example.com"}, "metadata.name: Invalid value", id="name"),
        pytest.param({"versions": []}, "exactly one version marked as storage", id="storage"),
        pytest.param(
            {"versions": [version("v1", {}, storage=True)]},
            "spec.validation.openAPIV3Schema.properties[spec].type: Required value",
            id="no-type",
        ),
        pytest.param(
            {"versions": [version("v1", {"type": "string", "pattern": "("}, storage=True)]},
            "must be a valid regular expression",
            id="pattern",
        ),
        pytest.param(
            {"versions": [{"name": "v1", "served": True, "storage": True}]},
            "openAPIV3Schema: Required value",
            id="no-schema",
        ),
        pytest.param(
            {"conversion": {"strategy": "Webhook"}}, "spec.conversion.strategy", id="webhook"
        ),
    ],
)
def test_an_invalid_definition_is_refused(cluster: MemoryCluster, change: Any, message: str):
    with pytest.raises(InvalidError) as caught:
        cluster.create(CUSTOM_RESOURCE_DEFINITIONS, definition(**change))
    assert message in str(caught.value)


def test_the_group_of_a_definition_does_not_change(cluster: MemoryCluster):
    cluster.create(CUSTOM_RESOURCE_DEFINITIONS, definition())
    with pytest.raises(InvalidError, match=r"spec.scope: Invalid value.*immutable"):
        cluster.update(CUSTOM_RESOURCE_DEFINITIONS, definition(scope="Cluster"))


async def deleted(cluster: MemoryCluster, resource: Any, name: str) -> None:
    """Wait until the object is gone."""
    watch = cluster.watch(resource)
    while cluster.find(
        resource, "" if resource is CUSTOM_RESOURCE_DEFINITIONS else "default", name
    ):
        await watch.next_batch()
    watch.close()


def test_deleting_a_definition_deletes_its_objects(cluster: MemoryCluster):
    cluster.load([definition(), widget("a"), widget("b")])
    widgets = cluster.resources.named(NAME)
    kept = {"metadata": {"finalizers": ["acme.example.com/keep"]}}
    cluster.patch(widgets, "default", "b", kept, "merge")

    async def work() -> None:
        task = asyncio.create_task(DefinitionController(cluster).run())
        watch = cluster.watch(widgets)
        cluster.delete(CUSTOM_RESOURCE_DEFINITIONS, "", NAME)
        served = cluster.served.find("acme.example.com", "v1", "widgets")
        assert "create" not in served.resource.verbs
        await deleted(cluster, widgets, "a")
        # The object with a finalizer keeps the definition.
        assert cluster.find(CUSTOM_RESOURCE_DEFINITIONS, "", NAME) is not None
        patch = {"metadata": {"finalizers": None}}
        cluster.patch(widgets, "default", "b", patch, "merge")
        await deleted(cluster, CUSTOM_RESOURCE_DEFINITIONS, NAME)
        assert watch.is_closed
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def in_time() -> None:
        async with asyncio.timeout(300):
            await work()

    asyncio.run(in_time())
    with pytest.raises(NotFoundError):
        cluster.resources.named(NAME)


def test_a_load_brings_definitions_before_their_objects(cluster: MemoryCluster):
    cluster.load([widget("a"), definition()])
    assert cluster.get(cluster.resources.named(NAME), "default", "a").typed.kind == "Widget"


def test_versions_are_ordered_by_stability_and_number():
    names = ["foo1", "v1alpha1", "v2beta1", "v10", "v1beta2", "v2", "v1", "v11alpha2", "v2beta2"]
    assert sorted(names, key=version_order) == [
        "v10", "v2", "v1", "v2beta2", "v2beta1", "v1beta2", "v11alpha2", "v1alpha1", "foo1",
    ]  # fmt: skip
