"""Selectors of lists and watches, from the text of a request."""

import pytest

from kubestow.api.meta import JsonObject
from kubestow.apiserver.selectors import (
    EVERYTHING,
    parse_field_selector,
    parse_label_query,
    parse_selection,
)
from kubestow.cluster.resources import NODES, PODS
from kubestow.errors import ApiError

POD: JsonObject = {
    "metadata": {"name": "a", "namespace": "x", "labels": {"app": "web", "tier": "7"}},
    "spec": {"nodeName": "n1"},
    "status": {"phase": "Running"},
}
NEW_POD: JsonObject = {"metadata": {"name": "b", "namespace": "x"}}


@pytest.mark.parametrize(
    ("text", "matches_pod", "matches_new_pod"),
    [
        ("status.phase!=Succeeded,status.phase!=Failed", True, True),
        ("status.phase!=Running", False, True),
        ("status.phase==Running", True, False),
        ("spec.nodeName=", False, True),
        ("spec.nodeName!=", True, False),
        ("spec.nodeName=n1,metadata.name=a,metadata.namespace=x", True, False),
        ("spec.hostNetwork=false", True, True),
        ("status.phase=Running,status.phase=Pending", False, False),
        ("status.phase=Running,status.phase!=Running", False, False),
    ],
)
def test_field_selectors(text: str, matches_pod: bool, matches_new_pod: bool):
    selector = parse_field_selector(PODS, text)
    assert selector is not None
    assert selector.matches(POD) is matches_pod
    assert selector.matches(NEW_POD) is matches_new_pod


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("app=web", True),
        ("app == web", True),
        ("app!=web", False),
        ("missing!=web", True),
        ("app in (web, api)", True),
        ("app notin (web,api)", False),
        ("app", True),
        ("!app", False),
        ("!missing,app", True),
        ("tier>6,tier<8", True),
        ("tier > 7", False),
        ("app in (web),tier in (1,7)", True),
        ("app=", False),
    ],
)
def test_label_selectors(text: str, expected: bool):
    selector = parse_label_query(text)
    assert selector is not None
    assert selector.matches(POD["metadata"]["labels"]) is expected


@pytest.mark.parametrize(
    ("fields", "labels", "message"),
    [
        ("spec.containers=x", "", "field label not supported: spec.containers"),
        ("nonsense", "", "invalid selector: 'nonsense'; can't understand 'nonsense'"),
        ("", "app in web", "unable to parse requirement: found 'app in web'"),
        ("", "-app=web", "unable to parse requirement: key: Invalid value"),
        ("", "app>many", "the value must be an integer"),
    ],
)
def test_an_invalid_selector_is_a_bad_request(fields: str, labels: str, message: str):
    with pytest.raises(ApiError) as caught:
        parse_selection(PODS, field_selector=fields, label_selector=labels)
    assert caught.value.code == 400
    assert message in str(caught.value)


def test_fields_depend_on_the_resource():
    with pytest.raises(ApiError, match=r"field label not supported: status\.phase"):
        parse_field_selector(NODES, "status.phase=Running")
    selector = parse_field_selector(NODES, "spec.unschedulable=false")
    assert selector is not None
    assert selector.matches({"metadata": {"name": "n"}})
    assert not selector.matches({"metadata": {"name": "n"}, "spec": {"unschedulable": True}})


def test_no_parameters_select_everything_at_no_cost():
    assert parse_selection(PODS) is EVERYTHING
    assert parse_field_selector(PODS, "") is None
    assert parse_label_query(" ") is None


def test_a_namespace_restricts():
    selection = parse_selection(PODS, namespace="x")
    assert selection.matches(POD)
    assert not selection.matches({"metadata": {"name": "a", "namespace": "y"}})


def test_commas_in_parentheses_do_not_separate():
    selector = parse_label_query("a in (b,c),d, e notin (f,g) ,!h")
    assert selector is not None
    assert selector.matches({"a": "c", "d": "", "e": "x"})
    assert not selector.matches({"a": "c", "d": "", "e": "g"})
    assert not selector.matches({"a": "c", "e": "x"})
