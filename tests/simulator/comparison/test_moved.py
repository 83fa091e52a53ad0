"""Why a pod went elsewhere, from the two attempts that placed it."""

import pytest

from kubestow.simulator.comparison.moved import (
    MovedPod,
    PodPlacement,
    ReasonCount,
    different,
    moved_pod,
    placements_of,
    reason_counts,
)
from kubestow.simulator.comparison.task import NodeView, PodChoice
from kubestow.simulator.results import PodRow


def placed(node: str, message: str = "", pod: str = "ns/p") -> PodPlacement:
    return PodPlacement(pod=pod, node=node, message=message)


def feasible(**scores: int) -> NodeView:
    return NodeView(verdict="Feasible", scores=scores, total=sum(scores.values()))


def choice(node: str, **views: NodeView) -> PodChoice:
    return PodChoice(node=node, views=views)


# In the first variant the pod is on a, here on b.
THERE = choice("a", a=feasible(Fit=60, Spread=10), b=feasible(Fit=40, Spread=12))
HERE = choice("b", a=feasible(Fit=20, Spread=10), b=feasible(Fit=70, Spread=11))


@pytest.mark.parametrize(
    ("there", "here", "reason", "plugin", "text"),
    [
        pytest.param(THERE, HERE, "Score", "Fit", "Fit: b leads by 50, in base by -20", id="score"),
        pytest.param(
            THERE,
            choice(
                "b",
                a=NodeView(verdict="Rejected", plugin="Ports", reason="no free ports"),
                b=feasible(),
            ),
            "Filter",
            "Ports",
            "Ports rejects a: no free ports",
            id="filter here",
        ),
        pytest.param(
            choice(
                "a",
                a=feasible(),
                b=NodeView(verdict="Rejected", plugin="Taints", reason="tainted"),
            ),
            HERE,
            "Filter",
            "Taints",
            "Taints rejects b in base: tainted",
            id="filter in the first variant",
        ),
        pytest.param(
            THERE,
            choice("b", a=NodeView(verdict="Absent"), b=feasible()),
            "Node",
            "",
            "there was no node a",
            id="node that is gone",
        ),
        pytest.param(
            THERE,
            choice("b", a=NodeView(verdict="NotLookedAt", reason="EnoughFound"), b=feasible()),
            "Search",
            "",
            "a was not looked at: enough nodes were found before it",
            id="search that ended",
        ),
        pytest.param(
            choice("a", a=feasible(Fit=5, Spread=1), b=feasible(Fit=5, Spread=1)),
            choice("b", a=feasible(Fit=7, Spread=0), b=feasible(Fit=0, Spread=7)),
            "Tie",
            "",
            "both nodes score the same; the order of the search decided",
            id="leads that cancel out",
        ),
        pytest.param(
            THERE,
            choice(
                "b",
                a=NodeView(verdict="Feasible", total=3),
                b=NodeView(verdict="Feasible", total=30),
            ),
            "Score",
            "all priorities",
            "all priorities: b leads by 27, in base by 0",
            id="only totals",
        ),
        pytest.param(None, None, "Unknown", "", "", id="not followed"),
    ],
)
def test_the_reason(
    there: PodChoice | None, here: PodChoice | None, reason: str, plugin: str, text: str
) -> None:
    found = moved_pod(3, placed("a"), placed("b"), there, here, first_name="base")
    assert (found.reason, found.plugin, found.text) == (reason, plugin, text)
    assert (found.first_node, found.node, found.seed) == ("a", "b", 3)


def test_leads_name_every_plugin_that_differs_the_decisive_one_first() -> None:
    found = moved_pod(0, placed("a"), placed("b"), THERE, HERE, first_name="base")
    assert [(lead.plugin, lead.here, lead.there) for lead in found.leads] == [
        ("Fit", 50, -20),
        ("Spread", 1, 2),
    ]


@pytest.mark.parametrize(
    ("first", "other", "reason", "text"),
    [
        (placed("a"), placed("", "Insufficient cpu"), "Pending", "Insufficient cpu"),
        (placed("", "no nodes"), placed("b"), "Placed", "no nodes"),
    ],
)
def test_a_pod_that_is_placed_in_one_of_both(
    first: PodPlacement, other: PodPlacement, reason: str, text: str
) -> None:
    found = moved_pod(0, first, other, None, None, first_name="base")
    assert (found.reason, found.text) == (reason, text)


def test_only_pods_of_both_runs_are_compared() -> None:
    first = {name: placed("a", pod=name) for name in ("same", "moved", "gone")}
    other = {"moved": placed("b", pod="x"), "same": placed("a"), "new": placed("a")}
    assert [(one.pod, two.pod) for one, two in different(first, other)] == [("moved", "x")]


def test_pods_with_random_names_are_paired_in_their_order() -> None:
    def row(name: str, node: str, stem: str = "", namespace: str = "ns") -> PodRow:
        return PodRow(
            namespace=namespace,
            name=name,
            generate_name=stem,
            outcome="Running",
            node=node,
            created_s=0.0,
        )

    first = [
        row("job-1-x7k2f", "a", "job-1-"),
        row("db-0", "a"),
        row("job-1-bbbbb", "b", "job-1-"),
        row("job-2-ccccc", "c", "job-2-"),
    ]
    other = [
        row("job-2-zzzzz", "c", "job-2-"),
        row("job-1-qqqqq", "a", "job-1-", namespace="others"),
        row("job-1-bbbbb", "a", "job-1-"),
        row("job-1-vvvvv", "c", "job-1-"),
        row("job-1-wwwww", "c", "job-1-"),
        row("db-0", "b"),
    ]
    found = different(placements_of(first), placements_of(other))
    assert [(one.pod, one.node, two.pod, two.node) for one, two in found] == [
        ("ns/db-0", "a", "ns/db-0", "b"),
        ("ns/job-1-bbbbb", "b", "ns/job-1-vvvvv", "c"),
    ]
    missing = placements_of(other).keys() - placements_of(first).keys()
    assert missing == {"others/job-1-#1", "ns/job-1-#3"}


def test_reasons_are_counted_the_most_frequent_first() -> None:
    def moved(reason: str, plugin: str = "") -> MovedPod:
        return MovedPod(seed=0, pod="p", first_node="a", node="b", reason=reason, plugin=plugin)  # pyright: ignore[reportArgumentType]

    found = reason_counts([moved("Tie"), moved("Score", "Fit"), moved("Score", "Fit")])
    assert found == [
        ReasonCount(reason="Score", plugin="Fit", pods=2),
        ReasonCount(reason="Tie", plugin="", pods=1),
    ]
