"""Plain CSV files of pods and nodes."""

from pathlib import Path

import pytest

from kubestow.config.scheduler import SchedulerConfig
from kubestow.errors import InputError
from kubestow.simulator.scenario.run import run_scenario
from kubestow.simulator.scenario.scenario import Arrival
from kubestow.simulator.traces.plain import plain_scenario

NODES = "name,count,cpu,memory,gpu,pods,zone,label.pool,example.com/fpga\n"
PODS = "name,namespace,owner,at,duration,cpu,memory,gpu,priority,count,example.com/fpga\n"


def scenario_of(tmp_path: Path, pods: str, nodes: str = f"{NODES}node,2,4,8Gi,,,,,\n"):
    pod_path, node_path = tmp_path / "pods.csv", tmp_path / "nodes.csv"
    pod_path.write_text(pods, encoding="utf-8")
    node_path.write_text(nodes, encoding="utf-8")
    return plain_scenario(pod_path, nodes=node_path)


def arrivals(tmp_path: Path, pods: str) -> list[Arrival]:
    (source,) = scenario_of(tmp_path, pods).arrivals
    return list(source(0))


def test_a_line_is_a_number_of_pods(tmp_path: Path) -> None:
    found = arrivals(tmp_path, f"{PODS}web,shop,front,1m,1h30m,500m,1Gi,2,100,3,1\n")
    assert [one.document["metadata"]["name"] for one in found] == ["web-1", "web-2", "web-3"]
    assert {(one.time_s, one.duration_s, one.owner) for one in found} == {(60.0, 5400.0, "front")}
    assert found[0].document["metadata"]["namespace"] == "shop"
    spec = found[0].document["spec"]
    assert spec["priority"] == 100
    assert spec["containers"][0]["resources"]["requests"] == {
        "cpu": "500m",
        "memory": "1Gi",
        "nvidia.com/gpu": "2",
        "example.com/fpga": "1",
    }


def test_only_the_time_is_needed(tmp_path: Path) -> None:
    (found,) = arrivals(tmp_path, "at\n5\n")
    assert found.document["metadata"] == {"name": "line-2", "namespace": "default"}
    assert (found.time_s, found.duration_s) == (5.0, None)


def test_a_line_is_a_number_of_nodes(tmp_path: Path) -> None:
    nodes = f"{NODES}big,2,64,256Gi,8,200,zone-a,gpu,1\nsmall,,,,,,,,\n"
    documents = [one.raw for one in scenario_of(tmp_path, "at\n0\n", nodes).documents]
    assert [node["metadata"]["name"] for node in documents] == ["big-1", "big-2", "small"]
    assert documents[0]["status"]["capacity"] == {
        "cpu": "64",
        "memory": "256Gi",
        "pods": "200",
        "nvidia.com/gpu": "8",
        "example.com/fpga": "1",
    }
    labels = documents[0]["metadata"]["labels"]
    assert (labels["topology.kubernetes.io/zone"], labels["pool"]) == ("zone-a", "gpu")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", 'line 1: the column "at" is missing', id="empty"),
        pytest.param("name,at\n", "has no pods", id="no-lines"),
        pytest.param(
            "at,durration\n", 'line 1: unknown column "durration"; did you mean "duration"?', id="x"
        ),
        pytest.param("at,at\n", 'line 1: the column "at" is given twice', id="column-twice"),
        pytest.param(
            "at,cpu\n0,1\n0,-1\n", 'line 3, column cpu: is "-1", expected a quantity', id="below"
        ),
        pytest.param(
            "at,gpu\n0,1.5\n", 'line 2, column gpu: is "1.5", expected a whole number', id="half"
        ),
        pytest.param(
            "at\n\n\nnever\n", 'line 4, column at: is "never", expected', id="blank-lines"
        ),
        pytest.param("at\n1e99\n", 'line 2, column at: is "1e99", expected 0 to', id="too-late"),
        pytest.param("at\nnan\n", 'line 2, column at: is "nan", expected 0 to', id="nan"),
        pytest.param("at,name\n,a\n", "line 2, column at: is empty", id="no-time"),
        pytest.param("at,priority\n0,9999999999\n", "line 2, column priority: is", id="priority"),
        pytest.param("at,count\n0,0\n", 'line 2, column count: is "0"', id="count"),
        pytest.param(
            "at,name,count\n0,a-1,\n0,a,2\n",
            'line 3, column name: gives the pod "default/a-1", as line 2 does',
            id="made-twice",
        ),
        pytest.param('at\n"0\n', "line 2: not CSV: ", id="open-quote"),
    ],
)
def test_a_broken_file_is_named_with_line_and_column(
    text: str, problem: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as caught:
        scenario_of(tmp_path, text)
    assert problem in str(caught.value)
    assert str(tmp_path / "pods.csv") in str(caught.value)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pods.csv"
    path.write_bytes(b"at\n\xff\xfe\n")
    with pytest.raises(InputError, match="not text in UTF-8"):
        plain_scenario(path)


def test_a_trace_runs(tmp_path: Path) -> None:
    scenario = scenario_of(tmp_path, "name,at,duration,cpu,count\na,0,100,3,2\nb,50,10,2,1\n")
    run = run_scenario(scenario, SchedulerConfig())
    rows = {pod.name: pod for pod in run.pods}
    assert {rows["a-1"].node, rows["a-2"].node} == {"node-1", "node-2"}
    assert rows["b"].scheduled_s == pytest.approx(101.0, abs=12.0)
    assert {row.outcome for row in run.pods} == {"Ended"}
