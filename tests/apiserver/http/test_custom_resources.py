"""Custom resources, from the definition to the objects, over HTTP."""

from collections.abc import Callable
from typing import Any

import pytest

from kubestow.api.meta import JsonObject

Serve = Callable[..., Any]

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/acme.example.com/v1/namespaces/default/widgets"
NAME = "widgets.acme.example.com"
SPEC: JsonObject = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1},
        "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        "n": {"type": "integer"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "maybe": {"type": "string", "nullable": True},
    },
}
STATUS: JsonObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def version(name: str, spec: JsonObject = SPEC, **more: Any) -> JsonObject:
    properties = {"spec": spec, "status": STATUS}
    schema = {"type": "object", "required": ["spec"], "properties": properties}
    return {"name": name, "served": True, "schema": {"openAPIV3Schema": schema}, **more}


SUBRESOURCES: JsonObject = {
    "status": {},
    "scale": {
        "specReplicasPath": ".spec.n",
        "statusReplicasPath": ".status.n",
        "labelSelectorPath": ".status.selector",
    },
}


def definition(*versions: JsonObject, **spec: Any) -> JsonObject:
    columns = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {
            "name": "Ready",
            "type": "string",
            "jsonPath": '.status.conditions[?(@.type=="Ready")].status',
        },
    ]
    more = {"storage": True, "subresources": SUBRESOURCES, "additionalPrinterColumns": columns}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": "acme.example.com",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "shortNames": ["wd"]},
            "versions": list(versions) or [version("v1", **more)],
            **spec,
        },
    }


def widget(name: str = "w", **spec: Any) -> JsonObject:
    return {
        "apiVersion": "acme.example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"size": 3, **spec},
    }


def test_a_definition_serves_its_resource(serve: Serve):
    async def work(client: Any):
        assert (await client.get(WIDGETS)).status == 404
        made = await client.post(DEFINITIONS, definition())
        conditions = {one["type"]: one["status"] for one in made.body["status"]["conditions"]}
        assert conditions == {"NamesAccepted": "True", "Established": "True"}
        assert made.body["status"]["storedVersions"] == ["v1"]
        assert made.body["spec"]["names"]["listKind"] == "WidgetList"
        assert (await client.get(WIDGETS)).body["kind"] == "WidgetList"
        listed = await client.get("/apis/acme.example.com/v1")
        names = {one["name"]: one for one in listed.body["resources"]}
        assert names["widgets"]["shortNames"] == ["wd"]
        assert {"widgets/status", "widgets/scale"} <= names.keys()
        published = await client.get("/openapi/v3/apis/acme.example.com/v1")
        schemas = published.body["components"]["schemas"]
        fields = schemas["acme.example.com.v1.Widget"]["properties"]["spec"]["properties"]
        assert fields["size"] == {"type": "integer", "format": "int64"}

    serve(work)


def test_objects_are_pruned_filled_and_counted(serve: Serve):
    async def work(client: Any):
        await client.post(DEFINITIONS, definition())
        sent = widget(unknown=1, free={"x": {"y": 1}}, maybe=None, n=None)
        made = await client.post(WIDGETS, {**sent, "extra": 1})
        assert made.status == 201
        assert made.body["spec"] == {
            "size": 3,
            "color": "red",
            "free": {"x": {"y": 1}},
            "maybe": None,
        }
        assert made.warnings == ('unknown field "spec.unknown"', 'unknown field "extra"')
        changed = await client.patch(f"{WIDGETS}/w", {"spec": {"size": 4}})
        assert changed.body["metadata"]["generation"] == 2
        status = {"status": {"n": 2, "selector": "a=b"}, "spec": {"size": 9}}
        written = await client.patch(f"{WIDGETS}/w/status", status)
        assert (written.body["spec"]["size"], written.body["status"]["n"]) == (4, 2)
        assert written.body["metadata"]["generation"] == 2
        await client.patch(f"{WIDGETS}/w/scale", {"spec": {"replicas": 5}})
        scale = await client.get(f"{WIDGETS}/w/scale")
        assert (scale.body["spec"], scale.body["status"]) == (
            {"replicas": 5},
            {"replicas": 2, "selector": "a=b"},
        )

    serve(work)


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        pytest.param(
            widget(size="x"), 422, 'spec.size in body must be of type integer: "string"', id="type"
        ),
        pytest.param(widget(size=0), 422, "should be greater than or equal to 1", id="minimum"),
        pytest.param(
            {**widget(), "spec": {}}, 422, "spec.size: Required value", id="required"
        ),
        pytest.param(
            widget("Bad_"), 422, 'acme.example.com "Bad_" is invalid: metadata.name', id="name"
        ),
        pytest.param(
            {**widget(), "metadata": {"name": "w", "labels": {"a": 1}}},
            400,
            "Go struct field ObjectMeta.metadata.labels of type string",
            id="metadata",
        ),
    ],
)  # fmt: skip
def test_invalid_objects_are_refused(serve: Serve, body: JsonObject, status: int, message: str):
    async def work(client: Any):
        await client.post(DEFINITIONS, definition())
        return await client.post(WIDGETS, body)

    reply = serve(work)
    assert reply.status == status
    assert message in reply.body["message"]


def test_the_table_has_the_columns_of_the_definition(serve: Serve):
    async def work(client: Any):
        await client.post(DEFINITIONS, definition())
        await client.post(WIDGETS, widget())
        conditions = [{"type": "Other", "status": "x"}, {"type": "Ready", "status": "True"}]
        await client.patch(f"{WIDGETS}/w/status", {"status": {"conditions": conditions}})
        return await client.get(WIDGETS, accept="application/json;as=Table;v=v1;g=meta.k8s.io")

    made = serve(work).body
    assert [column["name"] for column in made["columnDefinitions"]] == ["Name", "Size", "Ready"]
    assert made["rows"][0]["cells"] == ["w", 3, "True"]


def test_versions_differ_in_their_name(serve: Serve):
    async def work(client: Any):
        old = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        two = definition(version("v1beta1", old), version("v1", storage=True))
        await client.post(DEFINITIONS, two)
        older = WIDGETS.replace("/v1/", "/v1beta1/")
        sent = widget(loose=1) | {"apiVersion": "acme.example.com/v1beta1"}
        made = await client.post(older, sent)
        assert (made.status, made.body["apiVersion"]) == (201, "acme.example.com/v1beta1")
        assert made.body["spec"]["loose"] == 1
        assert (await client.get(f"{WIDGETS}/w")).body["apiVersion"] == "acme.example.com/v1"
        group = await client.get("/apis/acme.example.com")
        assert group.body["preferredVersion"]["version"] == "v1"
        wrong = await client.post(WIDGETS, sent)
        assert wrong.status == 400

    serve(work)


def test_a_kind_of_a_built_in_name_gets_no_built_in_rules(serve: Serve):
    async def work(client: Any):
        names = {"kind": "Service", "plural": "services"}
        body = definition(names=names)
        body["metadata"]["name"] = "services.acme.example.com"
        await client.post(DEFINITIONS, body)
        sent = widget() | {"kind": "Service"}
        return await client.post(WIDGETS.replace("widgets", "services"), sent)

    assert serve(work).body["spec"] == {"size": 3, "color": "red"}


def test_watches_of_two_versions_get_their_own_events(serve: Serve):
    async def work(client: Any):
        two = definition(version("v1beta1"), version("v1", storage=True))
        await client.post(DEFINITIONS, two)
        older = WIDGETS.replace("/v1/", "/v1beta1/")
        async with client.watch(WIDGETS) as new, client.watch(older) as old:
            await client.post(WIDGETS, widget())
            return await new.next(), await old.next()

    events = serve(work)
    assert [event["object"]["apiVersion"] for event in events] == [
        "acme.example.com/v1",
        "acme.example.com/v1beta1",
    ]


def test_a_changed_definition_holds_for_existing_objects(serve: Serve):
    async def work(client: Any):
        await client.post(DEFINITIONS, definition(version("v1", storage=True)))
        await client.post(WIDGETS, widget())
        await client.patch(f"{WIDGETS}/w", {"status": {"n": 1}})
        subresources = version("v1", storage=True, subresources=SUBRESOURCES)
        await client.patch(f"{DEFINITIONS}/{NAME}", {"spec": {"versions": [subresources]}})
        return await client.patch(f"{WIDGETS}/w", {"status": {"n": 2}, "spec": {"size": 5}})

    body = serve(work).body
    # The status is written through its subresource now.
    assert (body["status"], body["spec"]["size"]) == ({"n": 1}, 5)
