"""The day that `kubestow bench day` plays fits its cluster, and its parts are told apart."""

import sys
from importlib import import_module
from itertools import takewhile
from typing import Any

import msgspec
import pytest

from kubestow.api.quantity import parse_quantity
from kubestow.config.defaults import complete_config
from kubestow.config.scheduler import SchedulerConfig
from kubestow.service.commands.bench import day as bench_day
from kubestow.service.formats import TimesFormat
from kubestow.simulator.bench.day import DAY_S, day_scenario
from kubestow.simulator.results import RunResult
from kubestow.simulator.scenario.run import run_scenario


@pytest.mark.parametrize(("nodes", "pods"), [(1_000, 20_000), (100, 10_000)])
def test_pods_would_use_four_fifths_of_the_cores(nodes: int, pods: int) -> None:
    core_seconds = count = 0.0
    for source in day_scenario(nodes=nodes, pods=pods).arrivals:
        for arrival in takewhile(lambda one: one.time_s < DAY_S, source(0)):
            (container,) = arrival.document["spec"]["containers"]
            cpu = parse_quantity(container["resources"]["requests"]["cpu"]).milli_value()
            core_seconds += cpu / 1000 * (arrival.duration_s or 0.0)
            count += 1
    assert count == pytest.approx(pods, rel=0.03)
    assert core_seconds / (nodes * 4 * DAY_S) == pytest.approx(0.8, rel=0.05)


@pytest.mark.parametrize("prefix", [prefix for prefix, _ in bench_day.PARTS])
def test_a_part_is_a_module_that_exists(prefix: str) -> None:
    import_module(prefix.removesuffix("."))


def part_in(*modules: str) -> str:
    """The part of a stack, from its innermost call outwards."""

    def call() -> str:
        return bench_day.part_of(sys._getframe())

    for module in modules:
        names: dict[str, Any] = {"__name__": module, "inner": call}
        exec("def call():\n    return inner()", names)
        call = names["call"]
    return call()


KUBELETS = "kubelets: pods start and end"


def test_the_outermost_part_of_a_stack_decides() -> None:
    kubelet = "kubestow.simulator.kubelets"
    assert part_in() == "event loop and others"
    assert part_in(kubelet) == KUBELETS
    assert part_in(kubelet, "elsewhere") == KUBELETS
    assert part_in(kubelet, "kubestow.engine.scheduler") == "decisions"


def test_what_a_write_calls_counts_as_itself() -> None:
    write = ("kubestow.apiserver.subscribers", "kubestow.apiserver.memory")
    binding, kubelet = "kubestow.engine.bind", "kubestow.simulator.kubelets"
    assert part_in("kubestow.apiserver.watch", *write, binding) == "bindings"
    assert part_in(kubelet, "kubestow.apiserver.watch", *write, binding) == KUBELETS
    timer = ("kubestow.simulator.virtual_time", kubelet, "kubestow.apiserver.watch")
    assert part_in(*timer, *write, binding) == KUBELETS
    collector = "kubestow.simulator.scenario.collector"
    assert part_in(collector, *write, kubelet) == "rows of the result"


def test_what_took_the_time_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def short(*, nodes: int, pods: int, on_progress: Any) -> RunResult:
        part = msgspec.structs.replace(day_scenario(nodes=nodes, pods=pods), until_s=1_200)
        config = complete_config(SchedulerConfig())
        return run_scenario(part, config, on_progress=on_progress)

    monkeypatch.setattr(bench_day, "run_day", short)
    bench_day.run_day_bench(nodes=20, pods=20_000, output=TimesFormat.JSON)
    times = msgspec.json.decode(capsys.readouterr().out, type=bench_day.DayTimes)
    assert times.nodes == 20
    assert times.pods == pytest.approx(278, rel=0.2)
    assert 0 < times.resident_mib_half <= times.peak_memory_mib
    assert sum(times.parts.values()) == pytest.approx(1, abs=0.01)
    bench_day.run_day_bench(nodes=2, pods=200, output="table")
    assert "SHARE   PART" in capsys.readouterr().out
