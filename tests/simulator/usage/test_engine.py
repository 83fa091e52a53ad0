"""Use in the course of a run: what nodes had, what was lost, who had to go."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from kubestow.config.defaults import complete_config
from kubestow.config.scheduler import SchedulerConfig
from kubestow.simulator.results import RunResult
from kubestow.simulator.scenario.reading import read_scenario
from kubestow.simulator.scenario.run import run_scenario
from kubestow.simulator.usage.results import RunUsage

CONFIG = complete_config(SchedulerConfig())
Play = Callable[..., RunResult]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Runs an hour of one node with 4 cores and 4Gi, with further fields."""

    def play(**fields: Any) -> RunResult:
        nodes = [{"name": "node", "count": 1, "capacity": {"cpu": 4, "memory": "4Gi"}}]
        kubelets = {"startDelay": 0}
        document = {"name": "t", "until": "1h", "nodes": nodes, "kubelets": kubelets, **fields}
        path = tmp_path / "scenario.yaml"
        path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
        return run_scenario(read_scenario(path), CONFIG)

    return play


def arrival(name: str, *, at: Any = 0, cpu: str = "1", memory: str = "1Gi", **more: Any) -> Any:
    resources = {"requests": {"cpu": cpu, "memory": memory}, **more.pop("resources", {})}
    container = {"name": "main", "image": "x", "resources": resources}
    spec = {"containers": [container], **more.pop("spec", {})}
    template = {"apiVersion": "v1", "kind": "Pod", "spec": spec}
    return {"name": name, "at": at, "template": template, **more}


def usage_of(result: RunResult) -> RunUsage:
    assert isinstance(result.usage, RunUsage)
    return result.usage


def test_use_holds_until_the_next_step(play: Play) -> None:
    """The pod runs from minute 30 on: half of the time half of the node is in use."""
    result = play(
        arrivals=[arrival("web", at="29m59s")],
        usage={"every": "1m", "curves": [{"pods": "web", "cpu": "200%", "memory": "1Gi"}]},
    )
    usage = usage_of(result)
    cpu, memory = usage.resources
    assert (cpu.mean_share, cpu.p50_share, cpu.max_share) == (0.25, 0.0, 0.5)
    assert (memory.mean_share, memory.p95_share) == (0.125, 0.25)
    assert (usage.demanded_cpu_s, usage.lost_cpu_s) == (3600.0, 0.0)
    assert cpu.hot_node_minutes == 0.0


def test_cpu_beyond_the_node_is_lost_by_weight(play: Play) -> None:
    result = play(
        arrivals=[arrival("web", cpu="1"), arrival("batch", cpu="3")],
        usage={"curves": [{"cpu": 3}]},
    )
    usage = usage_of(result)
    hour_s = 3600 - usage.every_s
    # 6 cores are asked for and 4 are there: batch has 3 of them, web the rest.
    assert usage.lost_cpu_s == pytest.approx(2 * hour_s)
    lost = {row.owner: row.lost_cpu_s for row in usage.owners}
    assert lost == {"web": pytest.approx(2 * hour_s), "batch": 0.0}
    assert usage.resources[0].hot_node_minutes == pytest.approx(hour_s / 60)
    assert usage.resources[0].max_share == 1.0
    assert usage.nodes[0].lost_cpu_s == usage.lost_cpu_s


def test_no_pod_uses_more_than_its_limit(play: Play) -> None:
    limits = {"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "500m"}}
    result = play(
        arrivals=[arrival("web", resources=limits)],
        usage={"curves": [{"cpu": 2, "memory": "2Gi"}]},
    )
    assert [row.max_share for row in usage_of(result).resources] == [0.125, 0.125]


def test_memory_beyond_the_node_evicts_by_the_rules_of_kubelets(play: Play) -> None:
    """The pod over its request goes, not the larger one within its request; the node is closed for
    new pods for at least five minutes."""
    result = play(
        arrivals=[
            arrival("db", memory="2Gi"),
            arrival("leak", memory="1Gi", cpu="100m"),
            arrival("late", at="31m", cpu="100m", memory="10Mi"),
        ],
        usage={
            "curves": [
                {"pods": "leak", "memory": {"daily": {"low": "1Gi", "high": "3Gi", "peakAt": "1h"}}}
            ]
        },
        start="2026-01-01T00:00:00Z",
        until="1h",
    )
    assert {row.name: row.outcome for row in result.pods if row.outcome == "Evicted"} == {
        "leak-1": "Evicted"
    }
    assert usage_of(result).memory_evictions == 1
    (eviction,) = [change for change in result.changes if change.kind == "eviction"]
    assert eviction.detail == "from node: TerminationByKubelet"


def test_a_node_without_memory_is_closed_until_five_minutes_later(play: Play) -> None:
    result = play(
        arrivals=[
            arrival("leak", memory="1Gi", duration="20m"),
            arrival("late", at="5m", cpu="100m", memory="10Mi"),
        ],
        usage={"curves": [{"pods": "leak", "memory": "5Gi"}]},
    )
    rows = {row.name: row for row in result.pods}
    assert rows["leak-1"].outcome == "Evicted"
    # Evicted at the first step that finds it; five minutes later the condition ends.
    assert rows["late-1"].scheduled_s == pytest.approx(rows["leak-1"].ended_s + 300, abs=31)
    assert rows["late-1"].outcome == "Running"


def test_critical_pods_stay(play: Play) -> None:
    spec = {"priorityClassName": "system-node-critical"}
    pods = arrival("agent", memory="1Gi", spec=spec)
    pods["template"]["metadata"] = {"namespace": "kube-system"}
    result = play(arrivals=[pods], usage={"curves": [{"memory": "5Gi"}]})
    assert usage_of(result).memory_evictions == 0
    assert result.pods[0].outcome == "Running"


def test_pods_that_no_curve_selects_use_what_they_request(play: Play) -> None:
    result = play(
        arrivals=[arrival("web"), arrival("batch")],
        usage={"curves": [{"pods": {"owner": "Deployment/other"}, "cpu": 3}]},
    )
    assert usage_of(result).resources[0].max_share == 0.5


def test_use_without_consequences_changes_nothing_else(play: Play) -> None:
    """A run with it has the bytes of one without, apart from what it says about use."""
    fields: dict[str, Any] = {
        "arrivals": [arrival("web", at=[0, "10m"], leaveAfter="20m"), arrival("batch", at="5m")]
    }
    plain = play(**fields)
    assert b'"usage"' not in msgspec.json.encode(plain)
    used = play(**fields, usage={"curves": [{"cpu": "50%", "spread": 0.3, "noise": "10%"}]})
    samples = [msgspec.structs.replace(sample, usage=msgspec.UNSET) for sample in used.samples]
    bare = msgspec.structs.replace(used, usage=msgspec.UNSET, samples=samples)
    assert msgspec.json.encode(bare) == msgspec.json.encode(plain)
    assert used.samples[-1].usage is not msgspec.UNSET


def test_random_use_follows_from_the_seed(play: Play) -> None:
    fields: dict[str, Any] = {
        "arrivals": [arrival("web", replicas=3)],
        "usage": {
            "curves": [
                {
                    "cpu": {"bursts": {"low": "10%", "high": "300%", "every": "10m", "for": "1m"}},
                    "spread": 0.5,
                    "noise": "20%",
                }
            ]
        },
    }
    first, again, other = play(**fields, seed=1), play(**fields, seed=1), play(**fields, seed=2)
    assert msgspec.json.encode(first) == msgspec.json.encode(again)
    assert usage_of(first).demanded_cpu_s != usage_of(other).demanded_cpu_s
