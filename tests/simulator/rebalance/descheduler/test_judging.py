"""What a policy of the descheduler comes to: who goes, where to, and how often."""

from typing import Any

import pytest
from tests.simulator.rebalance.rebalance_clusters import (
    HOSTNAME,
    Raw,
    apart,
    budget,
    documents,
    node,
    owner,
    pod,
)

from kubestow.errors import ConfigError
from kubestow.simulator.rebalance import make_plan, read_goal
from kubestow.simulator.rebalance.descheduler.judgement import JudgedEviction, PolicyJudgement
from kubestow.simulator.rebalance.descheduler.judging import judge_policy
from kubestow.simulator.rebalance.descheduler.policy import read_policy
from kubestow.simulator.rebalance.options import RebalanceOptions
from kubestow.testing import ManualClock

SPREAD = "RemovePodsViolatingTopologySpreadConstraint"


def policy(plugin: str, args: Raw | None = None, evictor: Raw | None = None, **limits: Any) -> Raw:
    point = "balance" if plugin in BALANCING else "deschedule"
    configs = [{"name": "DefaultEvictor", "args": evictor or {}}]
    configs.append({"name": plugin, "args": args or {}})
    return {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "profiles": [
            {"name": "p", "pluginConfig": configs, "plugins": {point: {"enabled": [plugin]}}}
        ],
        **limits,
    }


BALANCING = ("LowNodeUtilization", "HighNodeUtilization", "RemoveDuplicates", SPREAD)


def judged(written: Raw, *cluster: Raw, rounds: int = 5) -> PolicyJudgement:
    clock = ManualClock(now_s=1_800_000_000)
    return judge_policy(documents(*cluster), read_policy(written), rounds=rounds, clock=clock)


def evictions(judgement: PolicyJudgement, number: int = 0) -> list[tuple[str, str, str]]:
    rounds = judgement.rounds
    found: tuple[JudgedEviction, ...] = rounds[number].evictions if len(rounds) > number else ()
    return [(each.pod.partition("/")[2], each.outcome, each.to_node) for each in found]


def test_low_utilization_moves_from_full_to_empty_nodes() -> None:
    pods = [pod(f"web-{number}", "a") for number in range(4)]
    args = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}}
    cluster = node("a"), node("b"), owner("web", 4), *pods
    found = judged(policy("LowNodeUtilization", args), *cluster)
    assert evictions(found) == [("web-0", "moved", "b"), ("web-1", "moved", "b")]
    assert found.settles_after == 1


def test_a_pod_that_only_its_node_takes_returns_in_every_round() -> None:
    # The most common complaint: the policy does not know where the scheduler places pods.
    ssd = {"nodeSelector": {"disk": "ssd"}}
    pods = [pod(f"web-{number}", "a", **ssd) for number in range(3)]
    cluster = node("a", labels={"disk": "ssd"}), node("b"), owner("web", 3), *pods
    args = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}}
    found = judged(policy("LowNodeUtilization", args), *cluster, rounds=4)
    assert found.settles_after is None
    assert [each.count("returned") for each in found.rounds] == [1, 1, 1, 1]
    assert found.count("moved") == 0
    with_fit = judged(policy("LowNodeUtilization", args, {"nodeFit": True}), *cluster)
    assert with_fit.eviction_count == 0
    plan = make_plan(documents(*cluster), read_goal("balance"), RebalanceOptions())
    assert plan.moves == 0


def test_duplicates_that_a_preference_brings_back_loop() -> None:
    # The pods prefer the node that they share: each eviction is in vain.
    preferred = {
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 100,
                        "preference": {
                            "matchExpressions": [
                                {"key": "pool", "operator": "In", "values": ["best"]}
                            ]
                        },
                    }
                ]
            }
        }
    }
    pods = [pod(f"web-{number}", "a", cpu="100m", **preferred) for number in range(2)]
    cluster = node("a", labels={"pool": "best"}), node("b"), owner("web", 2), *pods
    found = judged(policy("RemoveDuplicates"), *cluster, rounds=3)
    assert [each.count("returned") for each in found.rounds] == [1, 1, 1]
    assert found.settles_after is None


def test_duplicates_are_spread() -> None:
    pods = [pod(f"web-{number}", "a") for number in range(3)]
    found = judged(policy("RemoveDuplicates"), node("a"), node("b"), owner("web", 3), *pods)
    assert [outcome for _, outcome, _ in evictions(found)] == ["moved"]


def test_high_utilization_needs_a_scheduler_that_packs() -> None:
    # The scheduler prefers empty nodes, so what is evicted comes back to one of them.
    pods = [pod("web-0", "a"), pod("db-0", "b")] + [pod(f"mail-{each}", "c") for each in range(3)]
    owners = owner("web", 1), owner("db", 1), owner("mail", 3)
    cluster = node("a"), node("b"), node("c"), *owners, *pods
    found = judged(policy("HighNodeUtilization", {"thresholds": {"cpu": 30}}), *cluster, rounds=3)
    assert [each.count("returned") for each in found.rounds] == [1, 1, 1]
    assert found.settles_after is None


def test_topology_spread() -> None:
    spread = {"topologySpreadConstraints": apart("web")}
    pods = [pod(f"web-{number}", "a", cpu="500m", **spread) for number in range(4)]
    args = {"constraints": ["ScheduleAnyway", "DoNotSchedule"]}
    found = judged(policy(SPREAD, args), node("a"), node("b"), owner("web", 4), *pods)
    assert [outcome for _, outcome, _ in evictions(found)] == ["moved", "moved"]
    assert found.settles_after == 1


def test_node_affinity_and_taints() -> None:
    required = {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": ["b"]}]}
                    ]
                }
            }
        }
    }
    args = {"nodeAffinityType": ["requiredDuringSchedulingIgnoredDuringExecution"]}
    cluster = node("a"), node("b"), owner("web", 1), pod("web-0", "a", **required)
    found = judged(policy("RemovePodsViolatingNodeAffinity", args), *cluster)
    assert evictions(found) == [("web-0", "moved", "b")]
    tainted = node("a", taints=[{"key": "k", "effect": "NoSchedule"}])
    cluster = tainted, node("b"), owner("web", 1), pod("web-0", "a")
    found = judged(policy("RemovePodsViolatingNodeTaints"), *cluster)
    assert evictions(found) == [("web-0", "moved", "b")]
    excluded = policy("RemovePodsViolatingNodeTaints", {"excludedTaints": ["k"]})
    assert judged(excluded, *cluster).eviction_count == 0


def test_anti_affinity_evicts_one_of_two() -> None:
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}}
    rules = {
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    }
    pods = [pod(f"web-{number}", "a", **rules) for number in range(2)]
    cluster = node("a"), node("b"), owner("web", 2), *pods
    found = judged(policy("RemovePodsViolatingInterPodAntiAffinity"), *cluster)
    assert evictions(found) == [("web-0", "moved", "b")]
    assert found.settles_after == 1


def test_a_pod_that_fits_nowhere_waits() -> None:
    tainted = node("a", taints=[{"key": "k", "effect": "NoSchedule"}])
    cluster = tainted, node("b", cpu="1"), owner("web", 1), pod("web-0", "a", "3")
    found = judged(policy("RemovePodsViolatingNodeTaints"), *cluster)
    assert evictions(found) == [("web-0", "waits", "")]
    assert "Insufficient cpu" in found.rounds[0].evictions[0].message


def test_age_and_restarts() -> None:
    old, young, shaky = pod("web-0", "a"), pod("web-1", "a"), pod("web-2", "a")
    old["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
    young["metadata"]["creationTimestamp"] = "2027-01-15T07:59:00Z"
    shaky["status"]["containerStatuses"] = [{"name": "c", "restartCount": 9}]
    cluster = node("a"), node("b"), owner("web", 3), old, young, shaky
    found = judged(policy("PodLifeTime", {"maxPodLifeTimeSeconds": 3600}), *cluster, rounds=1)
    assert [name for name, _, _ in evictions(found)] == ["web-0"]
    often = policy("RemovePodsHavingTooManyRestarts", {"podRestartThreshold": 5})
    assert [name for name, _, _ in evictions(judged(often, *cluster))] == ["web-2"]


def test_failed_pods_are_counted() -> None:
    failed = pod("web-0", "a")
    failed["status"] = {"phase": "Failed", "reason": "Evicted"}
    found = judged(policy("RemoveFailedPods"), node("a"), owner("web", 1), failed)
    assert [each.failed for each in found.rounds] == [1]
    assert found.settles_after == 1


@pytest.mark.parametrize(
    ("limits", "count"),
    [
        pytest.param({"maxNoOfPodsToEvictTotal": 1}, 1, id="in all"),
        pytest.param({"maxNoOfPodsToEvictPerNode": 2}, 2, id="per node"),
        pytest.param({"maxNoOfPodsToEvictPerNamespace": 0}, 0, id="per namespace"),
        pytest.param({"nodeSelector": "pool=none"}, 0, id="no node"),
    ],
)
def test_limits_of_a_round(limits: Raw, count: int) -> None:
    tainted = node("a", taints=[{"key": "k", "effect": "NoSchedule"}])
    pods = [pod(f"web-{number}", "a") for number in range(3)]
    cluster = tainted, node("b"), owner("web", 3), *pods
    found = judged(policy("RemovePodsViolatingNodeTaints", **limits), *cluster, rounds=1)
    assert found.eviction_count == count


def test_budgets_refuse() -> None:
    tainted = node("a", taints=[{"key": "k", "effect": "NoSchedule"}])
    pods = [pod(f"web-{number}", "a") for number in range(3)]
    cluster = tainted, node("b"), owner("web", 3), budget("web", minAvailable=2), *pods
    found = judged(policy("RemovePodsViolatingNodeTaints"), *cluster, rounds=1)
    assert found.eviction_count == 1
    assert found.rounds[0].refused == 2


@pytest.mark.parametrize(
    ("evictor", "count"),
    [
        pytest.param({}, 1, id="default"),
        pytest.param({"labelSelector": {"matchLabels": {"app": "db"}}}, 0, id="labels"),
        pytest.param({"priorityThreshold": {"value": 0}}, 0, id="priority"),
        pytest.param({"minReplicas": 2}, 0, id="replicas"),
        pytest.param({"ignorePodsWithoutPDB": True}, 0, id="without a budget"),
        pytest.param({"podProtections": {"extraEnabled": ["PodsWithoutPDB"]}}, 0, id="protected"),
    ],
)
def test_filters_of_the_evictor(evictor: Raw, count: int) -> None:
    tainted = node("a", taints=[{"key": "k", "effect": "NoSchedule"}])
    cluster = tainted, node("b"), owner("web", 1), pod("web-0", "a")
    found = judged(policy("RemovePodsViolatingNodeTaints", None, evictor), *cluster, rounds=1)
    assert found.eviction_count == count


def test_pods_without_an_owner_and_of_daemons_stay() -> None:
    tainted = node("a", taints=[{"key": "k", "effect": "NoSchedule"}])
    pods = pod("bare-0", "a", kind=""), pod("log-0", "a", kind="DaemonSet")
    found = judged(policy("RemovePodsViolatingNodeTaints"), tainted, node("b"), *pods)
    assert found.eviction_count == 0


def test_unknown_plugins_are_named() -> None:
    written = policy("RemoveDuplicates")
    written["profiles"][0]["plugins"]["deschedule"] = {"enabled": ["OurOwn"]}
    assert read_policy(written).notes == ("not judged: the plugin OurOwn",)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        pytest.param([], "expected one DeschedulerPolicy", id="no object"),
        pytest.param(
            {"apiVersion": "descheduler/v1alpha1", "kind": "DeschedulerPolicy"},
            'it is "descheduler/v1alpha1 DeschedulerPolicy", expected descheduler/v1alpha2',
            id="older",
        ),
        pytest.param(
            {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy"},
            "it has no profiles",
            id="empty",
        ),
        pytest.param(
            policy("LowNodeUtilization", {"treshholds": {}}),
            'LowNodeUtilization: unknown field "treshholds"',
            id="unknown field",
        ),
        pytest.param(
            policy("PodLifeTime", {"maxPodLifeTimeSeconds": "soon"}), "PodLifeTime", id="wrong type"
        ),
    ],
)
def test_wrong_policies(written: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_policy(written)
