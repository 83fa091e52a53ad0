"""Placement tests as functions of Python, and the plugin of pytest."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from kubestow.errors import InputError
from kubestow.testing.placement import (
    PlacementCluster,
    assert_apart,
    assert_headroom,
    assert_never_on,
    assert_not_evicted,
    assert_on,
    assert_pending,
    assert_placed,
    assert_spread,
    assert_together,
    for_each,
)

ZONE = "topology.kubernetes.io/zone"
NODES = [{"name": "n", "count": 3, "capacity": {"cpu": 4}}]


def web(replicas: int, cpu: str = "1") -> dict[str, Any]:
    labels = {"app": "web"}
    container = {"name": "a", "image": "a", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def test_assertions_hold_and_fail_with_what_was_found() -> None:
    with PlacementCluster(nodes=NODES) as cluster:
        cluster.apply(web(3, "3"))
        assert_placed(cluster, "Deployment/web", within="5s")
        assert_spread(cluster, "Deployment/web", over=ZONE)
        assert_apart(cluster, "Deployment/web")
        assert_on(cluster, "Deployment/web", nodes={"selector": ZONE})
        with pytest.raises(AssertionError, match='there is no node "n-9"'):
            assert_never_on(cluster, "Deployment/web", nodes="n-9")
        assert_not_evicted(cluster)
        assert_headroom(cluster, [{**web(1)}], at_least=3)
        with pytest.raises(AssertionError, match="expected Deployment/web in one"):
            assert_together(cluster, "Deployment/web")
        cluster.scale("Deployment/web", 4)
        with pytest.raises(AssertionError) as raised:
            assert_placed(cluster)
        assert "found      1 of 4 pods of Deployment/web waits: 0/3 nodes" in str(raised.value)
        assert "suggestion " in str(raised.value)
        assert_pending(cluster, count=1, reason="Insufficient cpu")
        assert sorted(cluster.placements.values()) == ["", "n-0", "n-1", "n-2"]


def test_pods_are_never_on_the_nodes_that_others_have() -> None:
    with PlacementCluster(nodes=NODES) as cluster:
        cluster.apply(web(1))
        (node,) = cluster.placements.values()
        for other in {"n-0", "n-1", "n-2"} - {node}:
            assert_never_on(cluster, "Deployment/web", nodes=other)
        with pytest.raises(AssertionError, match="1 pod elsewhere"):
            assert_never_on(cluster, "Deployment/web", nodes=node)


def test_a_wrong_step_is_an_error_with_its_field() -> None:
    with PlacementCluster(nodes=NODES) as cluster:
        with pytest.raises(InputError, match=r"given\[0\].fial: unknown field; did you mean"):
            cluster.step(fial="n-0")
        with pytest.raises(InputError, match='there is no node "x"'):
            cluster.fail("x")


def test_errors_name_no_file_that_does_not_exist() -> None:
    wrong = r"^cluster\.nodes\[0\]\.nme: unknown field"
    with pytest.raises(InputError, match=wrong):
        PlacementCluster(nodes=[{"nme": "n"}])
    with PlacementCluster(nodes=NODES) as cluster:
        with pytest.raises(InputError, match=r'^given\[0\]\.apply: cannot read ".*none\.yaml"'):
            cluster.apply("none.yaml")
        with pytest.raises(InputError, match=r'^given\[0\]\.scale: there is no Deployment "wbe"'):
            cluster.scale("Deployment/wbe", 3)
        with pytest.raises(InputError, match=r'^expect\[0\]\.placed.*there is no kind "Deplyment"'):
            assert_placed(cluster, "Deplyment/web")


def test_copies_go_on_by_themselves() -> None:
    with PlacementCluster(nodes=NODES) as cluster:
        cluster.apply(web(3))
        broken = []
        for name, other in for_each(cluster, "drain"):
            assert_placed(other)
            if name in other.placements.values():
                broken.append(name)
        assert broken == []
        assert_not_evicted(cluster)


pytest_plugins = ["pytester"]


def test_the_plugin_has_a_fixture_for_clusters(pytester: pytest.Pytester) -> None:
    pytester.makefile(
        ".yaml",
        web="kind: Pod\napiVersion: v1\nmetadata: {name: a}\n"
        "spec:\n  containers: [{name: a, image: a}]\n",
    )
    pytester.makepyfile(
        """
        from kubestow.testing.placement import assert_pending, assert_placed

        def test_green(placement_cluster):
            cluster = placement_cluster(nodes=[{"name": "n"}])
            cluster.apply("web.yaml")
            assert_placed(cluster, "Pod/a")

        def test_red(placement_cluster):
            cluster = placement_cluster(nodes=[{"name": "n"}])
            cluster.apply("web.yaml")
            assert_pending(cluster, "Pod/a")

        def test_wrong(placement_cluster):
            cluster = placement_cluster(nodes=[{"name": "n"}])
            assert_placed(cluster, "Deplyment/a")
        """
    )
    result = pytester.runpytest_inprocess("-p", "kubestow.testing.pytest_plugin")
    result.assert_outcomes(passed=1, failed=2)
    # The line of the test, and none of the reader's.
    result.stdout.fnmatch_lines([">       assert_placed(cluster, *Deplyment*"])
    result.stdout.no_fnmatch_line("*action_reading.py*")
    result.stdout.fnmatch_lines(["*found      1 pod has a node: default/a on n*"])


def test_the_entry_point_names_the_plugin() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    name = "kubestow.testing.pytest_plugin"
    assert tomllib.loads(text)["project"]["entry-points"]["pytest11"] == {name: name}
