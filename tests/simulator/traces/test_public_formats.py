"""Traces of Alibaba (2018) and Azure (2019) with what was used, and measurements of one's own."""

from pathlib import Path

import numpy as np
import pytest
from tests.simulator.traces.made_traces import make_alibaba, make_azure

from kubestow.config.defaults import complete_config
from kubestow.config.scheduler import SchedulerConfig
from kubestow.errors import InputError
from kubestow.simulator.scenario.reading import read_scenario
from kubestow.simulator.scenario.run import run_scenario
from kubestow.simulator.traces.alibaba import MEMORY_OF_100, alibaba_use
from kubestow.simulator.traces.any_format import read_trace
from kubestow.simulator.traces.azure import azure_use, vm_name
from kubestow.simulator.traces.use_files import series_of
from kubestow.simulator.usage.results import RunUsage

CONFIG = complete_config(SchedulerConfig())


def test_alibaba_containers_are_pods_and_machines_nodes(tmp_path: Path) -> None:
    files = make_alibaba(tmp_path)
    scenario = read_trace("alibaba2018", pods=files.pods, nodes=files.nodes, usage=files.usage)
    assert [document.raw["metadata"]["name"] for document in scenario.documents] == [
        "m-0", "m-1", "m-2",
    ]  # fmt: skip
    capacity = scenario.documents[0].raw["status"]["capacity"]
    assert (capacity["cpu"], capacity["memory"]) == ("96", str(MEMORY_OF_100))
    first, second, *_ = scenario.arrivals[0](0)
    resources = first.document["spec"]["containers"][0]["resources"]
    assert resources["requests"] == {"cpu": "4000m", "memory": str(round(0.0156 * MEMORY_OF_100))}
    assert resources["limits"] == {"cpu": "8000m"}
    assert (first.owner, first.time_s, first.leaves_after_s) == ("app-0", 0.0, 3600.0)
    assert (second.owner, second.time_s, second.leaves_after_s) == ("app-1", 60.0, None)


def test_alibaba_use_is_a_share_of_requests(tmp_path: Path) -> None:
    files = make_alibaba(tmp_path)
    points = list(alibaba_use(files.usage))
    assert len(points) == 18
    lines = files.usage.read_text().splitlines()
    cells = lines[4].split(",")
    assert points[4] == ("default/c-1", 360.0, int(cells[3]) / 100, 0.81)
    result = run_scenario(
        read_trace("alibaba2018", pods=files.pods, nodes=files.nodes, usage=files.usage), CONFIG
    )
    assert isinstance(result.usage, RunUsage)
    assert {row.outcome for row in result.pods} == {"Running", "Ended"}
    mean = np.mean([point.cpu for point in points])
    # 4 cores each: what was asked for is about the mean use over the time that they ran.
    ran_s = sum((row.ended_s or 3660.0) - row.created_s for row in result.pods)
    assert result.usage.demanded_cpu_s == pytest.approx(4 * mean * ran_s, rel=0.35)


def test_azure_machines_are_pods_from_creation_to_deletion(tmp_path: Path) -> None:
    files = make_azure(tmp_path)
    scenario = read_trace("azure2019", pods=files.pods, nodes=files.nodes, usage=files.usage)
    arrivals = list(scenario.arrivals[0](0))
    requests = [
        each.document["spec"]["containers"][0]["resources"]["requests"] for each in arrivals
    ]
    assert requests[:3] == [
        {"cpu": "2", "memory": "4Gi"},
        {"cpu": "4", "memory": "8Gi"},
        {"cpu": "30", "memory": "70Gi"},
    ]
    assert [each.leaves_after_s for each in arrivals] == [3600.0] * 5
    assert arrivals[0].owner == arrivals[2].owner != arrivals[1].owner
    name = vm_name("zK1/x+AbC==")
    assert arrivals[1].document["metadata"]["name"] == name
    point = list(azure_use(files.usage))[4]
    assert (point.key, point.time_s) == (f"default/{name}", 300.0)
    assert 0 <= point.cpu <= 1
    assert np.isnan(point.memory)
    result = run_scenario(scenario, CONFIG)
    assert isinstance(result.usage, RunUsage)
    assert result.usage.demanded_cpu_s > 0
    assert {row.outcome for row in result.pods} == {"Ended"}


def test_a_scenario_names_a_trace(tmp_path: Path) -> None:
    """Its nodes, arrivals and use are added to those of the scenario."""
    make_azure(tmp_path)
    path = tmp_path / "scenario.yaml"
    path.write_text(
        """name: t
until: 1h
nodes: [{name: extra, count: 1}]
trace: {format: azure2019, pods: vmtable.csv, nodes: nodes.csv, usage: readings.csv}
usage: {hot: 50%}
"""
    )
    scenario = read_scenario(path)
    names = [document.raw["metadata"]["name"] for document in scenario.documents]
    assert names == ["extra", "host-1", "host-2"]
    assert len(list(scenario.arrivals[0](0))) == 5
    assert scenario.usage is not None
    assert scenario.usage.hot_share == 0.5
    assert scenario.usage.series is not None
    path.write_text("name: t\nuntil: 1h\ntrace: {pods: missing.csv, nodes: nodes.csv}\n")
    with pytest.raises(InputError, match=r'line 3: trace: cannot read ".*missing.csv"'):
        read_scenario(path)


def test_measurements_of_ones_own_may_have_dates(tmp_path: Path) -> None:
    path = tmp_path / "usage.csv"
    path.write_text(
        "time,namespace,pod,cpu,memory,window\n"
        "2026-01-01T00:01:00Z,shop,web,500m,1Gi,60\n"
        "2026-01-01T00:02:00Z,shop,web,2,2Gi,60\n"
    )
    series = series_of(path, "measurements", start_s=1767225600.0)
    number = np.array([series.number("shop/web")], np.intp)
    assert [float(series.at(time_s, number)[0][0]) for time_s in (0, 59, 60)] == [500, 500, 2000]
    path.write_text("time,node,cpu,memory\n0,n1,1,1Gi\n")
    with pytest.raises(InputError, match="has no measurements of pods"):
        series_of(path, "measurements", start_s=0.0)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("c_1,m_1,x,5,5\n", 'line 1, column time_stamp: is "x"'),
        ("c_1,m_1,0,much,5\n", 'line 1, column cpu_util_percent: is "much", expected a number of'),
        ("c_1,m_1,0,-3,5\n", "expected a number of percent"),
        ("c_1,m_1,,5,5\n", "column time_stamp: is empty, expected a time"),
        ("a,b\n1,2,3,4,5,6,7,8,9,10,11,12\n", "column container_id|column time_stamp"),
    ],
)
def test_mistakes_are_named_with_file_line_and_column(
    tmp_path: Path, text: str, problem: str
) -> None:
    path = tmp_path / "usage.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=problem):
        series_of(path, "alibaba2018", start_s=0.0)
