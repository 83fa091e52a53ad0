"""Measurements in virtual time: at intervals, late, and not of silent nodes."""

from pathlib import Path

import pytest
import yaml

from kubestow.config.defaults import complete_config
from kubestow.config.profile import PluginRef, Plugins, PluginSet, ProfileConfig
from kubestow.config.scheduler import SchedulerConfig
from kubestow.framework.handle import Handle
from kubestow.plugin import Node, NodeScore, Pod
from kubestow.plugins.registry import REGISTRY
from kubestow.simulator.scenario.reading import read_scenario
from kubestow.simulator.scenario.run import run_scenario
from kubestow.simulator.usage.measuring import MetricsServer
from kubestow.simulator.usage.plan import UsagePlan

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "spec": {"containers": [{"name": "a", "image": "x", "resources": {"requests": {"cpu": "1"}}}]},
}
Seen = list[tuple[float, float, int]]


def test_schedulers_read_measurements_at_intervals_and_late(tmp_path: Path) -> None:
    """A pod that uses 2 cores runs from second 1 on. It is tried every 10 s what can be read."""
    seen: Seen = []

    class Watching(NodeScore):
        name = "Watching"

        def __init__(self, args: object, handle: Handle) -> None:
            self._handle = handle

        def score_node(self, pod: Pod, node: Node) -> int:
            usage, now_ns = self._handle.usage, self._handle.clock.now_ns()
            assert usage is not None
            slot = int(usage.slots_of([node.metadata.name])[0])
            if slot >= 0 and node.metadata.name == "node-0":
                nodes = usage.nodes
                age_s = (now_ns - int(nodes.time_ns[slot])) / 1e9
                seen.append((self._handle.clock.monotonic_s(), age_s, int(nodes.latest[0, slot])))
            return 0

    document = {
        "name": "t",
        "until": "5m",
        "nodes": [{"name": "node", "count": 2}],
        "arrivals": [
            {"name": "web", "at": 0, "template": {**POD, "metadata": {"name": "web"}}},
            {"name": "probe", "every": "10s", "from": "5s", "duration": "1s", "template": POD},
        ],
        "actions": [{"at": "190s", "fail": "node-0"}],
        "usage": {
            "every": "15s",
            "metrics": {"every": "60s", "delay": "20s"},
            "curves": [{"pods": "web", "cpu": 2}, {"cpu": 0}],
        },
    }
    document["objects"] = []
    path = tmp_path / "scenario.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    profile = ProfileConfig(plugins=Plugins(score=PluginSet(enabled=(PluginRef("Watching", 1),))))
    config = complete_config(SchedulerConfig(profiles=(profile,)))
    run_scenario(read_scenario(path), config, {**REGISTRY, "Watching": Watching})
    times = [time_s for time_s, _, _ in seen]
    assert min(times) == pytest.approx(85, abs=1)  # measured at 60, to be read from 80 on
    ages = {round(time_s): age_s for time_s, age_s, _ in seen}
    assert ages[85] == pytest.approx(25, abs=0.1)
    assert ages[135] == pytest.approx(75, abs=0.1)
    assert ages[145] == pytest.approx(25, abs=0.1)
    assert all(0 <= milli <= 2000 for _, _, milli in seen)
    # The node was silent at 240: what was measured at 180 gets older.
    assert all(age_s >= 80 for time_s, age_s, _ in seen if time_s > 265)


def test_single_pods_are_measured_for_the_plugin_that_reads_them() -> None:
    server = MetricsServer(UsagePlan())
    server.serve(complete_config(SchedulerConfig()))
    assert not server.has_pods
    enabled = PluginSet(enabled=(PluginRef("LoadAware"),))
    profile = ProfileConfig(plugins=Plugins(multi_point=enabled))
    server.serve(SchedulerConfig(profiles=(profile,)))
    assert server.has_pods
