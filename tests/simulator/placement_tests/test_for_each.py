"""Every node or domain fails in turn: what breaks is named, and equals each failure alone."""

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from tests.simulator.placement_tests.small_tests import ZONE, cases_of, deployment, document, pod

from kubestow.simulator.placement_tests.for_each import failures_of
from kubestow.simulator.placement_tests.results import CaseResult
from kubestow.simulator.placement_tests.running import RunOptions, played, run_alone, run_cases

PINNED = {ZONE: "zone-a"}


def run_one(content: dict[str, Any], jobs: int = 2) -> CaseResult:
    (result,) = run_cases(cases_of(content), RunOptions(jobs=jobs)).cases
    assert not result.error, result.error
    return result


def test_what_survives_any_one_node_passes() -> None:
    result = run_one(
        document(deployment("web", 6), expect=[{"placed": "all"}], forEach="node", nodes=4)
    )
    assert result.status == "passed"
    assert result.for_each is not None
    assert result.for_each.summary == "holds when any one node fails"
    assert (result.for_each.count, result.for_each.broken_count) == (4, 0)


def test_the_zone_that_breaks_it_is_named_with_the_reason_and_a_suggestion() -> None:
    result = run_one(
        document(
            deployment("web", 2, nodeSelector=PINNED),
            deployment("other", 4),
            expect=[{"placed": "all"}],
            forEach="zone",
        )
    )
    assert result.status == "failed"
    assert result.for_each is not None
    assert result.for_each.broken_count == 1
    smallest = result.for_each.smallest
    assert smallest is not None
    assert (smallest.name, smallest.nodes) == ("zone zone-a", ("n-0",))
    (verdict,) = smallest.verdicts
    assert verdict.short == "2 of 2 pods of Deployment/web wait"
    assert verdict.causes[0].suggestion
    assert verdict.causes[0].patches
    assert result.for_each.summary.startswith("does not hold when zone zone-a fails: 2 of 2 pods")


def test_the_smallest_set_is_a_pair_if_no_single_node_breaks_it() -> None:
    result = run_one(
        document(
            deployment("web", 4, "2"),
            expect=[{"placed": "all"}],
            forEach={"drain": "node", "atOnce": 2},
        )
    )
    assert result.for_each is not None
    # Each node has room for two pods: with one node less four pods fit, with two less they do not.
    assert result.for_each.count == 3 + 3
    assert result.for_each.broken_count == 3
    smallest = result.for_each.smallest
    assert smallest is not None
    assert (smallest.name, smallest.size) == ("nodes n-0 and n-1", 2)
    assert result.for_each.summary == (
        "holds when any one node is drained; does not hold when nodes n-0 and n-1 are drained: "
        "2 of 4 pods of Deployment/web wait for cpu; nor in 2 other cases of 6"
    )


def budget_of_web(name: str, **limit: int) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {**limit, "selector": {"matchLabels": {"app": "web"}}},
    }


@pytest.mark.parametrize("kind", ["drain", "upgrade"])
@pytest.mark.parametrize("over", ["node", "zone"])
def test_a_drain_that_a_budget_holds_up_does_not_hold(kind: str, over: str) -> None:
    """All expectations do: nothing has happened."""
    budget = budget_of_web("all-of-web", minAvailable=3)
    result = run_one(
        document(
            *(deployment("web", 3), budget),
            expect=[{"placed": "all"}, {"budget": "all"}],
            forEach={kind: over},
        )
    )
    assert result.status == "failed"
    assert result.for_each is not None
    assert result.for_each.broken_count == 3
    assert result.for_each.smallest is not None
    (verdict,) = result.for_each.smallest.verdicts
    assert (verdict.kind, verdict.field) == (kind, f"forEach.{kind}")
    text = "1 pod stays, as the disruption budget all-of-web allows no disruption"
    assert verdict.short == text
    assert verdict.found.startswith(f"{text}: default/web-")
    assert "zone" in result.for_each.summary or over == "node"


def test_a_drain_that_waits_for_a_budget_and_ends_holds() -> None:
    """Each replacement is ready before the next pod goes."""
    budget = budget_of_web("web", maxUnavailable=1)
    result = run_one(
        document(
            *(deployment("web", 6), budget), expect=[{"placed": "all"}], forEach={"drain": "node"}
        )
    )
    assert result.status == "passed"


def test_several_are_tried_one_after_the_other_and_what_holds_is_said_first() -> None:
    gpus = {"name": "gpu", "count": 2, "capacity": {"cpu": 4, "nvidia.com/gpu": 1}}
    nodes = {"name": "n", "count": 3, "capacity": {"cpu": 4}}
    train = deployment("train", 2)
    template = train["spec"]["template"]["spec"]
    template["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] = "1"
    template["containers"][0]["resources"]["limits"] = {"nvidia.com/gpu": "1"}
    result = run_one(
        document(
            train,
            expect=[{"placed": "all"}],
            cluster={"nodes": [gpus, nodes]},
            forEach=["node", {"upgrade": "node", "nodes": "n-0"}, {"drain": "zone"}],
        )
    )
    assert result.status == "failed"
    assert result.for_each is not None
    assert result.for_each.what == "fail: node, upgrade: node, drain: zone"
    # Five nodes fail, one is upgraded, three zones are drained, of which two have one gpu each.
    assert (result.for_each.count, result.for_each.broken_count) == (9, 4)
    assert [each.entry for each in result.for_each.broken] == [0, 0, 2, 2]
    assert result.for_each.summary == (
        "holds when any one node is upgraded; does not hold when node gpu-0 fails: 1 of 2 pods of "
        "Deployment/train waits for nvidia.com/gpu; nor in 1 other case of 5; does not hold when "
        "zone zone-a is drained: 1 of 2 pods of Deployment/train waits for nvidia.com/gpu; nor in "
        "1 other case of 3"
    )
    assert result.for_each.smallest is not None
    assert result.for_each.smallest.verdicts[0].causes


def test_a_label_is_a_domain_and_nodes_may_be_chosen() -> None:
    shapes = [
        {"name": "gpu", "count": 2, "capacity": {"cpu": 4}, "labels": {"pool": "gpu"}},
        {"name": "cpu", "count": 2, "capacity": {"cpu": 4}, "labels": {"pool": "cpu"}},
    ]
    content = document(pod("a"), expect=[{"placed": {"atLeast": 0}}], cluster={"nodes": shapes})
    pools = run_one({**content, "forEach": {"leave": "pool"}})
    chosen = run_one({**content, "forEach": {"cordon": "node", "nodes": {"selector": "pool=gpu"}}})
    assert pools.for_each is not None
    assert pools.for_each.count == 2
    assert chosen.for_each is not None
    assert chosen.for_each.count == 2


@pytest.mark.parametrize(
    ("over", "hint"),
    [
        ("pol", ""),
        ("zones", '; did you mean "zone"?'),
        ("pair", "; every pair of nodes is {fail: node, atOnce: 2}"),
    ],
)
def test_a_label_that_no_node_has_is_an_error(over: str, hint: str) -> None:
    content = document(pod("a"), expect=[{"placed": "all"}], forEach=over)
    (result,) = run_cases(cases_of(content), RunOptions(jobs=1)).cases
    assert result.status == "error"
    assert result.error.endswith(f'forEach: no node has the label "{over}"{hint}')


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_failures_of_copies_equal_each_failure_alone(data: st.DataObject) -> None:
    """On random clusters: the verdicts, their words and the pods that they name."""
    nodes = data.draw(st.integers(2, 4), "nodes")
    workloads = [
        deployment(
            f"w{index}",
            data.draw(st.integers(1, 4), "replicas"),
            data.draw(st.sampled_from(["500m", "1", "2", "3"]), "cpu"),
            **data.draw(st.sampled_from([{}, {"nodeSelector": PINNED}]), "spec"),
        )
        for index in range(data.draw(st.integers(1, 3), "workloads"))
    ]
    entries = [
        {
            data.draw(st.sampled_from(["fail", "drain", "leave", "upgrade", "cordon"]), "kind"): (
                data.draw(st.sampled_from(["node", "zone"]), "over")
            ),
            "atOnce": data.draw(st.integers(1, 2), "at once"),
        }
        for _ in range(data.draw(st.integers(1, 2), "entries"))
    ]
    content = document(
        *workloads,
        expect=[
            {"placed": "all"},
            {"evicted": {"atMost": 1}},
            {"spread": {"pods": "Deployment/w0", "over": ZONE}},
        ],
        nodes=nodes,
        forEach=entries,
    )
    (case,) = cases_of(content)
    with played(case) as (cluster, _):
        failures = failures_of(cluster)
    alone = {
        (failure.entry, failure.name): failed
        for failure in failures
        if (failed := [each for each in run_alone(case, failure) if not each.holds])
    }
    (result,) = run_cases([case], RunOptions(jobs=2, explains=False)).cases
    assert result.for_each is not None
    assert result.for_each.count == len(failures)
    together = {
        (broken.entry, broken.name): list(broken.verdicts) for broken in result.for_each.broken
    }
    assert together == alone
