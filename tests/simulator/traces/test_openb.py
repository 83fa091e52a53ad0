"""The format openb: what its lines become, and how a run of it is counted."""

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from kubestow.config.scheduler import SchedulerConfig
from kubestow.errors import InputError
from kubestow.simulator.reports.files import report_of
from kubestow.simulator.scenario.run import run_scenario
from kubestow.simulator.scenario.scenario import Arrival
from kubestow.simulator.traces.openb import openb_scenario

NODES = """sn,cpu_milli,memory_mib,gpu,model
node-cpu,8000,16384,0,
node-t4,8000,16384,2,T4
node-a10,8000,16384,1,A10
"""
HEAD = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time\n"
)
PODS = f"""{HEAD}pod-0,4000,4096,1,1000,A10,LS,Running,0,500,0
pod-1,1000,1024,1,300,A10,BE,Succeeded,10,160,60
pod-2,1000,1024,2,1000,,BE,Succeeded,20,120,20
pod-3,9000,1024,0,0,,LS,Pending,30,90,
pod-4,1000,1024,0,0,,LS,Running,1000,2000,1000
"""


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    path = tmp_path / "nodes.csv"
    path.write_text(NODES, encoding="utf-8")
    return path


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "pods.csv"
    path.write_text(text, encoding="utf-8")
    return path


def arrivals(nodes: Path, pods: Path) -> list[Arrival]:
    (source,) = openb_scenario(nodes, pods).arrivals
    return list(source(0))


def test_nodes_have_gpus_and_the_label_of_their_model(nodes: Path, tmp_path: Path) -> None:
    scenario = openb_scenario(nodes, written(tmp_path, PODS))
    found = [document.raw for document in scenario.documents]
    assert [node["metadata"]["labels"].get("nvidia.com/gpu.product") for node in found] == [
        None,
        "T4",
        "A10",
    ]
    assert found[1]["status"]["capacity"] == {
        "cpu": "8000m",
        "memory": "16384Mi",
        "pods": "1001",
        "nvidia.com/gpu": "2",
    }
    assert "nvidia.com/gpu" not in found[0]["status"]["capacity"]


def test_a_pod_runs_as_long_as_it_did_and_a_share_is_a_whole_gpu(
    nodes: Path, tmp_path: Path
) -> None:
    first, second, *_ = arrivals(nodes, written(tmp_path, PODS))
    assert (first.time_s, first.duration_s, first.owner) == (0.0, 500.0, "LS")
    assert (second.time_s, second.duration_s) == (10.0, 100.0)
    resources = second.document["spec"]["containers"][0]["resources"]
    assert resources["limits"] == {"nvidia.com/gpu": "1"}
    assert resources["requests"] == {"cpu": "1000m", "memory": "1024Mi", "nvidia.com/gpu": "1"}
    terms = second.document["spec"]["affinity"]["nodeAffinity"]
    (term,) = terms["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["A10"]


def test_a_pod_that_never_got_a_node_leaves_when_it_was_deleted(
    nodes: Path, tmp_path: Path
) -> None:
    found = arrivals(nodes, written(tmp_path, PODS))[3]
    assert (found.duration_s, found.leaves_after_s) == (None, 60.0)


def test_files_of_five_columns_have_all_pods_at_the_start(nodes: Path, tmp_path: Path) -> None:
    text = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\npod-0,1000,1024,0,0\n"
    (found,) = arrivals(nodes, written(tmp_path, text))
    assert found == Arrival(0.0, found.document)


def test_lines_need_not_be_in_the_order_of_time(nodes: Path, tmp_path: Path) -> None:
    lines = PODS.splitlines()
    text = "\n".join([lines[0], *lines[:0:-1]])
    times = [arrival.time_s for arrival in arrivals(nodes, written(tmp_path, text))]
    assert times == [0.0, 10.0, 20.0, 30.0, 1000.0]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        pytest.param(
            "x,1000,1024,0,0,,LS,Running,0,1", "line 3: has 10 columns, expected 11", id="short"
        ),
        pytest.param(
            "x,abc,1024,0,0,,LS,Running,0,1,0",
            'line 3, column cpu_milli: is "abc", expected a whole number of at least 0',
            id="no-number",
        ),
        pytest.param(
            "x,1,1024,0,0,,LS,Running,soon,1,0",
            'line 3, column creation_time: is "soon", expected seconds',
            id="no-time",
        ),
        pytest.param(
            "x,1,1024,0,0,,LS,Running,0,5,9",
            "line 3, column deletion_time: is 5, before scheduled_time 9",
            id="order-of-times",
        ),
        pytest.param(
            "pod-0,1,1024,0,0,,LS,Running,0,9,0",
            'line 3, column name: is "pod-0", as in line 2',
            id="twice",
        ),
        pytest.param(
            "A_b,1,1024,0,0,,LS,Running,0,9,0", 'line 3, column name: is "A_b": ', id="name"
        ),
    ],
)
def test_a_broken_line_is_named_with_its_column(
    line: str, text: str, nodes: Path, tmp_path: Path
) -> None:
    first = PODS.splitlines()[1]
    path = written(tmp_path, f"{HEAD}{first}\n{line}\n")
    with pytest.raises(InputError) as caught:
        openb_scenario(nodes, path)
    assert str(caught.value).startswith(f"{path}, {text}")


def test_figures_of_a_run_agree_with_a_plain_count_of_its_rows(nodes: Path, tmp_path: Path) -> None:
    scenario = openb_scenario(nodes, written(tmp_path, PODS))
    scenario = msgspec.structs.replace(scenario, sample_s=5.0)
    run = run_scenario(scenario, SchedulerConfig())
    pods = {pod.name: pod for pod in run.pods}
    # The one A10 is taken until 500 s; then it is there for the second pod.
    assert pods["pod-0"].node == pods["pod-1"].node == "node-a10"
    assert pods["pod-1"].scheduled_s == pytest.approx(500.0, abs=12.0)
    assert pods["pod-1"].ended_s == pytest.approx(pods["pod-1"].scheduled_s + 100.0, abs=2.0)
    assert pods["pod-2"].node == "node-t4"
    assert pods["pod-3"].outcome == "Removed"
    assert pods["pod-3"].ended_s == pytest.approx(90.0, abs=1.0)

    figures = report_of(run).figures
    assert figures.outcomes == Counter(pod.outcome for pod in run.pods)
    assert (figures.pods, figures.placed, figures.unplaced) == (5, 4, 1)
    waits = sorted(
        pod.scheduled_s - pod.created_s for pod in run.pods if pod.scheduled_s is not None
    )
    assert figures.waiting is not None
    assert figures.waiting.max_s == pytest.approx(waits[-1], abs=0.001)
    assert figures.waiting.p50_s == pytest.approx(waits[1], abs=0.001)
    # What pods held, second by second, is what the samples saw, as far as these are apart.
    gpu = next(row for row in figures.resources if row.resource == "nvidia.com/gpu")
    held_s = sum(
        pod.requests.get("nvidia.com/gpu", 0)
        * ((pod.ended_s or run.virtual_duration_s) - pod.scheduled_s)
        for pod in run.pods
        if pod.scheduled_s is not None
    )
    assert gpu.allocatable == 3
    assert gpu.mean_used_share == pytest.approx(held_s / (3 * run.virtual_duration_s), abs=0.005)
