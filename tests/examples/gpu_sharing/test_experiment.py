"""The command on a small trace: the whole engine equals the procedure, placement by placement."""

import csv
from pathlib import Path

import msgspec
import numpy as np
import procedure
import pytest
from gpu_sharing import readme, results, run
from gpu_sharing.config import POLICIES, as_yaml, configuration
from gpu_sharing.experiment import main
from gpu_sharing.fragmentation import TypicalPod
from gpu_sharing.results import Experiment
from gpu_sharing.trace import (
    LOAD,
    TraceError,
    TraceNode,
    TracePod,
    capacity_milli,
    read_nodes,
    read_pods,
    workload,
)
from procedure import SlowNode, SlowPod

EXAMPLE = Path(__file__).parents[3] / "examples" / "gpu_sharing"
MODELS = ("T4", "P100", "G2")


@pytest.fixture(scope="session")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve nodes and pods that request about as many GPUs as they have."""
    folder = tmp_path_factory.mktemp("trace")
    rng = np.random.default_rng(5)
    with (folder / "openb_node_list_gpu_node.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("sn", "cpu_milli", "memory_mib", "gpu", "model"))
        for number in range(12):
            count = int(rng.choice((1, 2, 4, 8)))
            model = MODELS[number % 3]
            writer.writerow((f"node-{number:02}", 12_000 * count, 64_000 * count, count, model))
    with (folder / "openb_pod_list_default.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec"))
        for number in range(70):
            count = int(rng.choice((0, 1, 1, 1, 1, 2, 4), p=(0.15, 0.2, 0.2, 0.2, 0.1, 0.1, 0.05)))
            milli = (
                int(rng.choice((150, 460, 500, 810, 1000))) if count == 1 else 1000 * bool(count)
            )
            spec = "T4|G2" if count == 1 and number % 9 == 0 else ""
            cpu = int(rng.choice((1000, 4000, 6000, 11_000)))
            memory = int(rng.choice((4000, 16_000)))
            writer.writerow((f"pod-{number:03}", cpu, memory, count, milli, spec))
    return folder


@pytest.mark.parametrize("policy", [policy for policy in POLICIES if policy != "Random"])
def test_every_placement_is_that_of_the_procedure(policy: str, trace: Path) -> None:
    nodes, pods = read_nodes(trace), read_pods(trace)
    found = run.run(policy, 3, nodes, pods, ties="name")
    slow = [
        SlowNode(node.name, node.cpu_milli, node.memory_mib, [1000] * node.gpu_count, node.model)
        for node in nodes
    ]
    typical = procedure.typical_of([slow_pod(pod) for pod in pods])
    capacity = capacity_milli(nodes)
    allocated, curve, requested, dropped = 0, [0.0], 0, 0
    for pod in workload(pods, capacity, np.random.default_rng(3)):
        requested += pod.total_milli
        while len(curve) * capacity < requested * 100:
            curve.append(100 * allocated / capacity)
        chosen = procedure.choose(policy, slow, slow_pod(pod), typical)
        if chosen is None:
            dropped += 1
        else:
            node, gpus = chosen
            node.place(slow_pod(pod), gpus)
            allocated += pod.total_milli
    assert dropped > 0
    assert found.arrived_count - found.placed_count == dropped
    assert found.allocated[: len(curve)].tolist() == pytest.approx(curve)
    assert found.allocated[-1] == pytest.approx(100 * allocated / capacity)
    left = sum(procedure.fragmentation(node.cpu, node.gpus, node.model, typical) for node in slow)
    assert found.fragmented[-1] == pytest.approx(float(100 * left / capacity))


def slow_pod(pod: TracePod) -> SlowPod:
    models = frozenset(filter(None, pod.models.split("|")))
    return SlowPod(pod.cpu_milli, pod.memory_mib, pod.gpu_count, pod.gpu_milli, models)


@pytest.mark.slow
def test_the_command_prints_means_and_deviations(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chart = tmp_path / "allocation.svg"
    arguments = ["--trace", str(trace), "--seeds", "2", "--workers", "1"]
    main([*arguments, "-o", "json", "--plot", str(chart), "--policies", "Random", "FGD"])
    found = msgspec.json.decode(capsys.readouterr().out, type=Experiment)
    assert found.seeds == [42, 43]
    assert [result.policy for result in found.policies] == ["Random", "FGD"]
    random, fgd = found.policies
    assert len(random.allocated.mean) == 131
    assert random.allocated.mean[130] < fgd.allocated.mean[130] <= 100
    by_seed = [curve[130] for curve in fgd.by_seed.values()]
    assert fgd.allocated.mean[130] == pytest.approx(np.mean(by_seed), abs=1e-3)
    assert fgd.allocated.deviation[130] == pytest.approx(np.std(by_seed, ddof=1), abs=1e-2)
    assert "FGD" in chart.read_text()
    table = results.as_markdown(found)
    assert f"| FGD | {fgd.allocated.mean[100]:.2f} ± {fgd.allocated.deviation[100]:.2f} |" in table
    page = readme.with_figures(readme.README.read_text(), found)
    assert table in page
    assert "seeds 42 to 43, ties by name" in page
    assert page.startswith("# GPU sharing")
    assert "In a cluster" in page


@pytest.mark.slow
def test_the_same_seed_gives_the_same_run_in_another_process(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--trace", str(trace), "--seeds", "1", "--policies", "Random", "BestFit"]
    main([*arguments, "--workers", "1", "-o", "markdown"])
    alone = capsys.readouterr().out
    main([*arguments, "--workers", "2", "-o", "markdown"])
    assert capsys.readouterr().out == alone


def test_a_missing_trace_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"cannot read .*openb_node_list_gpu_node\.csv"):
        main(["--trace", str(tmp_path)])


def test_the_workload_reaches_the_load_and_no_more(trace: Path) -> None:
    nodes, pods = read_nodes(trace), read_pods(trace)
    capacity = capacity_milli(nodes)
    arriving = workload(pods, capacity, np.random.default_rng(1))
    requested = sum(pod.total_milli for pod in arriving)
    assert LOAD * capacity - 1000 < requested < LOAD * capacity + 8000
    assert sorted(arriving[: len(pods)]) == pods
    assert arriving[: len(pods)] != pods
    assert set(arriving[len(pods) :]) <= set(pods)
    pruned = workload(pods, capacity, np.random.default_rng(1), load=0.5)
    assert sum(pod.total_milli for pod in pruned) <= 0.5 * capacity
    assert len(set(pruned)) == len(pruned)
    with pytest.raises(TraceError, match="no pod of the list requests a GPU"):
        workload([TracePod("a", 1, 1, 0, 0, "")], capacity, np.random.default_rng(1))


def test_of_equal_nodes_the_smallest_name_wins_beyond_a_hundred() -> None:
    nodes = [TraceNode(f"node-{number:04}", 64_000, 262_144, 2, "T4") for number in range(150)]
    pods = [TracePod(f"pod-{number}", 64_000, 1000, 1, 1000, "") for number in range(150)]
    cluster = run._cluster("DotProd", 0, list(reversed(nodes)), (), "name")
    placed = [cluster.place(pod.manifest()) for pod in pods[:130]]
    assert placed == [node.name for node in nodes[:130]]


def test_the_configuration_of_the_example_is_what_the_module_makes() -> None:
    typical = (
        TypicalPod(cpu_milli=4000, gpu_count=1, gpu_milli=500, pods=40),
        TypicalPod(cpu_milli=8000, gpu_count=1, gpu_milli=1000, pods=35),
        TypicalPod(cpu_milli=6000, pods=15),
        TypicalPod(cpu_milli=64000, gpu_count=8, gpu_milli=1000, gpu_models=("G2",), pods=10),
    )
    text = (EXAMPLE / "config.yaml").read_text()
    comment, made = text.split("\n\n", 1)
    assert all(line.startswith("#") for line in comment.splitlines())
    assert made == as_yaml(configuration("FGD", typical))
