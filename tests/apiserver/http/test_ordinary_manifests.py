"""The manifests in `tests/data/shop` over HTTP, as a client sends them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kubestow.api.files import load_documents
from kubestow.api.meta import JsonObject
from kubestow.apiserver.memory import MemoryCluster

Serve = Callable[..., Any]

SHOP = Path(__file__).parents[2] / "data" / "shop"
# As kubectl sends them: what defines kinds first.
DOCUMENTS = [one.raw for folder in ("crds", ".") for one in load_documents([SHOP / folder])]
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def path_of(cluster: MemoryCluster, document: JsonObject) -> str:
    resource = cluster.served.of_kind(document["apiVersion"], document["kind"]).resource
    root = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
    namespace = document["metadata"].get("namespace", "default")
    inside = f"/namespaces/{namespace}" if resource.namespaced else ""
    return f"{root}{inside}/{resource.plural}"


def test_each_is_created_listed_patched_applied_and_deleted(serve: Serve, cluster: MemoryCluster):
    async def work(client: Any):
        done: list[str] = []
        for document in DOCUMENTS:
            name, kind = document["metadata"]["name"], document["kind"]
            if f"{kind}/{name}" in done:
                continue
            path = path_of(cluster, document)
            made = await client.post(path, document, fieldValidation="Strict")
            assert made.status == 201, made.body
            assert made.warnings == ()
            labels = {"metadata": {"labels": {"seen": "yes"}}}
            patched = await client.patch(f"{path}/{name}", labels)
            assert patched.body["metadata"]["labels"]["seen"] == "yes"
            applied = await client.call(
                "PATCH",
                f"{path}/{name}",
                document,
                content_type="application/apply-patch+yaml",
                fieldManager="test",
            )
            assert applied.status == 200, applied.body
            rows = (await client.get(path, accept=TABLE)).body["rows"]
            assert name in [row["object"]["metadata"]["name"] for row in rows]
            done.append(f"{kind}/{name}")
        for document in reversed(DOCUMENTS):
            path = f"{path_of(cluster, document)}/{document['metadata']['name']}"
            assert (await client.delete(path)).status in (200, 404)
        return done

    assert len(serve(work)) == 30
