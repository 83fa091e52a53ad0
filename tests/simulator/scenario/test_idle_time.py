"""Virtual time in which nothing happens takes no work."""

import pytest

from kubestow.api.files import Document
from kubestow.config.scheduler import SchedulerConfig
from kubestow.simulator.node_shapes import NodeShape, node_document
from kubestow.simulator.scenario.run import run_scenario
from kubestow.simulator.scenario.scenario import Arrival, Scenario
from kubestow.simulator.virtual_time import VirtualTimeLoop

DAY_S = 86400.0


def test_idle_days_take_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 0
    jump = VirtualTimeLoop.nothing_is_ready

    def counted(loop: VirtualTimeLoop, timeout: float | None) -> None:
        nonlocal steps
        steps += 1
        jump(loop, timeout)

    monkeypatch.setattr(VirtualTimeLoop, "nothing_is_ready", counted)
    containers = [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {"containers": containers}}
    scenario = Scenario(
        name="idle",
        until_s=20 * DAY_S,
        documents=[Document(node_document("n", 0, NodeShape()), "n")],
        # Two fill the node, a third waits for a day.
        arrivals=[
            lambda seed: iter(
                Arrival(time_s, pod, DAY_S, "a") for time_s in (10.0, 10.0, 10.0, 10.0, 20.0)
            )
        ],
        sample_s=DAY_S,
    )
    run = run_scenario(scenario, SchedulerConfig())
    assert [row.outcome for row in run.pods] == ["Ended"] * 5
    assert run.pods[-1].scheduled_s == pytest.approx(10 + DAY_S, abs=12.0)
    # With a step each second there would be 1.7 million. A pod that waits is looked at every 30 s.
    assert steps < 20_000
