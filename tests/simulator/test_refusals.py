"""What a cluster would refuse is left out and named; what was read from a server is taken."""

from typing import Any

import pytest

from kubestow.api.files import Document
from kubestow.simulator.refusals import without_refused

CONTAINERS = [{"name": "c", "image": "i"}]
NODE: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}


def pod(name: str, uid: str = "", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, **({"uid": uid} if uid else {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": CONTAINERS, **spec},
    }


def deployment(uid: str = "", **spec: Any) -> dict[str, Any]:
    metadata = {"name": "web", **({"uid": uid} if uid else {})}
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": CONTAINERS, **spec}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "a"}}, "template": template},
    }


def checked(*documents: dict[str, Any], **options: Any) -> tuple[list[str], list[str]]:
    """The kinds that are kept, and the refusals."""
    sourced = [Document(each, f"f#{index}") for index, each in enumerate(documents)]
    found = without_refused(sourced, **options)
    return [each.raw["kind"] for each in found.documents], found.refusals


@pytest.mark.parametrize("field", ["priorityClassName", "runtimeClassName"])
def test_a_class_that_is_not_there_is_refused_of_new_pods_only(field: str) -> None:
    assert checked(NODE, pod("p", uid="u", **{field: "gold"})) == (["Node", "Pod"], [])
    kinds, refusals = checked(NODE, pod("p", **{field: "gold"}), pod("q"))
    assert kinds == ["Node", "Pod"]
    assert len(refusals) == 1
    assert refusals[0].startswith('f#1: pods "p" is forbidden: ')


def test_a_class_may_come_after_the_pods_that_name_it() -> None:
    gold = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "gold"},
        "value": 5,
    }
    assert checked(pod("p", priorityClassName="gold"), gold) == (["Pod", "PriorityClass"], [])


def test_a_workload_is_refused_for_its_pods() -> None:
    kinds, refusals = checked(NODE, deployment(priorityClassName="bach"))
    assert kinds == ["Node"]
    assert "no PriorityClass with name bach was found" in refusals[0]
    assert refusals[0].startswith('f#1: pods "web-')
    # Where controllers make them, it is they who are refused.
    assert checked(deployment(priorityClassName="bach"), makes_pods=False) == (["Deployment"], [])
    assert checked(deployment("u", priorityClassName="bach")) == (["Deployment"], [])


def test_an_object_given_twice_is_there_once() -> None:
    assert checked(NODE, NODE) == (["Node"], ['f#1: nodes "n" already exists'])
    kinds, refusals = checked(pod("p", uid="u"), pod("q", uid="u"))
    assert (kinds, refusals) == (["Pod"], ['f#1: Pod "q" has the UID of f#0'])


def test_versions_that_are_not_served_are_refused() -> None:
    old = {**deployment(), "apiVersion": "extensions/v1beta1"}
    assert checked(NODE, old)[0] == ["Node"]


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"name": "n;reboot"}, "metadata.name"),
        ({"name": "--all"}, "metadata.name"),
        ({"name": "n\n::error::x"}, "metadata.name"),
        ({"name": "n", "namespace": "../kube-system"}, "metadata.namespace"),
        ({"name": "n", "uid": 'u","x":"'}, "metadata.uid"),
    ],
)
def test_what_was_read_from_a_server_has_a_name_that_a_server_gives(
    metadata: dict[str, str], field: str
) -> None:
    # Commands, paths of requests and lines of output are made of them.
    standing = pod("n", uid="u")
    standing["metadata"] |= metadata
    kept, refusals = checked(NODE, standing)
    assert kept == ["Node"]
    (refusal,) = refusals
    assert f"{field}: Invalid value" in refusal
