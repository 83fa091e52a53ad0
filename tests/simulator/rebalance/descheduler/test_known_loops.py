"""Loops that users of the descheduler reported: the policy never settles, a plan does.

The numbers are those of issues of kubernetes-sigs/descheduler.
"""

from typing import Any

import pytest
from tests.simulator.rebalance.descheduler.test_judging import judged, policy
from tests.simulator.rebalance.rebalance_clusters import (
    HOSTNAME,
    Raw,
    documents,
    node,
    owner,
    pod,
)

from kubestow.simulator.rebalance import RebalanceOptions, make_plan, read_goal

ROUNDS = 6
LOW = {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 50}}
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def one_on_each_node(anti_affinity: Raw) -> list[Raw]:
    """As many nodes as pods that keep apart; other pods fill the first node."""
    spec: Any = {"affinity": {"podAntiAffinity": anti_affinity}}
    return [
        *(node(name) for name in "abc"),
        owner("ingress", 3, cpu="500m"),
        *(pod(f"ingress-{name}", name, cpu="500m", **spec) for name in "abc"),
        *(pod(f"agent-{number}", "a", kind="") for number in range(3)),
    ]


TERM: Raw = {"labelSelector": {"matchLabels": {"app": "ingress"}}, "topologyKey": HOSTNAME}
MUST_BE_APART = one_on_each_node({REQUIRED: [TERM]})
SHOULD_BE_APART = one_on_each_node({PREFERRED: [{"weight": 100, "podAffinityTerm": TERM}]})

WANTS_SPOT: Any = {
    "affinity": {
        "nodeAffinity": {
            PREFERRED: [
                {
                    "weight": 100,
                    "preference": {
                        "matchExpressions": [{"key": "spot", "operator": "In", "values": ["yes"]}]
                    },
                }
            ]
        }
    }
}
# The preferred node is full; two others are alike.
NO_SPOT_LEFT = [
    node("spot", labels={"spot": "yes"}),
    node("a"),
    node("b"),
    pod("filler-1", "spot", cpu="4", kind=""),
    owner("web", 1, cpu="500m"),
    pod("web-1", "a", cpu="500m", **WANTS_SPOT),
]


@pytest.mark.parametrize(
    ("written", "cluster", "goal"),
    [
        pytest.param(policy("LowNodeUtilization", LOW), MUST_BE_APART, "balance", id="1279"),
        pytest.param(
            policy(
                "RemovePodsViolatingNodeAffinity",
                {"nodeAffinityType": [PREFERRED]},
                {"nodeFit": True},
            ),
            NO_SPOT_LEFT,
            "violations",
            id="1707",
        ),
        pytest.param(
            policy("LowNodeUtilization", LOW, {"nodeFit": True}),
            SHOULD_BE_APART,
            "balance",
            id="1920",
        ),
    ],
)
def test_the_policy_loops_and_a_plan_does_not(written: Raw, cluster: list[Raw], goal: str) -> None:
    found = judged(written, *cluster, rounds=ROUNDS)
    assert found.settles_after is None
    assert [len(each.evictions) for each in found.rounds] == [1] * ROUNDS
    plan = make_plan(documents(*cluster), read_goal(goal), RebalanceOptions())
    assert plan.moves == 0
