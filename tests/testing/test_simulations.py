"""Whole runs with plugins under test."""

from typing import ClassVar

import pytest

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.plugin import NodeScore
from kubestow.testing import make_node, make_pod, simulate


class PreferFull(NodeScore):
    """Against the default plugins, which prefer the emptier node."""

    name: ClassVar[str] = "PreferFull"

    def score_node(self, pod: Pod, node: Node) -> int:
        return 10 if node.metadata.name == "full" else 0


@pytest.mark.parametrize(("weight", "node"), [(1, "empty"), (50, "full")])
def test_weights_are_by_name(weight: int, node: str) -> None:
    objects = [
        make_node("full", cpu="4"),
        make_node("empty", cpu="4"),
        make_pod("old", cpu="3500m", node="full"),
        make_pod("new", cpu="100m"),
    ]
    result = simulate(objects, PreferFull, weights={"PreferFull": weight})
    assert [outcome.node for outcome in result.pods] == [node]


def test_the_limit_is_virtual_time() -> None:
    result = simulate([make_pod()], limit_s=3)
    assert not result.has_settled
    assert result.virtual_duration_s == 3
