"""Wrong types, unknown fields and repeated fields in requests."""

from collections.abc import Callable
from typing import Any

import pytest

from kubestow.api.meta import JsonObject
from kubestow.apiserver.http.field_validation import warning_header

Serve = Callable[..., Any]

DEFAULT = "namespaces/default"
DEPLOYMENTS = f"/apis/apps/v1/{DEFAULT}/deployments"
TEMPLATE: JsonObject = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "x"}]},
}


def deployment(**spec: Any) -> JsonObject:
    wanted = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE, **spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": wanted,
    }


def unreadable(kind: str, problem: str) -> str:
    subject = f'{kind} in version "v1" cannot be handled as a {kind}'
    return f"{subject}: json: cannot unmarshal {problem}"


@pytest.mark.parametrize(
    ("path", "spec", "message"),
    [
        pytest.param(
            "apis/apps/v1/namespaces/default/daemonsets",
            {"minReadySeconds": "x"},
            "string into Go struct field DaemonSetSpec.spec.minReadySeconds of type int32",
            id="DaemonSet",
        ),
        pytest.param(
            "apis/apps/v1/namespaces/default/replicasets",
            {"replicas": "3"},
            "string into Go struct field ReplicaSetSpec.spec.replicas of type int32",
            id="ReplicaSet",
        ),
        pytest.param(
            "apis/apps/v1/namespaces/default/statefulsets",
            {"serviceName": 5},
            "number into Go struct field StatefulSetSpec.spec.serviceName of type string",
            id="StatefulSet",
        ),
        pytest.param(
            "apis/batch/v1/namespaces/default/jobs",
            {"parallelism": "lots"},
            "string into Go struct field JobSpec.spec.parallelism of type int32",
            id="Job",
        ),
        pytest.param(
            "apis/batch/v1/namespaces/default/cronjobs",
            {"schedule": 5},
            "number into Go struct field CronJobSpec.spec.schedule of type string",
            id="CronJob",
        ),
        pytest.param(
            "apis/policy/v1/namespaces/default/poddisruptionbudgets",
            {"minAvailable": []},
            "array into Go struct field PodDisruptionBudgetSpec.spec.minAvailable of type int32",
            id="PodDisruptionBudget",
        ),
        pytest.param(
            "api/v1/namespaces/default/services",
            {"ports": [{"port": "80"}]},
            "string into Go struct field ServicePort.spec.ports.port of type int32",
            id="Service",
        ),
        pytest.param(
            "apis/networking.k8s.io/v1/namespaces/default/ingresses",
            {"rules": {}},
            "object into Go struct field IngressSpec.spec.rules of type []v1.IngressRule",
            id="Ingress",
        ),
    ],
)
def test_a_wrong_type_of_any_kind_is_a_bad_request(
    serve: Serve, request: Any, path: str, spec: JsonObject, message: str
):
    async def work(client: Any):
        return await client.post(f"/{path}", {"metadata": {"name": "x"}, "spec": spec})

    kind = request.node.callspec.id
    reply = serve(work)
    assert (reply.status, reply.body["reason"]) == (400, "BadRequest")
    assert reply.body["message"] == unreadable(kind, message)
    assert "details" not in reply.body


def test_a_wrong_type_is_refused_by_every_kind_of_write(serve: Serve):
    problem = "cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas"

    async def work(client: Any):
        wrong, web = deployment(replicas="3"), f"{DEPLOYMENTS}/web"
        await client.post(DEPLOYMENTS, deployment())
        version = (await client.get(web)).body["metadata"]["resourceVersion"]
        created = await client.post(DEPLOYMENTS, wrong)
        updated = await client.put(web, wrong)
        assert (created.status, updated.status) == (400, 400)
        for kind, patch in (
            ("merge", {"spec": {"replicas": "3"}}),
            ("strategic-merge", {"spec": {"replicas": "3"}}),
            ("json", [{"op": "add", "path": "/spec/replicas", "value": "3"}]),
        ):
            patched = await client.patch(web, patch, kind)
            # Of patches a real server refuses the result.
            assert (patched.status, patched.body["reason"]) == (422, "Invalid")
            assert problem in patched.body["message"]
        applied = await client.call(
            "PATCH", web, wrong, content_type="application/apply-patch+yaml", fieldManager="m"
        )
        assert applied.status == 400
        where = ".spec.replicas: expected numeric (int or float), got string"
        assert applied.body["message"].endswith(where)
        assert (await client.get(web)).body["metadata"]["resourceVersion"] == version

    serve(work)


@pytest.mark.parametrize(
    ("directive", "status", "warnings"),
    [
        pytest.param("", 201, 2, id="default"),
        pytest.param("Warn", 201, 2, id="warn"),
        pytest.param("Ignore", 201, 0, id="ignore"),
        pytest.param("Strict", 400, 0, id="strict"),
        pytest.param("Perhaps", 422, 0, id="unknown"),
    ],
)
def test_unknown_fields_cause_what_the_directive_says(
    serve: Serve, directive: str, status: int, warnings: int
):
    body = deployment(foo=1)
    body["spec"]["template"] = {**TEMPLATE, "bar": {}}

    async def work(client: Any):
        return await client.post(DEPLOYMENTS, body, fieldValidation=directive)

    reply = serve(work)
    assert reply.status == status
    problems = ('unknown field "spec.template.bar"', 'unknown field "spec.foo"')
    assert reply.warnings == (problems if warnings else ())
    if status == 201:
        assert "foo" not in reply.body["spec"]
    if status == 400:
        assert f"strict decoding error: {', '.join(problems)}" in reply.body["message"]
    if status == 422:
        assert reply.body["details"]["kind"] == "CreateOptions"


def test_unknown_fields_of_patches_and_applies(serve: Serve):
    async def work(client: Any):
        web = f"{DEPLOYMENTS}/web"
        await client.post(DEPLOYMENTS, deployment())
        warned = await client.patch(web, {"spec": {"foo": 1}})
        assert (warned.status, warned.warnings) == (200, ('unknown field "spec.foo"',))
        assert "foo" not in warned.body["spec"]
        refused = await client.patch(web, {"spec": {"foo": 1}}, fieldValidation="Strict")
        assert refused.status == 422
        applied = await client.call(
            "PATCH",
            web,
            deployment(foo=1),
            content_type="application/apply-patch+yaml",
            fieldManager="m",
        )
        assert applied.status == 400
        assert ".spec.foo: field not declared in schema" in applied.body["message"]

    serve(work)


TWICE = b"""{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "name": "b"},
"data": {"x": "1", "x": "2"}}"""
TWICE_YAML = b"""
apiVersion: v1
kind: ConfigMap
metadata: {name: b}
data:
  x: "1"
  x: "2"
"""


@pytest.mark.parametrize(
    ("body", "content_type", "warnings"),
    [
        pytest.param(
            TWICE,
            "application/json",
            ('duplicate field "metadata.name"', 'duplicate field "data.x"'),
            id="json",
        ),
        pytest.param(
            TWICE_YAML,
            "application/yaml",
            ('yaml: unmarshal errors:   line 7: key "x" already set in map',),
            id="yaml",
        ),
    ],
)
def test_of_a_repeated_field_the_last_value_counts(
    serve: Serve, body: bytes, content_type: str, warnings: tuple[str, ...]
):
    path = f"/api/v1/{DEFAULT}/configmaps"

    async def work(client: Any):
        strict = {"fieldValidation": "Strict"}
        refused = await client.call("POST", path, body, content_type=content_type, **strict)
        return refused, await client.call("POST", path, body, content_type=content_type)

    refused, made = serve(work)
    assert refused.status == 400
    assert "strict decoding error" in refused.body["message"]
    assert (made.status, made.body["metadata"]["name"], made.body["data"]) == (201, "b", {"x": "2"})
    assert made.warnings == warnings


@pytest.mark.parametrize(
    ("metadata", "name"),
    [
        pytest.param({"name": "web"}, "web", id="name"),
        pytest.param({"generateName": "web-"}, "web-", id="generated"),
    ],
)
def test_a_refusal_names_the_object(serve: Serve, metadata: JsonObject, name: str):
    async def work(client: Any):
        pod = {"metadata": metadata, "spec": {"containers": []}}
        return await client.post(f"/api/v1/{DEFAULT}/pods", pod)

    body = serve(work).body
    assert body["details"]["name"].startswith(name)
    assert body["message"].startswith(f'Pod "{body["details"]["name"]}" is invalid: ')


def test_a_warning_is_one_line():
    assert warning_header('a "b"\nc\\') == '299 - "a \\"b\\" c\\\\"'
