"""Discovery of groups, versions and resources."""

from collections.abc import Callable
from typing import Any

import pytest

from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.resources import ApiResource

Serve = Callable[..., Any]

AGGREGATED = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)


def test_both_forms_of_discovery_agree(serve: Serve):
    async def work(client: Any):
        found: set[tuple[str, ...]] = set()
        aggregated: set[tuple[str, ...]] = set()
        groups = (await client.get("/apis")).body["groups"]
        named = [version for group in groups for version in group["versions"]]
        versions = ["v1", *(version["groupVersion"] for version in named)]
        for version in versions:
            path = f"/api/{version}" if version == "v1" else f"/apis/{version}"
            for resource in (await client.get(path)).body["resources"]:
                found.add((version, resource["name"], resource["kind"]))
        for path in ("/api", "/apis"):
            reply = await client.get(path, AGGREGATED)
            assert "as=APIGroupDiscoveryList" in reply.content_type
            for group in reply.body["items"]:
                name = group["metadata"].get("name", "")
                for version in group["versions"]:
                    prefix = f"{name}/{version['version']}" if name else version["version"]
                    for resource in version["resources"]:
                        kind = resource["responseKind"]["kind"]
                        aggregated.add((prefix, resource["resource"], kind))
                        for sub in resource.get("subresources", ()):
                            whole = f"{resource['resource']}/{sub['subresource']}"
                            aggregated.add((prefix, whole, sub["responseKind"]["kind"]))
        return found, aggregated

    found, aggregated = serve(work)
    assert found == aggregated
    assert ("v1", "pods/binding", "Binding") in found
    assert ("apps/v1", "deployments/scale", "Scale") in found
    assert ("v1", "events", "Event") in found


def test_short_names_and_categories_are_listed(serve: Serve):
    async def work(client: Any):
        core = (await client.get("/api/v1")).body["resources"]
        return {resource["name"]: resource for resource in core}

    core = serve(work)
    assert core["pods"]["shortNames"] == ["po"]
    assert core["pods"]["singularName"] == "pod"
    assert core["pods"]["categories"] == ["all"]
    assert core["pods/eviction"]["group"] == "policy"
    assert "watch" in core["nodes"]["verbs"]
    assert core["nodes"]["namespaced"] is False


def test_a_resource_registered_later_is_listed_and_served(serve: Serve, cluster: MemoryCluster):
    widgets = ApiResource(
        group="example.com", version="v1", plural="widgets", kind="Widget", namespaced=True
    )

    async def work(client: Any):
        before = await client.get("/apis/example.com/v1")
        cluster.resources.register(widgets)
        path = "/apis/example.com/v1/namespaces/default/widgets"
        made = await client.post(path, {"metadata": {"name": "w"}})
        after = await client.get("/apis/example.com/v1")
        return before.status, made.status, after.body["resources"][0]["kind"]

    assert serve(work) == (404, 201, "Widget")


@pytest.mark.parametrize("path", ["/apis/apps", "/api", "/apis", "/"])
def test_a_group_is_described(serve: Serve, path: str):
    async def work(client: Any):
        return await client.get(path)

    assert serve(work).status == 200


def test_openapi_lists_the_parameters_of_a_patch(serve: Serve):
    async def work(client: Any):
        index = (await client.get("/openapi/v3")).body["paths"]
        url = index["apis/apps/v1"]["serverRelativeURL"]
        document = (await client.get(url)).body
        return index, document, await client.get("/openapi/v3/apis/nobody/v1")

    index, document, missing = serve(work)
    assert "api/v1" in index
    patch = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"]["kind"] == "Deployment"
    names = {parameter["name"] for parameter in patch["parameters"]}
    assert {"dryRun", "fieldValidation"} <= names
    assert missing.status == 404


def test_version_and_health_need_no_token(serve: Serve):
    async def work(client: Any):
        return [await client.get(path) for path in ("/version", "/healthz", "/livez", "/readyz")]

    version, *health = serve(work, token="secret")
    assert version.body["minor"] == "36"
    assert [reply.body for reply in health] == ["ok", "ok", "ok"]
