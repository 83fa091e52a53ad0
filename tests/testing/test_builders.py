"""Builders set what they are given and nothing else."""

import pytest

from kubestow.api.pod import ContainerPort, NodeSelectorRequirement, NodeSelectorTerm
from kubestow.api.quantity import parse_quantity
from kubestow.apiserver.writes.validation import field_errors
from kubestow.index.nodes import nodes_of
from kubestow.testing import (
    make_node,
    make_node_affinity,
    make_pod,
    make_port,
    make_snapshot,
    make_term,
)


def test_every_pod_has_a_uid_of_its_own() -> None:
    assert make_pod().metadata.uid != make_pod().metadata.uid
    assert make_pod(uid="u").metadata.uid == "u"


def test_what_is_not_given_is_absent() -> None:
    (container,) = make_pod().spec.containers
    assert container.resources.requests is None
    assert make_pod().spec.node_selector is None
    assert make_node(cpu=None, memory=None, pods=None).status.allocatable == {}


def test_requests_and_further_resources_go_together() -> None:
    (container,) = make_pod(cpu="500m", requests={"example.com/gpu": 2}).spec.containers
    assert container.resources.requests == {
        "cpu": parse_quantity("500m"),
        "example.com/gpu": parse_quantity("2"),
    }


def test_what_a_server_gives_exactly_has_a_limit() -> None:
    requests = {"example.com/gpu": 2, "hugepages-2Mi": "4Mi"}
    pod = make_pod(cpu="500m", requests=requests)
    resources = pod.spec.containers[0].resources
    assert resources.limits == {name: parse_quantity(each) for name, each in requests.items()}
    assert not list(field_errors(pod))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (80, ContainerPort(host_port=80, container_port=80)),
        ("80/UDP", ContainerPort(host_port=80, container_port=80, protocol="UDP")),
        ("10.0.0.1:80", ContainerPort(host_ip="10.0.0.1", host_port=80, container_port=80)),
        (":::80", ContainerPort(host_ip="::", host_port=80, container_port=80)),
    ],
)
def test_ports_are_written_as_addresses(text: int | str, expected: ContainerPort) -> None:
    assert make_port(text) == expected


def test_terms_are_written_as_text() -> None:
    assert make_term("zone In a,b", fields=["metadata.name NotIn n1"]) == NodeSelectorTerm(
        match_expressions=(NodeSelectorRequirement(key="zone", operator="In", values=("a", "b")),),
        match_fields=(
            NodeSelectorRequirement(key="metadata.name", operator="NotIn", values=("n1",)),
        ),
    )
    assert make_node_affinity().required is None
    assert make_node_affinity().preferred is None


def test_snapshots_show_pods_on_their_nodes() -> None:
    snapshot = make_snapshot([make_node("n1"), make_node("n2")], [make_pod(node="n2", cpu="500m")])
    assert snapshot.names == ["n1", "n2"]
    assert nodes_of(snapshot).pod_count.tolist() == [0, 1]


def test_a_snapshot_takes_only_placed_pods() -> None:
    with pytest.raises(AssertionError, match="has no node name"):
        make_snapshot([make_node()], [make_pod()])
