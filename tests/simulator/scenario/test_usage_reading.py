"""What a scenario says about use: every mistake is named with its place."""

from typing import Any

import pytest

from kubestow.errors import InputError
from kubestow.simulator.scenario.reading import read_scenario
from kubestow.simulator.usage.curves import Curve
from kubestow.simulator.usage.plan import Level

POD = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "a", "image": "x"}]}}
ARRIVALS = [{"name": "web", "at": 0, "template": POD}]


def test_all_parts_are_read(write: Any) -> None:
    peaks = {"low": "10%", "high": "250m", "every": "1h", "for": "5m", "group": "sale"}
    usage = {
        "every": "10s",
        "hot": 0.7,
        "evictionHard": "5%",
        "metrics": {"every": "15s", "delay": "20s"},
        "curves": [
            {"pods": "web", "cpu": {"peaks": peaks}, "memory": "1Gi", "noise": "5%"},
            {"pods": {"selector": "app=db"}, "cpu": {"daily": {"low": 0, "high": 2}}},
        ],
    }
    plan = read_scenario(write(arrivals=ARRIVALS, usage=usage)).usage
    assert plan is not None
    assert (plan.every_s, plan.hot_share, plan.threshold) == (10.0, 0.7, Level(share=0.05))
    assert (plan.metrics_every_s, plan.metrics_delay_s) == (15.0, 20.0)
    web, database = plan.entries
    assert web.cpu.low == Level(share=0.1)
    assert web.cpu.high == Level(amount=250)
    assert web.cpu.curve == Curve("peaks", 3600.0, 0.0, 300.0, "sale")
    assert (web.memory.low, web.noise) == (Level(amount=2**30), 0.05)
    assert database.cpu.curve == Curve("daily", 86400.0, 14 * 3600.0)


@pytest.mark.parametrize(
    ("usage", "problem"),
    [
        pytest.param({"curve": []}, 'usage.curve: unknown field; did you mean "curves"', id="near"),
        pytest.param(
            {"curves": [{"pods": "wep"}]},
            'curves[0].pods: is "wep": no entry of arrivals has this name; did you mean "web"',
            id="arrival",
        ),
        pytest.param(
            {"curves": [{"pods": "Deploymint/web"}]},
            'there is no kind "Deploymint"; did you mean "Deployment"',
            id="kind",
        ),
        pytest.param(
            {"curves": [{"cpu": "fast"}]},
            'curves[0].cpu: is "fast", expected a share such as 60%, or an amount such as 300m',
            id="level",
        ),
        pytest.param({"curves": [{"memory": "-1Gi"}]}, "an amount such as 2Gi", id="negative"),
        pytest.param(
            {"curves": [{"cpu": {"constant": 1, "daily": {"low": 0, "high": 1}}}]},
            "found constant and daily, expected one of constant, daily, bursts, peaks",
            id="two",
        ),
        pytest.param(
            {"curves": [{"cpu": {"bursts": {"low": 0, "high": 1, "every": "1m", "for": "2m"}}}]},
            "curves[0].cpu.bursts.for: is 2m, longer than every",
            id="longer",
        ),
        pytest.param({"hot": "180%"}, 'usage.hot: is "180%", expected a share', id="share"),
        pytest.param({"every": 0}, 'usage.every: is "0", expected more than 0', id="every"),
        pytest.param({"curves": [{"cpu": "900000%"}]}, "expected at most 100,000%", id="huge"),
    ],
)
def test_mistakes_are_named_with_their_place(write: Any, usage: Any, problem: str) -> None:
    with pytest.raises(InputError) as raised:
        read_scenario(write(arrivals=ARRIVALS, usage=usage))
    assert problem in str(raised.value)
    assert ", line " in str(raised.value)
