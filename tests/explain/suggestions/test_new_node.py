from typing import Any

import pytest
from tests.explain.suggestions.families import POD, ZONE, csi_node, node, pod
from tests.explain.suggestions.trials import cluster_of, documents_of, waiting_pod

from kubestow.explain.suggestions import OfferedNode, find_suggestions

LARGE = OfferedNode(
    capacity={"cpu": "16", "memory": "64Gi", "pods": "110"}, labels={"pool": "large"}
)


def added(*documents: dict[str, Any], shape: OfferedNode | None = None) -> dict[str, Any]:
    """The new nodes, by text."""
    cluster = cluster_of(documents_of(documents))
    return {
        each.text: each.patches[0].patch[0]["value"]
        for each in find_suggestions(cluster, waiting_pod(cluster), shape=shape, limit=99)
        if each.kind == "AddNode"
    }


def test_the_smallest_kind_of_node_that_helps_is_copied() -> None:
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    documents = [
        node("large", cpu="8"),
        node("small", cpu="1"),
        node("medium", cpu="4", zone="z1", taints=[taint]),
        *(pod(f"r-{name}", on=name, requests={"cpu": cpu}) for name, cpu in (("large", "7"),)),
        pod(POD, requests={"cpu": "3"}),
    ]
    ((text, new),) = added(*documents).items()
    assert text == "add a node like medium: the pod then fits on medium-new"
    assert new["metadata"]["labels"] == {"kubernetes.io/hostname": "medium-new", ZONE: "z1"}
    assert "taints" not in new["spec"]


def test_a_copy_has_the_limits_of_volumes() -> None:
    documents = [
        node("a", cpu="4"),
        csi_node("a", 3),
        pod("r", on="a", requests={"cpu": "4"}),
        pod(POD, requests={"cpu": "3"}),
    ]
    cluster = cluster_of(documents_of(documents))
    found = find_suggestions(cluster, waiting_pod(cluster))
    (patches,) = (each.patches for each in found if each.kind == "AddNode")
    assert [(patch.kind, patch.name) for patch in patches] == [
        ("Node", "a-new"),
        ("CSINode", "a-new"),
    ]


@pytest.mark.parametrize(
    ("spec", "helps"),
    [
        pytest.param({"requests": {"cpu": "12"}}, True, id="large-enough"),
        pytest.param(
            {"requests": {"cpu": "12"}, "nodeSelector": {"pool": "large"}}, True, id="label"
        ),
        pytest.param({"requests": {"cpu": "17"}}, False, id="too-small"),
        pytest.param({"requests": {"cpu": "12"}, "nodeSelector": {"pool": "x"}}, False, id="other"),
    ],
)
def test_a_node_of_the_shape_is_suggested_if_it_helps(spec: dict[str, Any], helps: bool) -> None:
    text = (
        "add a node with cpu 16, memory 64Gi, pods 110, label pool=large: "
        "the pod then fits on node-new"
    )
    assert (text in added(node("a", cpu="2"), pod(POD, **spec), shape=LARGE)) == helps


def test_names_that_are_taken_get_a_number() -> None:
    documents = [node("a"), node("node-new"), pod(POD, requests={"cpu": "12"})]
    ((_, new),) = added(*documents, shape=LARGE).items()
    assert new["metadata"]["name"] == "node-new-2"
