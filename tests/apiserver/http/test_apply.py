"""Server-side apply over HTTP."""

from collections.abc import Callable
from typing import Any

import pytest

from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster

Serve = Callable[..., Any]

WEB = "/apis/apps/v1/namespaces/default/deployments/web"
YAML = "application/apply-patch+yaml"
MANIFEST = """
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: main, image: nginx}}]}}
"""


async def apply(client: Any, replicas: int, manager: str = "kubectl", **query: Any) -> Any:
    body = MANIFEST.format(replicas=replicas).encode()
    return await client.call("PATCH", WEB, body, content_type=YAML, fieldManager=manager, **query)


def managers(document: JsonObject) -> list[str]:
    return [entry["manager"] for entry in document["metadata"]["managedFields"]]


def test_apply_creates_then_changes(serve: Serve):
    async def work(client: Any):
        return await apply(client, 1), await apply(client, 2), await apply(client, 2)

    made, changed, same = serve(work)
    assert (made.status, changed.status) == (201, 200)
    assert changed.body["spec"]["replicas"] == 2
    assert managers(changed.body) == ["kubectl"]
    assert same.body["metadata"]["resourceVersion"] == changed.body["metadata"]["resourceVersion"]


def test_a_conflict_is_reported_with_its_causes_and_can_be_forced(serve: Serve):
    async def work(client: Any):
        await apply(client, 1, "alice")
        return await apply(client, 2, "bob"), await apply(client, 2, "bob", force="true")

    refused, forced = serve(work)
    assert (refused.status, refused.body["reason"]) == (409, "Conflict")
    assert refused.body["details"]["causes"] == [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "alice" using apps/v1',
            "field": ".spec.replicas",
        }
    ]
    assert forced.body["spec"]["replicas"] == 2


def test_scaling_takes_the_replicas_over(serve: Serve):
    async def work(client: Any):
        await apply(client, 1)
        await client.patch(f"{WEB}/scale", {"spec": {"replicas": 5}}, fieldManager="scaler")
        return await apply(client, 1)

    refused = serve(work)
    assert refused.status == 409
    assert '"scaler"' in refused.body["message"]


def test_a_dry_run_creates_nothing(serve: Serve, cluster: MemoryCluster):
    async def work(client: Any):
        return await apply(client, 1, dryRun="All")

    assert serve(work).status == 201
    assert cluster.find(cluster.resources.named("deployments.apps"), "default", "web") is None


@pytest.mark.parametrize(
    ("body", "query", "status"),
    [
        pytest.param(MANIFEST.format(replicas=1), {}, 422, id="no-manager"),
        pytest.param("metadata: {name: web}", {"fieldManager": "m"}, 400, id="no-kind"),
        pytest.param("- a\n", {"fieldManager": "m"}, 400, id="no-object"),
        pytest.param("a: [", {"fieldManager": "m"}, 400, id="no-yaml"),
    ],
)
def test_an_invalid_apply_is_refused(serve: Serve, body: str, query: dict[str, str], status: int):
    async def work(client: Any):
        return await client.call("PATCH", WEB, body.encode(), content_type=YAML, **query)

    assert serve(work).status == status
