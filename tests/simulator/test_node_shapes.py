"""Shapes of nodes as a user writes them."""

import pytest

from kubestow.errors import InputError
from kubestow.simulator.node_shapes import NodeShape, node_documents, parse_shape


def test_a_shape_has_resources_labels_and_a_count():
    shape = parse_shape("cpu=8, memory=32Gi,nvidia.com/gpu=4,label.a.example/disk=ssd,count=10")
    assert shape.capacity == {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "4"}
    assert shape.labels == {"a.example/disk": "ssd"}
    assert shape.count == 10


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", '"" is not NAME=VALUE'),
        ("cpu", '"cpu" is not NAME=VALUE'),
        ("cpu=8,,", '"" is not NAME=VALUE'),
        ("=8", '"=8" is not NAME=VALUE'),
        ("cpu=lots", 'cpu is "lots", expected a quantity such as 4'),
        ("memory=32GB", 'memory is "32GB", expected a quantity such as 32Gi'),
        ("cpu=-1", 'cpu is "-1", expected a whole number of at least 0'),
        ("pods=1.5", 'pods is "1.5", expected a whole number of at least 0'),
        ("nvidia.com/gpu=500m", 'nvidia.com/gpu is "500m", expected a whole number of at least 0'),
        ("gpu=1", '"gpu" is not a resource of a node'),
        ("a b/gpu=1", '"a b/gpu" is not a resource of a node'),
        ("count=0", 'count is "0", expected 1 to 200000'),
        ("count=many", 'count is "many", expected 1 to 200000'),
        ("cpu=1,cpu=2", '"cpu" is given twice'),
        ("count=1,count=2", '"count" is given twice'),
        ("label.a=1,label.a=2", '"label.a" is given twice'),
        ("label.a=b c", 'label "a=b c": '),
        ("label.=x", 'label "=x": '),
    ],
)
def test_what_is_wrong_is_named(text: str, problem: str):
    with pytest.raises(InputError) as caught:
        parse_shape(text)
    assert str(caught.value).startswith(f'node shape "{text}": {problem}')


def test_nodes_are_numbered_over_all_shapes_and_spread_over_zones():
    shapes = [NodeShape(count=2), NodeShape(capacity={"cpu": "1"})]
    nodes = node_documents(shapes, default_count=2)
    assert [node["metadata"]["name"] for node in nodes] == ["node-0", "node-1", "node-2", "node-3"]
    zones = [node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes]
    assert zones == ["zone-a", "zone-b", "zone-c", "zone-a"]
    assert [node["status"]["capacity"]["cpu"] for node in nodes] == ["4", "4", "1", "1"]


def test_a_label_given_replaces_the_zone():
    shape = parse_shape("label.topology.kubernetes.io/zone=here")
    (node,) = node_documents([shape], default_count=1)
    assert node["metadata"]["labels"]["topology.kubernetes.io/zone"] == "here"


def test_too_many_nodes_are_refused():
    with pytest.raises(InputError, match="200001 nodes, expected at most 200000"):
        node_documents([NodeShape(count=200_000), NodeShape(count=1)], default_count=1)
