"""Server-side apply: ownership of fields, and conflicts between managers."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.apiserver.custom.structural import structural_schema
from kubestow.apiserver.schema.types import Schema, Shape
from kubestow.apiserver.writes.field_sets import (
    difference,
    fields_of,
    intersection,
    leaves,
    merged,
    path_text,
    union,
    value_of,
    without,
)
from kubestow.apiserver.writes.server_side_apply import (
    ApplyConflictError,
    Writer,
    applied,
    taken_over,
)


def keyed(*keys: str) -> dict[str, Any]:
    listed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    return {"type": "array", "items": {"type": "object"}, **listed}


FIELDS = structural_schema(
    {
        "type": "object",
        "properties": {
            "args": {"type": "array", "items": {"type": "string"}},
            "containers": keyed("name"),
            "finalizers": {"type": "array", "x-kubernetes-list-type": "set"},
            "ports": keyed("containerPort", "protocol"),
            "selector": {"type": "object", "x-kubernetes-map-type": "atomic"},
        },
    }
)
SCHEMA = Schema(shape=Shape.OBJECT, fields={"spec": FIELDS})


def wanted(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": spec,
    }


def writer(manager: str = "alice") -> Writer:
    return Writer(manager, "2023-11-14T22:13:20Z")


def owners(document: dict[str, Any]) -> dict[tuple[str, str], set[str]]:
    return {
        (entry["manager"], entry["operation"]): {
            path_text(path) for path in leaves(entry["fieldsV1"])
        }
        for entry in document["metadata"].get("managedFields", [])
    }


# --- Applying ---------------------------------------------------------------------------------


def test_the_first_apply_owns_its_fields():
    document = applied(None, wanted(replicas=3), writer(), SCHEMA, is_forced=False)
    assert document["spec"] == {"replicas": 3}
    assert owners(document) == {("alice", "Apply"): {".spec.replicas"}}


def test_what_a_manager_leaves_out_is_removed():
    first = applied(None, wanted(replicas=3, paused=True), writer(), SCHEMA, is_forced=False)
    second = applied(first, wanted(replicas=3), writer(), SCHEMA, is_forced=False)
    assert second["spec"] == {"replicas": 3}


def test_what_another_manager_owns_stays():
    first = applied(None, wanted(replicas=3, paused=True), writer("alice"), SCHEMA, is_forced=False)
    both = applied(first, wanted(paused=True), writer("bob"), SCHEMA, is_forced=False)
    without_alice = applied(both, wanted(replicas=3), writer("alice"), SCHEMA, is_forced=False)
    assert without_alice["spec"] == {"replicas": 3, "paused": True}
    assert owners(without_alice)["alice", "Apply"] == {".spec.replicas"}


def test_fields_without_a_manager_are_kept():
    live = wanted(replicas=3, minReadySeconds=5)
    document = applied(live, wanted(replicas=4), writer(), SCHEMA, is_forced=False)
    assert document["spec"] == {"replicas": 4, "minReadySeconds": 5}


def test_a_conflict_names_manager_and_field():
    first = applied(None, wanted(replicas=3), writer("alice"), SCHEMA, is_forced=False)
    with pytest.raises(ApplyConflictError) as caught:
        applied(first, wanted(replicas=4), writer("bob"), SCHEMA, is_forced=False)
    assert str(caught.value) == (
        'Apply failed with 1 conflict: conflict with "alice" using apps/v1: .spec.replicas'
    )
    assert caught.value.code == 409


def test_several_conflicts_are_reported_together():
    first = applied(None, wanted(replicas=3, paused=True), writer("alice"), SCHEMA, is_forced=False)
    with pytest.raises(ApplyConflictError) as caught:
        applied(first, wanted(replicas=4, paused=False), writer("bob"), SCHEMA, is_forced=False)
    assert str(caught.value) == (
        'Apply failed with 2 conflicts:\nconflicts with "alice" using apps/v1:\n'
        "- .spec.replicas\n- .spec.paused"
    )


def test_the_same_value_is_shared():
    first = applied(None, wanted(replicas=3), writer("alice"), SCHEMA, is_forced=False)
    both = applied(first, wanted(replicas=3), writer("bob"), SCHEMA, is_forced=False)
    assert owners(both).keys() == {("alice", "Apply"), ("bob", "Apply")}


def test_force_takes_the_field_away():
    first = applied(None, wanted(replicas=3, paused=True), writer("alice"), SCHEMA, is_forced=False)
    forced = applied(first, wanted(replicas=4), writer("bob"), SCHEMA, is_forced=True)
    assert forced["spec"] == {"replicas": 4, "paused": True}
    assert owners(forced) == {
        ("alice", "Apply"): {".spec.paused"},
        ("bob", "Apply"): {".spec.replicas"},
    }


def container(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, **fields}


def test_lists_with_keys_merge_element_by_element():
    first = applied(
        None,
        wanted(containers=[container("a", image="a:1"), container("b", image="b:1")]),
        writer("alice"),
        SCHEMA,
        is_forced=False,
    )
    second = applied(
        first,
        wanted(containers=[container("c", image="c:1"), container("a", tty=True)]),
        writer("bob"),
        SCHEMA,
        is_forced=False,
    )
    assert second["spec"]["containers"] == [
        container("a", image="a:1", tty=True),
        container("b", image="b:1"),
        container("c", image="c:1"),
    ]
    third = applied(
        second,
        wanted(containers=[container("b", image="b:1")]),
        writer("alice"),
        SCHEMA,
        is_forced=False,
    )
    # The element that bob owns too loses the fields that only alice owned.
    assert third["spec"]["containers"] == [
        container("a", tty=True),
        container("b", image="b:1"),
        container("c", image="c:1"),
    ]


def test_ports_are_distinguished_by_protocol_which_defaults_to_tcp():
    live = wanted(ports=[{"containerPort": 80, "protocol": "TCP"}])
    document = applied(
        live,
        wanted(
            ports=[{"containerPort": 80, "name": "http"}, {"containerPort": 80, "protocol": "UDP"}]
        ),
        writer(),
        SCHEMA,
        is_forced=False,
    )
    assert document["spec"]["ports"] == [
        {"containerPort": 80, "protocol": "TCP", "name": "http"},
        {"containerPort": 80, "protocol": "UDP"},
    ]


def test_an_empty_object_causes_no_conflict():
    first = applied(None, wanted(resources={"cpu": "1"}), writer("alice"), SCHEMA, is_forced=False)
    second = applied(first, wanted(resources={}), writer("bob"), SCHEMA, is_forced=False)
    assert second["spec"] == {"resources": {"cpu": "1"}}


def test_lists_without_keys_and_selectors_are_owned_whole():
    live = wanted(args=["a", "b"], selector={"app": "web", "tier": "x"})
    document = applied(
        live, wanted(args=["c"], selector={"app": "api"}), writer(), SCHEMA, is_forced=False
    )
    assert document["spec"] == {"args": ["c"], "selector": {"app": "api"}}


# --- Writing without applying -----------------------------------------------------------------


def test_a_change_without_apply_takes_the_field_over():
    first = applied(None, wanted(replicas=3, paused=True), writer("alice"), SCHEMA, is_forced=False)
    changed = {**first, "spec": {"replicas": 9, "paused": True}}
    document = taken_over(first, changed, writer("scaler"), SCHEMA)
    assert owners(document) == {
        ("alice", "Apply"): {".spec.paused"},
        ("scaler", "Update"): {".spec.replicas"},
    }
    with pytest.raises(ApplyConflictError, match='conflict with "scaler"'):
        applied(document, wanted(replicas=3, paused=True), writer("alice"), SCHEMA, is_forced=False)


def test_objects_without_applied_fields_have_no_managers():
    old, new = wanted(replicas=1), wanted(replicas=2)
    assert taken_over(old, new, writer(), SCHEMA) is new


def test_a_client_that_does_not_send_the_field_back_keeps_the_managers():
    first = applied(None, wanted(replicas=3), writer("alice"), SCHEMA, is_forced=False)
    sent = wanted(replicas=3)
    assert owners(taken_over(first, sent, writer("editor"), SCHEMA)) == owners(first)


def test_an_empty_list_of_managers_removes_them_all():
    first = applied(None, wanted(replicas=3), writer("alice"), SCHEMA, is_forced=False)
    sent = wanted(replicas=3)
    sent["metadata"]["managedFields"] = []
    assert taken_over(first, sent, writer(), SCHEMA)["metadata"]["managedFields"] is None


# --- Sets of fields ---------------------------------------------------------------------------

PLAIN = st.integers(0, 3) | st.sampled_from(["x", "y"])
ELEMENT = st.fixed_dictionaries(
    {"name": st.sampled_from("abc")}, optional={"image": PLAIN, "tty": PLAIN}
)
VALUE = st.dictionaries(st.sampled_from(["p", "q", "r"]), PLAIN, max_size=3)
DOCUMENT = st.fixed_dictionaries(
    {},
    optional={
        "spec": VALUE,
        "containers": st.lists(ELEMENT, max_size=3, unique_by=lambda item: item["name"]),
        "finalizers": st.lists(st.sampled_from("fgh"), max_size=3, unique=True),
        "plain": PLAIN,
    },
)


@given(DOCUMENT, DOCUMENT)
def test_merging_gives_every_field_the_applied_value_and_keeps_the_rest(
    live: Any, applied_value: Any
):
    result = merged(live, applied_value, FIELDS)
    for path in leaves(fields_of(applied_value, FIELDS)):
        # An empty object requires that there is one.
        if value_of(applied_value, path) not in ({}, []) and path[-1] != ".":
            assert value_of(result, path) == value_of(applied_value, path)
    for path in leaves(difference(fields_of(live, FIELDS), fields_of(applied_value, FIELDS))):
        # A plain value in place of an object hides what the object had.
        if value_of(result, path) is not None and path[-1] != ".":
            assert value_of(result, path) == value_of(live, path)


@given(DOCUMENT, DOCUMENT)
def test_sets_behave_as_sets(left: Any, right: Any):
    a, b = fields_of(left, FIELDS), fields_of(right, FIELDS)
    assert difference(a, a) == {}
    assert set(leaves(union(a, b))) >= set(leaves(difference(a, b)))
    assert intersection(a, a) == a
    assert set(leaves(difference(a, b))).isdisjoint(leaves(intersection(a, b)))


@given(DOCUMENT)
def test_taking_every_field_away_leaves_nothing(document: Any):
    full = {key: value for key, value in document.items() if value not in ({}, [])}
    assert without(full, fields_of(full, FIELDS)) == {}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param(("f:spec", "f:replicas"), ".spec.replicas", id="member"),
        pytest.param(
            ("f:containers", 'k:{"name":"a"}', "f:image"), '.containers[name="a"].image', id="key"
        ),
        pytest.param(("f:finalizers", 'v:"x"'), '.finalizers[="x"]', id="value"),
        pytest.param(("f:a", 'k:{"x":1,"y":"b"}', "."), '.a[x=1,y="b"]', id="element"),
    ],
)
def test_a_path_is_written_for_people(path: tuple[str, ...], text: str):
    assert path_text(path) == text
