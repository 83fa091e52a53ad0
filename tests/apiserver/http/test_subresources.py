"""Subresources: scale, binding, eviction, finalize."""

from collections.abc import Callable
from typing import Any

import pytest

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.store import StoredObject
from kubestow.cluster.resources import NAMESPACES, PODS

Build = Callable[..., JsonObject]
Serve = Callable[..., Any]

DEFAULT_PODS = "/api/v1/namespaces/default/pods"
WEB = "/apis/apps/v1/namespaces/default/deployments/web"


@pytest.fixture
def web(cluster: MemoryCluster) -> StoredObject:
    labels = {"app": "web"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "nginx"}]},
    }
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    deployments = cluster.resources.named("deployments.apps")
    return cluster.create(deployments, {"metadata": {"name": "web"}, "spec": spec})


# --- Scale ------------------------------------------------------------------------------------


def test_a_scale_shows_desired_and_current_replicas(serve: Serve, web: StoredObject):
    async def work(client: Any):
        return (await client.get(f"{WEB}/scale")).body

    scale = serve(work)
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["spec"] == {"replicas": 2}
    assert scale["status"] == {"replicas": 0, "selector": "app=web"}


def test_a_workload_is_scaled_by_patch_or_update(
    serve: Serve, web: StoredObject, cluster: MemoryCluster
):
    async def work(client: Any):
        patched = await client.patch(f"{WEB}/scale", {"spec": {"replicas": 5}})
        stale = {**patched.body, "metadata": {"name": "web", "resourceVersion": "1"}}
        refused = await client.put(f"{WEB}/scale", stale)
        updated = await client.put(f"{WEB}/scale", {**patched.body, "spec": {"replicas": 0}})
        return patched.body, refused, updated.body

    patched, refused, updated = serve(work)
    assert patched["spec"]["replicas"] == 5
    assert refused.status == 409
    assert updated["spec"]["replicas"] == 0
    stored = cluster.get(web.resource, "default", "web")
    assert stored.document["spec"]["replicas"] == 0
    assert stored.metadata["generation"] == 3


def test_negative_replicas_are_refused(serve: Serve, web: StoredObject):
    async def work(client: Any):
        return await client.patch(f"{WEB}/scale", {"spec": {"replicas": -1}})

    reply = serve(work)
    assert (reply.status, reply.body["reason"]) == (422, "Invalid")


def test_a_missing_subresource_is_not_found(serve: Serve, pod_document: Build):
    async def work(client: Any):
        return (
            await client.get(f"{DEFAULT_PODS}/a/scale"),
            await client.get(f"{DEFAULT_PODS}/a/binding"),
        )

    assert [reply.status for reply in serve(work)] == [404, 405]


# --- Binding ----------------------------------------------------------------------------------


def test_a_pod_is_bound_once(serve: Serve, pod_document: Build, cluster: MemoryCluster):
    pod = cluster.create(PODS, pod_document("a"))

    def binding(**metadata: Any) -> JsonObject:
        return {"metadata": {"name": "a", **metadata}, "target": {"kind": "Node", "name": "n1"}}

    async def work(client: Any):
        path = f"{DEFAULT_PODS}/a/binding"
        return (
            await client.post(path, binding(uid="another")),
            await client.post(path, binding(uid=pod.uid)),
            await client.post(path, binding()),
            await client.post(path, {"target": {"kind": "Rack", "name": "r"}}),
        )

    another, first, second, rack = serve(work)
    assert (first.status, first.body["status"]) == (201, "Success")
    assert (another.status, second.status, rack.status) == (409, 409, 422)
    assert "already assigned to node" in second.body["message"]
    assert cluster.get(PODS, "default", "a").document["spec"]["nodeName"] == "n1"


def test_the_older_address_of_bindings_works(
    serve: Serve, pod_document: Build, cluster: MemoryCluster
):
    cluster.create(PODS, pod_document("a"))
    body = {"metadata": {"name": "a"}, "target": {"name": "n1"}}

    async def work(client: Any):
        return await client.post("/api/v1/namespaces/default/bindings", body)

    assert serve(work).status == 201


# --- Eviction ---------------------------------------------------------------------------------


def budget(cluster: MemoryCluster, allowed: int, name: str = "budget") -> StoredObject:
    resource = cluster.resources.named("poddisruptionbudgets.policy")
    return cluster.create(
        resource,
        {
            "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": {"app": "web"}}},
            "status": {"disruptionsAllowed": allowed},
        },
    )


def test_an_eviction_uses_the_budget(serve: Serve, pod_document: Build, cluster: MemoryCluster):
    spent = budget(cluster, 1)
    for name in ("a", "b"):
        cluster.create(
            PODS,
            pod_document(
                name,
                nodeName="n1",
                metadata={"labels": {"app": "web"}},
                status={"phase": "Running"},
            ),
        )

    async def work(client: Any):
        return [
            await client.post(f"{DEFAULT_PODS}/{name}/eviction", {"metadata": {"name": name}})
            for name in ("a", "b")
        ]

    first, second = serve(work)
    assert first.status == 201
    assert (second.status, second.body["reason"]) == (429, "TooManyRequests")
    evicted = cluster.get(PODS, "default", "a")
    assert "deletionTimestamp" in evicted.metadata
    (condition,) = [
        one for one in evicted.document["status"]["conditions"] if one["type"] == "DisruptionTarget"
    ]
    assert (condition["reason"], condition["message"]) == (
        "EvictionByEvictionAPI",
        "Eviction API: evicting",
    )
    assert "deletionTimestamp" not in cluster.get(PODS, "default", "b").metadata
    status = cluster.get(spent.resource, "default", "budget").document["status"]
    assert status["disruptionsAllowed"] == 0
    assert list(status["disruptedPods"]) == ["a"]


def test_an_eviction_may_be_for_one_version_of_a_pod(
    serve: Serve, pod_document: Build, cluster: MemoryCluster
):
    made = cluster.create(PODS, pod_document("a", nodeName="n1"))
    cluster.patch(PODS, "default", "a", {"metadata": {"labels": {"new": "yes"}}}, "merge")
    now = cluster.get(PODS, "default", "a")

    async def work(client: Any):
        return [
            await client.post(
                f"{DEFAULT_PODS}/a/eviction",
                {"deleteOptions": {"preconditions": {"resourceVersion": str(stored.version)}}},
            )
            for stored in (made, now)
        ]

    first, second = serve(work)
    assert (first.status, first.body["reason"]) == (409, "Conflict")
    assert second.status == 201


def test_a_pod_that_does_not_run_needs_no_budget(
    serve: Serve, pod_document: Build, cluster: MemoryCluster
):
    budget(cluster, 0)
    cluster.create(PODS, pod_document("a", metadata={"labels": {"app": "web"}}))

    async def work(client: Any):
        return await client.post(f"{DEFAULT_PODS}/a/eviction", {})

    assert serve(work).status == 201
    assert cluster.find(PODS, "default", "a") is None


def test_two_budgets_are_an_error(serve: Serve, pod_document: Build, cluster: MemoryCluster):
    budget(cluster, 1, "one")
    budget(cluster, 1, "two")
    running = {"phase": "Running"}
    labels = {"labels": {"app": "web"}}
    cluster.create(PODS, pod_document("a", nodeName="n1", metadata=labels, status=running))

    async def work(client: Any):
        return await client.post(f"{DEFAULT_PODS}/a/eviction", {})

    reply = serve(work)
    assert reply.status == 500
    assert "more than one PodDisruptionBudget" in reply.body["message"]


# --- The rest ---------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["log", "exec", "portforward"])
def test_requests_that_need_containers_are_refused(serve: Serve, part: str):
    async def work(client: Any):
        return await client.get(f"{DEFAULT_PODS}/a/{part}")

    reply = serve(work)
    assert reply.status == 501
    assert "run no containers" in reply.body["message"]


def test_a_namespace_is_finalized_from_outside(serve: Serve, cluster: MemoryCluster):
    cluster.create(NAMESPACES, {"metadata": {"name": "shop"}})
    cluster.delete(NAMESPACES, "", "shop")

    async def work(client: Any):
        held = {"metadata": {"name": "shop"}, "spec": {"finalizers": ["kubernetes"]}}
        await client.put("/api/v1/namespaces/shop/finalize", held)
        still = (await client.get("/api/v1/namespaces/shop")).status
        await client.put("/api/v1/namespaces/shop/finalize", {"metadata": {"name": "shop"}})
        return still, (await client.get("/api/v1/namespaces/shop")).status

    assert serve(work) == (200, 404)


def test_events_have_two_names(serve: Serve):
    event = {
        "metadata": {"name": "e1"},
        "involvedObject": {"kind": "Pod", "name": "web-1", "namespace": "default"},
        "message": "hello",
        "reportingComponent": "me",
    }

    async def work(client: Any):
        core, new = "/api/v1/namespaces/default/events", "/apis/events.k8s.io/v1/events"
        await client.post(core, event)
        query = {"fieldSelector": "involvedObject.name=web-1,reportingComponent=me"}
        found = (await client.get(core, **query)).body
        other = (await client.get(core, fieldSelector="involvedObject.name=other")).body
        patched = await client.patch(f"{core}/e1", {"message": "hello again"})
        return found, other["items"], patched.body, (await client.get(new)).body["items"]

    found, other, patched, new = serve(work)
    assert (found["kind"], found["apiVersion"]) == ("EventList", "v1")
    assert found["items"][0]["message"] == "hello"
    assert other == []
    assert (patched["apiVersion"], patched["message"]) == ("v1", "hello again")
    assert new[0]["apiVersion"] == "events.k8s.io/v1"
    assert new[0]["note"] == "hello again"
    assert new[0]["regarding"]["name"] == "web-1"


# --- Parts of objects -------------------------------------------------------------------------

DEBUGGER = {"name": "debugger", "image": "busybox"}


def test_ephemeral_containers_are_added_and_never_removed(
    serve: Serve, cluster: MemoryCluster, pod_document: Any
):
    cluster.create(PODS, pod_document("web-1"))
    path = "/api/v1/namespaces/default/pods/web-1"

    async def work(client: Any):
        patch = {"spec": {"ephemeralContainers": [DEBUGGER], "nodeName": "n1"}}
        added = await client.patch(f"{path}/ephemeralcontainers", patch, "strategic-merge")
        assert added.body["spec"]["ephemeralContainers"] == [DEBUGGER]
        assert "nodeName" not in added.body["spec"]
        none = {"spec": {"ephemeralContainers": []}}
        removed = await client.patch(f"{path}/ephemeralcontainers", none)
        assert removed.status == 422
        assert 'existing ephemeral containers "debugger" may not be' in removed.body["message"]
        unnamed = {"spec": {"ephemeralContainers": [DEBUGGER, {"name": "x"}]}}
        refused = await client.patch(f"{path}/ephemeralcontainers", unnamed)
        assert "spec.ephemeralContainers[1].image: Required value" in refused.body["message"]

    serve(work)


def test_a_resize_changes_only_resources(serve: Serve, cluster: MemoryCluster, pod_document: Any):
    cluster.create(PODS, pod_document("web-1"))
    path = "/api/v1/namespaces/default/pods/web-1/resize"

    async def work(client: Any):
        name = (await client.get(path)).body["spec"]["containers"][0]["name"]
        resized = {"name": name, "image": "other", "resources": {"requests": {"cpu": "2"}}}
        return await client.patch(path, {"spec": {"containers": [resized]}}, "strategic-merge")

    (container,) = serve(work).body["spec"]["containers"]
    assert container["resources"]["requests"]["cpu"] == "2"
    assert container.get("image") != "other"


def test_a_certificate_request_is_approved_through_its_subresource(serve: Serve):
    requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    conditions = [{"type": "Approved", "status": "True", "reason": "x"}]

    async def work(client: Any):
        spec = {"request": "eA==", "signerName": "example.com/s", "usages": ["client auth"]}
        made = await client.post(requests, {"metadata": {"name": "r"}, "spec": spec})
        wanted = made.body | {"status": {"conditions": conditions}}
        plain = await client.put(f"{requests}/r", wanted)
        assert "status" not in plain.body
        return await client.put(f"{requests}/r/approval", wanted)

    assert serve(work).body["status"]["conditions"] == conditions
