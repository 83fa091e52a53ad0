"""Scenarios, comparisons, capacity, changes and suggestions from Python."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kubestow import (
    InputError,
    apply_suggestion,
    change_cluster,
    compare,
    drain_check,
    fit,
    headroom,
    load_cluster,
    need,
    simulate,
    simulate_scenario,
)
from kubestow.api.decode import to_document
from kubestow.testing import make_node, make_pod

EXAMPLES = Path(__file__).parents[2] / "examples"
CLUSTER = EXAMPLES / "cluster.yaml"
WORKLOAD = EXAMPLES / "workload.yaml"


@pytest.mark.slow
def test_a_scenario_runs_until_a_given_time() -> None:
    run = simulate_scenario(EXAMPLES / "day.yaml", until="1h")
    assert run.virtual_duration_s == 3600
    assert run.pods
    assert simulate_scenario(EXAMPLES / "day.yaml", until=60.0).virtual_duration_s == 60


@pytest.mark.parametrize("until", ["soon", 0, -1.0, float("nan")])
def test_a_time_that_is_none_is_refused(until: str | float) -> None:
    with pytest.raises(InputError, match="until is"):
        simulate_scenario(EXAMPLES / "day.yaml", until=until)


@pytest.mark.slow
def test_schedulers_are_compared(tmp_path: Path) -> None:
    packed = tmp_path / "packed.yaml"
    packed.write_text(
        """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""
    )
    result = compare(CLUSTER, WORKLOAD, variants=[f"packed={packed}"], jobs=1)
    assert [variant.name for variant in result.variants] == ["default", "packed"]
    assert not result.failures


def test_a_variant_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(InputError, match='variant "x": cannot read "nothing'):
        compare(CLUSTER, variants=["x=nothing.yaml"])


def test_capacity_answers_its_four_questions() -> None:
    pod = to_document(make_pod("copy", cpu="1"))
    node = to_document(make_node("n", cpu="4", memory="8Gi", pods=110))
    assert fit(node, copies=pod).copies == 4
    assert [one.copies for one in headroom(node, copies=pod).pools] == [4]
    waiting = [to_document(make_pod(f"p{i}", cpu="3")) for i in range(3)]
    assert [one.count for one in need(node, waiting, shapes=["cpu=4,memory=8Gi"]).nodes] == [2]
    assert [one.name for one in drain_check([node]).removable] == ["n"]


def test_changes_are_a_source() -> None:
    changed = change_cluster(CLUSTER, WORKLOAD, add_nodes={"node-b-1": 1}, cordon=["node-b-1"])
    assert len(simulate(changed).nodes) == 5
    with pytest.raises(InputError, match="nothing"):
        change_cluster(CLUSTER, drain=["nothing"])


def test_a_suggestion_is_applied() -> None:
    why = load_cluster(CLUSTER, WORKLOAD).explain("reports-0")
    assert simulate(CLUSTER, WORKLOAD).pending
    assert not simulate(apply_suggestion(why.suggestions[0], CLUSTER, WORKLOAD)).pending


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ({"kind": "Foo"}, "object 1 is a Foo, which decides nothing about pods"),
        ({"metadata": {"name": "x"}}, "object 1 has no kind"),
        ([{"kind": "Foo"}], r"object 1\[0\] is a Foo"),
        (["x"], r"object 1\[0\] is 'x', expected a Kubernetes object"),
    ],
)
def test_objects_that_decide_nothing_are_refused(source: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        load_cluster(source)


@pytest.mark.parametrize(
    ("pod", "text"),
    [
        ({"kind": "Pod"}, "name"),
        ({"kind": "Node", "metadata": {"name": "n"}}, "kind 'Node', expected a Pod"),
        ({"kind": "Pod", "metadata": {"name": "p"}, "spec": {}}, "spec.containers"),
    ],
)
def test_a_pod_to_place_is_checked(pod: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        load_cluster(CLUSTER).place(pod)


def test_cells_of_a_notebook_are_run_by_a_loop() -> None:
    async def cell() -> int:
        cluster = load_cluster(CLUSTER, WORKLOAD)
        return len(cluster.nodes) + len(simulate(CLUSTER, WORKLOAD).pods)

    assert asyncio.run(cell()) == 11
