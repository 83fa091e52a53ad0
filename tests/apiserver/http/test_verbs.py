"""Objects over HTTP: each verb, and its errors."""

import io
from collections.abc import Callable
from typing import Any

import pytest

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.resources import NODES, PODS

Build = Callable[..., JsonObject]
Serve = Callable[..., Any]

DEFAULT_PODS = "/api/v1/namespaces/default/pods"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def deployment(name: str = "web", replicas: int = 2) -> JsonObject:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "nginx"}]},
            },
        },
    }


# --- Create and get ---------------------------------------------------------------------------


def test_an_object_is_created_in_the_namespace_of_the_address(
    serve: Serve, pod_document: Build, cluster: MemoryCluster
):
    document = pod_document("web-1")
    del document["metadata"]["namespace"]

    async def work(client: Any):
        return await client.post(DEFAULT_PODS, document), await client.get(f"{DEFAULT_PODS}/web-1")

    made, got = serve(work)
    assert made.status == 201
    assert made.body["metadata"]["namespace"] == "default"
    assert made.body["status"]["phase"] == "Pending"
    assert got.body == made.body == cluster.get(PODS, "default", "web-1").document


def test_a_status_given_at_creation_is_dropped_except_for_nodes(
    serve: Serve, pod_document: Build, node_document: Build
):
    async def work(client: Any):
        pod = await client.post(DEFAULT_PODS, pod_document(status={"phase": "Running"}))
        node = await client.post("/api/v1/nodes", node_document("n1"))
        return pod.body, node.body

    pod, node = serve(work)
    assert pod["status"]["phase"] == "Pending"
    assert node["status"]["capacity"]["cpu"] == "4"


def test_yaml_is_read_too(serve: Serve):
    text = b"metadata: {name: web-1}\nspec:\n  containers:\n  - {name: a, image: b}\n"

    async def work(client: Any):
        return await client.call("POST", DEFAULT_PODS, text, content_type="application/yaml")

    assert serve(work).status == 201


@pytest.mark.parametrize(
    ("change", "status", "reason", "text"),
    [
        pytest.param(
            {"metadata": {"name": "a", "namespace": "other"}},
            400,
            "BadRequest",
            "does not match the namespace sent on the request",
            id="other-namespace",
        ),
        pytest.param(
            {"kind": "Service"}, 400, "BadRequest", "cannot be handled as a Pod", id="other-kind"
        ),
        pytest.param(
            {"spec": {"containers": []}}, 422, "Invalid", "spec.containers: Required", id="invalid"
        ),
        pytest.param(
            {"spec": {"containers": 5}}, 400, "BadRequest", "spec.containers", id="wrong-type"
        ),
        pytest.param({"metadata": {"name": "taken"}}, 409, "AlreadyExists", "", id="taken"),
    ],
)
def test_what_cannot_be_created_is_refused_with_a_status(
    serve: Serve,
    pod_document: Build,
    cluster: MemoryCluster,
    change: JsonObject,
    status: int,
    reason: str,
    text: str,
):
    cluster.create(PODS, pod_document("taken"))

    async def work(client: Any):
        return await client.post(DEFAULT_PODS, {**pod_document("web-1"), **change})

    reply = serve(work)
    assert reply.status == status
    assert reply.body["kind"] == "Status"
    assert (reply.body["code"], reply.body["reason"]) == (status, reason)
    assert text in reply.body["message"]


def test_an_invalid_object_is_refused_cause_by_cause(serve: Serve):
    async def work(client: Any):
        return await client.post(DEPLOYMENTS, deployment(replicas=-1))

    details = serve(work).body["details"]
    assert details == {
        "group": "apps",
        "kind": "Deployment",
        "name": "web",
        "causes": [
            {
                "reason": "FieldValueInvalid",
                "message": "Invalid value: -1: must be greater than or equal to 0",
                "field": "spec.replicas",
            }
        ],
    }


def test_a_missing_object_is_a_status_with_details(serve: Serve):
    async def work(client: Any):
        return (
            await client.get(f"{DEFAULT_PODS}/nobody"),
            await client.get("/apis/example.com/v1/widgets"),
            await client.get("/nowhere"),
        )

    pod, widgets, nowhere = serve(work)
    assert pod.status == 404
    assert pod.body["message"] == 'pods "nobody" not found'
    assert pod.body["details"] == {"name": "nobody", "kind": "pods"}
    assert widgets.body["message"] == "the server could not find the requested resource"
    assert nowhere.status == 404


def test_an_unknown_encoding_and_a_broken_body_are_refused(serve: Serve):
    async def work(client: Any):
        return (
            await client.call("POST", DEFAULT_PODS, b"<pod/>", content_type="text/xml"),
            await client.call("POST", DEFAULT_PODS, b"{"),
            await client.call("POST", DEFAULT_PODS, b"[]"),
        )

    assert [reply.status for reply in serve(work)] == [415, 400, 400]


def test_a_body_that_is_too_large_is_refused(serve: Serve):
    async def work(client: Any):
        return await client.call("POST", DEFAULT_PODS, io.BytesIO(b" " * (3 * 1024 * 1024 + 1)))

    assert serve(work).status == 413


def test_an_unknown_method_is_refused(serve: Serve):
    async def work(client: Any):
        return await client.call("PUT", DEFAULT_PODS, {}), await client.post("/version", {})

    assert [reply.status for reply in serve(work)] == [405, 405]


# --- List -------------------------------------------------------------------------------------


def test_a_list_has_the_version_to_watch_from(
    serve: Serve, pod_document: Build, cluster: MemoryCluster
):
    for name in ("b", "a"):
        cluster.create(PODS, pod_document(name))

    async def work(client: Any):
        return (await client.get("/api/v1/pods")).body

    body = serve(work)
    assert (body["kind"], body["apiVersion"]) == ("PodList", "v1")
    assert body["metadata"] == {"resourceVersion": str(cluster.version)}
    assert [item["metadata"]["name"] for item in body["items"]] == ["a", "b"]


def test_a_list_is_narrowed_by_selectors_and_namespace(
    serve: Serve, pod_document: Build, cluster: MemoryCluster
):
    cluster.create(PODS, pod_document("a", metadata={"labels": {"app": "web"}}))
    cluster.create(PODS, pod_document("b", nodeName="n1"))

    async def work(client: Any):
        return [
            [item["metadata"]["name"] for item in (await client.get(path, **query)).body["items"]]
            for path, query in (
                (DEFAULT_PODS, {"labelSelector": "app in (web,api)"}),
                ("/api/v1/pods", {"fieldSelector": "spec.nodeName=n1"}),
                ("/api/v1/namespaces/other/pods", {}),
            )
        ], await client.get(DEFAULT_PODS, fieldSelector="spec.color=red")

    found, refused = serve(work)
    assert found == [["a"], ["b"], []]
    assert refused.status == 400


def test_pages_together_are_the_list_as_of_the_first(
    serve: Serve, pod_document: Build, cluster: MemoryCluster
):
    for index in range(5):
        cluster.create(PODS, pod_document(f"p{index}"))

    async def work(client: Any):
        first = (await client.get(DEFAULT_PODS, limit=2)).body
        cluster.create(PODS, pod_document("p99"))
        pages, token = [first], first["metadata"]["continue"]
        while token:
            pages.append((await client.get(DEFAULT_PODS, limit=2, **{"continue": token})).body)
            token = pages[-1]["metadata"].get("continue", "")
        return pages

    pages = serve(work)
    names = [item["metadata"]["name"] for page in pages for item in page["items"]]
    assert names == ["p0", "p1", "p2", "p3", "p4"]
    assert [page["metadata"].get("remainingItemCount") for page in pages] == [3, 1, None]


def test_a_version_can_be_requested_exactly_but_not_a_future_one(
    serve: Serve, pod_document: Build, cluster: MemoryCluster
):
    cluster.create(PODS, pod_document("a"))
    version = cluster.version
    cluster.create(PODS, pod_document("b"))

    async def work(client: Any):
        exact = await client.get(
            DEFAULT_PODS, resourceVersion=version, resourceVersionMatch="Exact"
        )
        return exact.body, await client.get(DEFAULT_PODS, resourceVersion=1000)

    exact, early = serve(work)
    assert [item["metadata"]["name"] for item in exact["items"]] == ["a"]
    assert early.status == 504
    assert early.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


def test_only_metadata_is_sent_on_request(
    serve: Serve, pod_document: Build, cluster: MemoryCluster
):
    cluster.create(PODS, pod_document("a"))

    async def work(client: Any):
        return (await client.get(DEFAULT_PODS, METADATA)).body

    body = serve(work)
    assert body["kind"] == "PartialObjectMetadataList"
    (item,) = body["items"]
    assert item.keys() == {"kind", "apiVersion", "metadata"}


def test_an_unknown_form_is_not_acceptable(serve: Serve):
    async def work(client: Any):
        return await client.get(DEFAULT_PODS, "application/vnd.kubernetes.protobuf")

    assert serve(work).status == 406


# --- Update and patch -------------------------------------------------------------------------


def test_an_update_with_an_old_version_conflicts(
    serve: Serve, pod_document: Build, cluster: MemoryCluster
):
    old = cluster.create(PODS, pod_document("a")).document
    cluster.patch(PODS, "default", "a", {"metadata": {"labels": {"x": "1"}}})

    async def work(client: Any):
        unconditional = {**old, "metadata": {"name": "a", "labels": {"x": "2"}}}
        return (
            await client.put(f"{DEFAULT_PODS}/a", old),
            await client.put(f"{DEFAULT_PODS}/a", unconditional),
            await client.put(f"{DEFAULT_PODS}/b", old),
            await client.put(f"{DEFAULT_PODS}/b", pod_document("b")),
        )

    stale, forced, misnamed, missing = serve(work)
    assert (stale.status, stale.body["reason"]) == (409, "Conflict")
    assert forced.body["metadata"]["labels"] == {"x": "2"}
    assert (misnamed.status, missing.status) == (400, 404)


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        pytest.param("merge", {"metadata": {"labels": {"a": "b"}}}, id="merge"),
        pytest.param("strategic-merge", {"metadata": {"labels": {"a": "b"}}}, id="strategic"),
        pytest.param(
            "json", [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}], id="json"
        ),
    ],
)
def test_every_kind_of_patch_is_accepted(
    serve: Serve, pod_document: Build, cluster: MemoryCluster, kind: str, patch: Any
):
    cluster.create(PODS, pod_document("a"))

    async def work(client: Any):
        return await client.patch(f"{DEFAULT_PODS}/a", patch, kind)

    reply = serve(work)
    assert reply.status == 200
    assert reply.body["metadata"]["labels"] == {"a": "b"}


def test_an_unknown_patch_type_is_refused(
    serve: Serve, pod_document: Build, cluster: MemoryCluster
):
    cluster.create(PODS, pod_document("a"))

    async def work(client: Any):
        return (
            await client.patch(f"{DEFAULT_PODS}/a", {}, "surprise"),
            await client.patch(f"{DEFAULT_PODS}/a", [], "merge"),
        )

    assert [reply.status for reply in serve(work)] == [415, 400]


def test_a_status_is_written_through_its_subresource(
    serve: Serve, pod_document: Build, cluster: MemoryCluster
):
    cluster.create(PODS, pod_document("a"))
    both = {"spec": {"priority": 7}, "status": {"phase": "Running"}}

    async def work(client: Any):
        status = await client.patch(f"{DEFAULT_PODS}/a/status", both)
        spec = await client.patch(f"{DEFAULT_PODS}/a", {"status": {"phase": "Failed"}})
        return status.body, spec.body, (await client.get(f"{DEFAULT_PODS}/a/status")).body

    status, spec, read = serve(work)
    assert status["status"]["phase"] == spec["status"]["phase"] == "Running"
    assert status["spec"]["priority"] == 0
    assert read == spec


@pytest.mark.parametrize("verb", ["create", "patch", "update", "delete", "deletecollection"])
def test_a_dry_run_changes_nothing(
    serve: Serve, pod_document: Build, cluster: MemoryCluster, verb: str
):
    document = cluster.create(PODS, pod_document("a")).document
    changed = {**document, "metadata": {**document["metadata"], "labels": {"x": "y"}}}

    async def work(client: Any):
        calls = {
            "create": lambda: client.post(DEFAULT_PODS, pod_document("b"), dryRun="All"),
            "patch": lambda: client.patch(
                f"{DEFAULT_PODS}/a", {"metadata": {"labels": {"x": "y"}}}, dryRun="All"
            ),
            "update": lambda: client.put(f"{DEFAULT_PODS}/a", changed, dryRun="All"),
            "delete": lambda: client.delete(f"{DEFAULT_PODS}/a", {"dryRun": ["All"]}),
            "deletecollection": lambda: client.delete(DEFAULT_PODS, dryRun="All"),
        }
        return await calls[verb]()

    version = cluster.version
    reply = serve(work)
    assert reply.status in (200, 201)
    assert cluster.version == version
    if verb in ("patch", "update"):
        assert reply.body["metadata"]["labels"] == {"x": "y"}


def test_an_unknown_dry_run_is_refused(serve: Serve, pod_document: Build):
    async def work(client: Any):
        return await client.post(DEFAULT_PODS, pod_document("a"), dryRun="Some")

    assert serve(work).status == 422


# --- Delete -----------------------------------------------------------------------------------


def test_a_running_pod_is_marked_and_others_are_deleted_at_once(
    serve: Serve, pod_document: Build, node_document: Build, cluster: MemoryCluster
):
    cluster.create(PODS, pod_document("runs", nodeName="n1"))
    cluster.create(PODS, pod_document("waits"))
    node = cluster.create(NODES, node_document("n1"))

    async def work(client: Any):
        return [
            (await client.delete(path)).body
            for path in (f"{DEFAULT_PODS}/runs", f"{DEFAULT_PODS}/waits", "/api/v1/nodes/n1")
        ]

    runs, waits, gone = serve(work)
    assert runs["metadata"]["deletionGracePeriodSeconds"] == 30
    assert waits["kind"] == "Pod"
    assert gone["status"] == "Success"
    assert gone["details"] == {"name": "n1", "kind": "nodes", "uid": node.uid}
    assert [stored.name for stored in cluster.list(PODS).items] == ["runs"]


def test_delete_options_are_obeyed(serve: Serve, pod_document: Build, cluster: MemoryCluster):
    cluster.create(PODS, pod_document("a", nodeName="n1"))
    cluster.create(PODS, pod_document("b", nodeName="n1"))

    async def work(client: Any):
        other = {"kind": "DeleteOptions", "preconditions": {"uid": "another"}}
        conflict = await client.delete(f"{DEFAULT_PODS}/a", other)
        odd = await client.delete(f"{DEFAULT_PODS}/a", {"propagationPolicy": "Sideways"})
        orphan = {"propagationPolicy": "Orphan"}
        orphaned = await client.delete(f"{DEFAULT_PODS}/a", orphan, gracePeriodSeconds=7)
        await client.delete(f"{DEFAULT_PODS}/b", {"gracePeriodSeconds": 0})
        return conflict, odd, orphaned

    conflict, odd, orphaned = serve(work)
    assert (conflict.status, odd.status) == (409, 422)
    assert orphaned.body["metadata"]["finalizers"] == ["orphan"]
    assert orphaned.body["metadata"]["deletionGracePeriodSeconds"] == 7
    assert [stored.name for stored in cluster.list(PODS).items] == ["a"]


def test_a_collection_is_deleted_as_selected(
    serve: Serve, pod_document: Build, cluster: MemoryCluster
):
    for name, app in (("a", "web"), ("b", "web"), ("c", "api")):
        cluster.create(PODS, pod_document(name, metadata={"labels": {"app": app}}))

    async def work(client: Any):
        return (await client.delete(DEFAULT_PODS, labelSelector="app=web")).body

    body = serve(work)
    assert [item["metadata"]["name"] for item in body["items"]] == ["a", "b"]
    assert [stored.name for stored in cluster.list(PODS).items] == ["c"]


# --- Tables -----------------------------------------------------------------------------------


def test_a_table_has_rows_with_cells_and_metadata(
    serve: Serve, pod_document: Build, cluster: MemoryCluster
):
    cluster.create(PODS, pod_document("a", nodeName="n1"))

    async def work(client: Any):
        return (
            (await client.get(DEFAULT_PODS, TABLE)).body,
            (await client.get(f"{DEFAULT_PODS}/a", TABLE, includeObject="None")).body,
            (await client.get(DEFAULT_PODS, TABLE, includeObject="Object")).body,
            await client.get(DEFAULT_PODS, TABLE, includeObject="Half"),
        )

    listed, single, whole, refused = serve(work)
    assert listed["kind"] == "Table"
    assert listed["metadata"]["resourceVersion"] == str(cluster.version)
    (row,) = listed["rows"]
    assert row["cells"] == ["a", "0/1", "Pending", "0", "0s", "<none>", "n1", "<none>", "<none>"]
    assert row["object"]["kind"] == "PartialObjectMetadata"
    assert single["rows"] == [{"cells": row["cells"]}]
    assert whole["rows"][0]["object"]["spec"]["nodeName"] == "n1"
    assert refused.status == 400


def test_objects_are_the_same_after_a_round_trip(
    serve: Serve, pod_document: Build, cluster: MemoryCluster
):
    odd = {"e": "ü 漢字", "quote": 'a "b" \\ c', "empty": ""}
    cluster.create(PODS, pod_document("a", metadata={"annotations": odd}))

    async def work(client: Any):
        return (await client.get(f"{DEFAULT_PODS}/a")).body["metadata"]["annotations"]

    assert serve(work) == odd


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"gracePeriodSeconds": "soon"}, id="text-for-a-number"),
        pytest.param({"preconditions": 5}, id="number-for-an-object"),
    ],
)
def test_options_of_the_wrong_type_are_refused(
    serve: Serve, cluster: MemoryCluster, pod_document: Build, options: JsonObject
):
    cluster.create(PODS, pod_document("web-1"))

    async def work(client: Any):
        return await client.delete(f"{DEFAULT_PODS}/web-1", options)

    assert serve(work).status == 400
    assert cluster.find(PODS, "default", "web-1") is not None
