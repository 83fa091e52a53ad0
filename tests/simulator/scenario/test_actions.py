"""Every action of a scenario shows its effect in the result."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from kubestow.api.meta import JsonObject
from kubestow.errors import InputError
from kubestow.simulator.reports.figures import figures_of
from kubestow.simulator.results import RunResult
from kubestow.simulator.scenario.reading import read_scenario

Play = Callable[..., RunResult]
Write = Callable[..., Path]


def pod_template(cpu: str = "1", **spec: Any) -> JsonObject:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    return {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [container], **spec}}


def workload(kind: str = "Deployment", **spec: Any) -> JsonObject:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": pod_template()["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }


def outcomes(result: RunResult) -> Counter[str]:
    return Counter(pod.outcome for pod in result.pods)


def kinds(result: RunResult) -> list[str]:
    return [change.kind for change in result.changes]


def nodes_of(result: RunResult, outcome: str) -> set[str]:
    return {pod.node for pod in result.pods if pod.outcome == outcome}


def arrival(**fields: Any) -> list[JsonObject]:
    return [{"name": "batch", "template": pod_template(), **fields}]


def test_a_cordoned_node_gets_no_pods_until_it_is_open_again(play: Play) -> None:
    actions = [{"at": "1m", "cordon": "node-0"}, {"at": "20m", "uncordon": "node-0"}]
    result = play(actions=actions, arrivals=arrival(at="10m", replicas=3))
    assert nodes_of(result, "Running") == {"node-1"}
    assert kinds(result) == ["cordon", "uncordon"]
    result = play(actions=actions, arrivals=arrival(at="30m", replicas=3))
    assert nodes_of(result, "Running") == {"node-0", "node-1"}


def test_a_drained_node_loses_its_pods_and_opens_again(play: Play) -> None:
    objects = [workload(replicas=4)]
    actions = [{"at": "10m", "drain": "node-0", "for": "5m"}]
    result = play(objects=objects, actions=actions)
    assert outcomes(result) == {"Running": 4, "Evicted": 2}
    assert nodes_of(result, "Evicted") == {"node-0"}
    assert nodes_of(result, "Running") == {"node-1"}
    assert kinds(result) == ["drain", "eviction", "eviction", "uncordon"]


def test_a_drain_waits_for_the_budget(play: Play) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"minAvailable": 3, "selector": {"matchLabels": {"app": "web"}}},
    }
    actions = [{"at": "10m", "drain": "node-0"}]
    result = play(objects=[workload(replicas=4), budget], actions=actions)
    evictions = [change.time_s for change in result.changes if change.kind == "eviction"]
    # The second pod follows when a replacement of the first runs.
    assert evictions == [600.0, 605.0]
    assert outcomes(result) == {"Running": 4, "Evicted": 2}


def test_a_daemon_stays_on_a_drained_node(play: Play) -> None:
    actions = [{"at": "10m", "drain": "node-0"}]
    result = play(objects=[workload("DaemonSet")], actions=actions)
    assert outcomes(result) == {"Running": 2}


def test_a_failed_node_loses_its_pods_after_a_while(play: Play) -> None:
    actions = [{"at": "10m", "fail": "node-0"}, {"at": "30m", "repair": "node-0"}]
    result = play(objects=[workload(replicas=2)], actions=actions)
    assert kinds(result) == ["fail", "node not ready", "eviction", "repair", "node ready"]
    times = {change.kind: change.time_s for change in result.changes}
    # 40 s are tolerated plus 10 s between checks; then pods stay for five minutes.
    assert 650 <= times["node not ready"] <= 660
    assert times["eviction"] == pytest.approx(times["node not ready"] + 300, abs=15)
    assert outcomes(result) == {"Running": 2, "Evicted": 1}
    assert nodes_of(result, "Running") == {"node-1"}


def test_a_short_failure_has_no_effect(play: Play) -> None:
    actions = [{"at": "10m", "fail": "node-0", "for": "30s"}]
    result = play(objects=[workload(replicas=2)], actions=actions)
    assert kinds(result) == ["fail", "repair"]
    assert outcomes(result) == {"Running": 2}


def test_nodes_fail_at_random_and_are_repaired(play: Play) -> None:
    actions = [{"name": "failures", "poisson": "6/h", "fail": {"random": 1}, "for": "1m"}]
    result = play(actions=actions)
    failed = [change.subject for change in result.changes if change.kind == "fail"]
    assert set(failed) == {"node-0", "node-1"}
    repaired = [change for change in result.changes if change.kind == "repair"]
    assert len(failed) - len(repaired) in (0, 1)


def test_pods_of_a_node_that_leaves_are_made_again(play: Play) -> None:
    result = play(objects=[workload(replicas=2)], actions=[{"at": "10m", "leave": "node-0"}])
    assert nodes_of(result, "Evicted") == {"node-0"}
    assert nodes_of(result, "Running") == {"node-1"}
    left = [(node.name, node.left_s) for node in result.nodes if node.left_s is not None]
    assert left == [("node-0", 600.0)]
    assert [sample.nodes for sample in result.samples][::6] == [2, 1, 1]


def test_nodes_join(play: Play) -> None:
    join = {"name": "more", "count": 2, "capacity": {"cpu": 8}, "labels": {"pool": "big"}}
    result = play(
        poolLabel="pool",
        arrivals=[{"name": "big", "at": "1m", "template": pod_template("6")}],
        actions=[{"at": "10m", "join": join}],
    )
    (pod,) = result.pods
    assert pod.outcome == "Running"
    assert pod.scheduled_s == pytest.approx(600, abs=2)
    joined = {node.name: (node.pool, node.joined_s) for node in result.nodes}
    assert joined["more-1"] == ("big", 600.0)


def test_a_taint_keeps_pods_away_and_evicts(play: Play) -> None:
    taint = {"nodes": {"selector": "kubernetes.io/hostname=node-0"}, "taints": ["a=b:NoExecute"]}
    actions = [{"at": "10m", "taint": taint, "for": "10m"}]
    result = play(objects=[workload(replicas=4)], actions=actions, arrivals=arrival(at="30m"))
    assert nodes_of(result, "Evicted") == {"node-0"}
    assert [pod.node for pod in result.pods if pod.owner == "batch"] == ["node-0"]
    assert kinds(result)[0] == "taint"
    assert kinds(result)[-1] == "untaint"


def test_an_untaint_removes_what_was_there(play: Play) -> None:
    nodes = [{"name": "only", "capacity": {"cpu": 4}, "taints": ["closed:NoSchedule"]}]
    change = {"nodes": "only", "taints": ["closed:NoSchedule"]}
    actions = [{"at": "10m", "untaint": change}]
    result = play(nodes=nodes, arrivals=arrival(at=0), actions=actions)
    assert [pod.scheduled_s for pod in result.pods] == [pytest.approx(600, abs=2)]


def test_scaling_up_and_down(play: Play) -> None:
    actions = [
        {"at": "10m", "scale": {"kind": "Deployment", "name": "web", "replicas": 5}},
        {"at": "20m", "scale": {"kind": "Deployment", "name": "web", "replicas": 1}},
    ]
    result = play(objects=[workload(replicas=2)], actions=actions, sampleEvery="5m")
    # Pods take a while to end.
    assert [sample.running for sample in result.samples] == [2, 2, 5, 5, 5, *[1] * 8]
    assert outcomes(result) == {"Running": 1, "Ended": 4}
    assert {pod.owner for pod in result.pods} == {"Deployment/web"}
    assert [change.detail for change in result.changes] == ["2 to 5", "5 to 1"]


def test_objects_are_applied_and_deleted(play: Play) -> None:
    web = workload(replicas=2)
    actions = [
        {"at": "5m", "apply": [web]},
        {"at": "10m", "apply": [{**web, "spec": {**web["spec"], "replicas": 3}}]},
        {"at": "20m", "delete": {"kind": "Deployment", "name": "web"}},
    ]
    result = play(actions=actions)
    assert [sample.running for sample in result.samples] == [0, 2, 3, 3, 3, *[0] * 8]
    assert kinds(result) == ["apply", "apply", "delete"]


def test_a_manifest_that_was_read_from_a_cluster_is_applied(play: Play) -> None:
    web = workload(replicas=2)
    read = {**web["metadata"], "resourceVersion": "77", "uid": "u", "generation": 3}
    again = {**web, "metadata": read, "spec": {**web["spec"], "replicas": 3}}
    result = play(actions=[{"at": "5m", "apply": [web]}, {"at": "10m", "apply": [again]}])
    assert [sample.running for sample in result.samples][:4] == [0, 2, 3, 3]


def test_a_cron_job_makes_jobs(play: Play) -> None:
    job = {"template": {"spec": pod_template(restartPolicy="Never")["spec"]}}
    cron = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "report"},
        "spec": {"schedule": "*/10 * * * *", "jobTemplate": {"spec": job}},
    }
    result = play(start="2026-03-01T08:05:00Z", objects=[cron])
    assert [pod.owner for pod in result.pods] == ["CronJob/report"] * 6
    assert [round(pod.created_s) for pod in result.pods] == [300 + 600 * i for i in range(6)]
    assert outcomes(result) == {"Ended": 6}


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ({"cordon": "node-7"}, 'actions[0].cordon: after 60 s: there is no node "node-7" then'),
        (
            {"drain": {"selector": "pool=gpu"}},
            "actions[0].drain: after 60 s: no node has the labels pool=gpu then",
        ),
        (
            {"scale": {"kind": "Deployment", "name": "wbe", "replicas": 3}},
            'after 60 s: there is no Deployment "wbe" in namespace "default" then; did you mean',
        ),
        (
            {"delete": {"kind": "Deploymnt", "name": "web"}},
            'there is no kind "Deploymnt"; did you mean "Deployment"?',
        ),
    ],
)
def test_what_is_not_there_is_named_with_its_place(
    play: Play, tmp_path: Path, action: JsonObject, message: str
) -> None:
    with pytest.raises(InputError) as error:
        play(objects=[workload(replicas=1)], actions=[{"at": "1m", **action}])
    assert str(error.value).startswith(f"{tmp_path}/scenario.yaml, line ")
    assert message in str(error.value)


POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- {name: p, plugins: {balance: {enabled: [RemoveDuplicates]}}}
"""
# Both pods are on node-1.
CROWDED: list[JsonObject] = [
    {"at": "0s", "cordon": "node-0", "for": "5m"},
    {"at": "1m", "apply": [workload(replicas=2)]},
]


def test_a_policy_of_the_descheduler_runs(play: Play, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    run = {"name": "clean", "every": "5m", "from": "10m", "count": 3}
    policies = [{**run, "descheduler": str(tmp_path / "policy.yaml")}]
    result = play(actions=CROWDED + policies)
    runs = [change.detail for change in result.changes if change.kind == "descheduler"]
    assert runs == ["1 eviction", "0 evictions", "0 evictions"]
    assert nodes_of(result, "Running") == {"node-0", "node-1"}


def test_a_plan_is_carried_out(play: Play) -> None:
    balanced: JsonObject = {"at": "10m", "rebalance": "balance"}
    result = play(actions=[*CROWDED, balanced])
    assert nodes_of(result, "Running") == {"node-0", "node-1"}
    emptied: JsonObject = {"at": "20m", "rebalance": {"goal": "empty-nodes", "maxMoves": 3}}
    result = play(actions=[*CROWDED, balanced, emptied])
    assert len(nodes_of(result, "Running")) == 1
    plans = [change.detail for change in result.changes if change.kind == "rebalance"]
    assert plans[1] == "1 move, 2 to 1"


def test_samples_have_figures_of_goals(play: Play) -> None:
    """Those of plans, and those that are listed; each as it is at that time."""
    balanced: JsonObject = {"at": "10m", "rebalance": "balance"}
    goals = ["empty-nodes", "defragment=x.y/z"]
    result = play(actions=[*CROWDED, balanced], goals=goals, sampleEvery="5m")
    samples = {sample.time_s: sample.goals for sample in result.samples}
    assert all(set(each) == {"balance", "empty-nodes"} for each in samples.values())
    assert samples[300]["empty-nodes"] == 1
    assert samples[300]["balance"] > samples[1200]["balance"] == 0
    assert samples[1200]["empty-nodes"] == 2
    means = figures_of(result).goals
    assert means == {
        goal: pytest.approx(
            sum(each[goal] for time_s, each in samples.items() if time_s < 3600) / 12, abs=1e-6
        )
        for goal in ("balance", "empty-nodes")
    }


def test_without_goals_samples_have_no_figures(play: Play) -> None:
    result = play(actions=CROWDED)
    assert all(sample.goals is UNSET for sample in result.samples)
    assert figures_of(result).goals is UNSET


def test_an_unknown_goal_is_named_with_its_place(play: Play) -> None:
    with pytest.raises(InputError, match=r"goals\[1\]: there is no goal"):
        play(goals=["spread", "sprad"])


def test_actions_are_left_out(write: Write, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    path = write(
        actions=[
            *CROWDED,
            {"name": "plan", "at": "10m", "rebalance": "balance"},
            {"at": "20m", "descheduler": "policy.yaml"},
        ]
    )
    assert len(read_scenario(path).steps) == 4
    assert len(read_scenario(path, ["plan"]).steps) == 3
    scenario = read_scenario(path, ["rebalance", "descheduler"])
    assert len(scenario.steps) == 2
    assert scenario.goals == ["balance"]
    with pytest.raises(InputError, match=r'line [0-9]+: actions: there is no action "drain"'):
        read_scenario(path, ["drain"])


@pytest.mark.parametrize(
    ("action", "message"),
    [
        pytest.param({"rebalance": "blance"}, "blance", id="goal"),
        pytest.param({"rebalance": {"goal": "spread", "maxMoves": 0}}, "maxMoves", id="moves"),
        pytest.param({"descheduler": "none.yaml"}, "none.yaml", id="no file"),
    ],
)
def test_what_cannot_be_rebalanced_is_an_error(
    play: Play, action: JsonObject, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        play(actions=[{"at": "1m", **action}])
