"""Nodes by name, label and taint; attempts by result, namespace, owner and text."""

import pytest
from tests.web.followed_cluster import followed_cluster

from kubestow.api.node import Taint
from kubestow.simulator.virtual_time import run_in_virtual_time
from kubestow.testing import make_node, make_pod
from kubestow.web.details import AttemptFilter, find_attempts
from kubestow.web.node_search import matching_nodes

NODES = [
    make_node("Node-1", labels={"disk": "ssd", "zone": "a"}),
    make_node("node-2", labels={"disk": "hdd"}, taints=(Taint(key="gpu", effect="NoSchedule"),)),
]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ["Node-1", "node-2"]),
        ("NODE", ["Node-1", "node-2"]),
        ("disk=ssd", ["Node-1"]),
        ("disk zone=a", ["Node-1"]),
        ("disk=ssd gpu", []),
        ("gpu:no", ["node-2"]),
        # Words are looked for in one text each, not across two.
        ("1\ndisk", ["Node-1"]),
    ],
)
def test_every_word_has_to_be_found(text: str, names: list[str]) -> None:
    assert matching_nodes(NODES, text) == names


def test_attempts_are_found_by_what_they_are() -> None:
    async def main() -> None:
        async with followed_cluster(make_node("n", cpu="2")) as cluster:
            await cluster.follower.start()
            cluster.add(make_pod("fits", cpu="1"), make_pod("large", cpu="9"))
            await cluster.settle()

            def pods(**wanted: str) -> set[str]:
                found = find_attempts(cluster.follower, AttemptFilter(None, **wanted), 100)
                return {each.pod for each in found.attempts}

            both = {"default/fits", "default/large"}
            assert pods() == pods(namespace="default") == both
            assert pods(result="scheduled") == pods(text="FIT") == {"default/fits"}
            assert pods(result="failed") == pods(result="unschedulable") == {"default/large"}
            assert pods(namespace="def") == pods(result="error") == pods(owner="Job/a") == set()

    run_in_virtual_time(main())
