"""The script behind docs/performance.md: tables, picture, markers, and one small run."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from kubestow.service.commands.bench.command import MOST_NODES
from kubestow.simulator.bench import WORKLOADS, Comparison, Measurement, Variant, compare
from kubestow.simulator.bench.throughput import Throughput
from kubestow.simulator.bench.upstream import CALIBRATION_S

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "docs" / "scripts"
PAGE = ROOT / "docs" / "performance.md"
sys.path.insert(0, str(SCRIPTS))

from growth_plot import Line, draw  # noqa: E402  (found through the line above)
from pages import replace_section  # noqa: E402
from performance import FULL, Measurer  # noqa: E402
from performance_tables import (  # noqa: E402
    SECTIONS,
    Machine,
    Memory,
    growth_table,
    machine_line,
    memory_table,
    million_table,
    simulation_table,
    unlike_table,
    workload_table,
)

SVG = "{http://www.w3.org/2000/svg}"


def run(
    workload: str, nodes: int, percentage: int, us_per_pod: float, **changes: Any
) -> Comparison:
    values: dict[str, Any] = timing(workload, nodes, percentage, us_per_pod) | {
        "first_us": us_per_pod * 10,
        "p50_us": us_per_pod / 2,
        "p99_us": us_per_pod * 2,
        "load_s": 1.25,
        **changes,
    }
    return compare(Measurement(**values))


def timing(workload: str, nodes: int, percentage: int, us_per_pod: float) -> dict[str, Any]:
    return {
        "workload": workload,
        "nodes": nodes,
        "init_pods": 1000,
        "measure_pods": 200,
        "percentage_of_nodes_to_score": percentage,
        "pods_per_s": 1e6 / us_per_pod,
        "us_per_pod": us_per_pod,
        "us_per_pod_min": us_per_pod - 1,
        "us_per_pod_max": us_per_pod + 2,
        "cpu_us_per_pod": us_per_pod,
        "peak_memory_mib": 2048.0,
        "scheduled": 199,
        "cores": 2,
        "calibration_ms": CALIBRATION_S * 1000,
        "calibration_spread": 1.0,
    }


def cells(table: str, row: int) -> list[str]:
    """The cells of one row; row 0 is the header, row 1 the rule."""
    return [cell.strip() for cell in table.splitlines()[row].strip("|").split("|")]


def test_a_section_is_replaced_and_the_rest_stays() -> None:
    text = "a\n<!-- generated: x -->\nold\n<!-- end: x -->\nb\n"
    new = replace_section(text, "x", "| 1 |\n| \\2 |\n")
    assert new == "a\n<!-- generated: x -->\n| 1 |\n| \\2 |\n<!-- end: x -->\nb\n"
    assert replace_section(new, "x", "| 1 |\n| \\2 |") == new


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("nothing", id="none"),
        pytest.param("<!-- generated: x -->\n", id="no-end"),
        pytest.param("<!-- end: x -->\n<!-- generated: x -->\n", id="wrong-order"),
        pytest.param("<!-- generated: x -->\n<!-- end: x -->\n" * 2, id="twice"),
    ],
)
def test_markers_that_are_not_there_once_are_named(text: str) -> None:
    with pytest.raises(ValueError, match="<!-- generated: x -->"):
        replace_section(text, "x", "new")


MACHINE = Machine(cores=2, python="3.11.1", numpy="2.1.0")


def test_a_machine_half_as_fast_doubles_upstreams_figures() -> None:
    runs = [run("SchedulingBasic", 5000, 0, 100, calibration_ms=CALIBRATION_S * 2000)]
    line = machine_line(MACHINE, runs)
    assert "2 cores with Python 3.11.1 and NumPy 2.1.0, one run of everything" in line
    assert "took 24.2 to 24.2 ms" in line
    assert "calm during all measurements" in line
    # Twice 1,072.
    basic = ["SchedulingBasic", "5,000 / 1,000", "100", "1,000", "2,144", "21x"]
    assert cells(workload_table(runs), 2) == [*basic, "-", "-", "-", "-"]


def test_a_workload_has_one_row_for_both_ways_to_look_at_nodes() -> None:
    runs = [
        run("SchedulingSecrets", 5000, percentage, 1000, runs=3, variant=variant)
        for percentage in (0, 100)
        for variant in Variant
    ]
    table = workload_table(runs)
    assert len(table.splitlines()) == 3
    spread = "1,000 (999..1,002)"
    first = [spread, "10,000", "~926", "~0.9x"]
    assert cells(table, 2)[2:] == [*first, spread, "10,000", "~6,655", "~6.7x"]
    assert "medians of 3 runs" in machine_line(MACHINE, runs)


def test_disturbed_measurements_are_counted_and_not_compared() -> None:
    runs = [run("SchedulingBasic", 5000, 0, 100), run("ManyShapes", 5000, 0, 9, foreign_cores=1.0)]
    assert "1 of 2 measurements were disturbed" in machine_line(MACHINE, runs)
    assert cells(workload_table(runs), 3)[2:6] == ["9", "90", "-", "-"]


def test_unlike_pods_stand_beside_equal_ones() -> None:
    runs = [
        run("SchedulingBasic", 5000, 0, us, variant=variant, foreign_cores=foreign_cores)
        for variant, us, foreign_cores in (
            (Variant.PLAIN, 50, 1.0),
            (Variant.UNLIKE, 200, 0.0),
            (Variant.ALL_UNLIKE, 400, 0.0),
        )
    ]
    names = ["SchedulingBasic", "adaptive", "1,072"]
    assert cells(unlike_table(runs), 2) == [*names, "50", "-", "200", "5.4x", "400", "2.7x"]


def test_simulations_have_a_row_each() -> None:
    simulated = Throughput(**timing("SchedulingBasic", 5000, 0, 250), load_s=1.0)
    assert cells(simulation_table([simulated]), 2) == [
        "SchedulingBasic",
        "equal",
        "5,000 / 1,000",
        "199 of 200",
        "4,000",
        "250",
        "250",
    ]


def test_growth_has_a_column_per_size_and_the_ratio_of_the_largest() -> None:
    runs = [
        run("SchedulingBasic", 50_000, 0, 90),
        run("SchedulingBasic", 5_000, 0, 60),
        run("ManyShapes", 5_000, 100, 1200),
    ]
    table = growth_table(runs, compared=(5_000, 50_000))
    assert cells(table, 0) == ["workload", "looks at", "5,000", "50,000", "50,000 : 5,000"]
    assert cells(table, 2) == ["SchedulingBasic", "adaptive", "60 (30)", "90 (45)", "1.5x"]
    assert cells(table, 3) == ["ManyShapes", "all nodes", "1,200 (600)", "-", "-"]


def test_the_largest_cluster_is_in_seconds_and_gibibytes() -> None:
    table = million_table([run("SchedulingBasic", 1_000_000, 0, 250)])
    assert cells(table, 2) == [
        "1,000,000",
        "adaptive",
        "1.2 s",
        "2.0 GiB",
        "250",
        "125",
        "199 of 200",
    ]


def test_memory_of_one_is_the_difference_divided_by_the_count() -> None:
    table = memory_table(
        Memory(nodes=1_000, pods=1_000, peak_mib=50),
        Memory(nodes=2_024, pods=1_000, peak_mib=53),
        Memory(nodes=1_000, pods=2_024, peak_mib=55),
    )
    assert cells(table, 2) == ["a node", "3.0 KiB"]
    assert cells(table, 3) == ["a running pod", "5.0 KiB"]
    assert cells(table, 5) == ["1,000 nodes and 2,024 pods", "55 MiB"]


def line(*points: tuple[float, float], group: str = "A", is_solid: bool = True) -> Line:
    return Line(group, f"{group} & co", is_solid, points)


def test_factors_of_ten_are_equally_far_apart() -> None:
    picture = draw([line((10, 20), (100, 200), (1000, 2000))], title="t", x_title="x", y_title="y")
    circles = list(ElementTree.fromstring(picture).iter(f"{SVG}circle"))
    across = [float(circle.attrib["cx"]) for circle in circles]
    down = [float(circle.attrib["cy"]) for circle in circles]
    assert across[1] - across[0] == pytest.approx(across[2] - across[1], abs=0.2)
    assert down[0] - down[1] == pytest.approx(down[1] - down[2], abs=0.2)
    assert down[0] > down[1], "more is higher"


def test_lines_of_a_group_share_a_color_and_only_some_are_dashed() -> None:
    lines = [line((1, 1), (2, 3)), line((1, 2), (2, 4), is_solid=False), line((1, 5), group="B")]
    root = ElementTree.fromstring(draw(lines, title="t", x_title="x", y_title="y"))
    curves = list(root.iter(f"{SVG}polyline"))
    assert curves[0].attrib["stroke"] == curves[1].attrib["stroke"] != curves[2].attrib["stroke"]
    assert ["stroke-dasharray" in curve.attrib for curve in curves] == [False, True, False]
    assert "A & co" in [text.text for text in root.iter(f"{SVG}text")]
    assert root.find(f"{SVG}rect") is not None, "a ground of its own"


def test_one_point_alone_can_be_drawn() -> None:
    ElementTree.fromstring(draw([line((10, 100))], title="t", x_title="x", y_title="y"))


@pytest.mark.parametrize(
    "lines", [pytest.param([], id="none"), pytest.param([line((0, 1))], id="nought")]
)
def test_what_has_no_logarithm_is_refused(lines: list[Line]) -> None:
    with pytest.raises(ValueError, match="logarithmic"):
        draw(lines, title="t", x_title="x", y_title="y")


def test_the_page_has_all_sections_and_every_workload() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name in SECTIONS:
        replace_section(text, name, "")
    for workload in WORKLOADS:
        assert f"| {workload.name} |" in text
    assert (PAGE.parent / "images" / "growth.svg").is_file()


def perform(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = str(SCRIPTS / "performance.py")
    return subprocess.run(
        [sys.executable, script, "--quick", "--docs", str(folder), *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_a_quick_run_fills_every_section_and_draws(tmp_path: Path) -> None:
    empty = "".join(f"<!-- generated: {name} -->\n<!-- end: {name} -->\n" for name in SECTIONS)
    (tmp_path / "performance.md").write_text(f"# Title\n{empty}The end.\n")
    results = tmp_path / "build" / "results"  # A folder that is made for it.
    done = perform(tmp_path, "--results", str(results))
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "performance.md").read_text()
    assert text.startswith("# Title\n")
    assert text.endswith("The end.\n")
    for name in SECTIONS:
        assert re.search(f"generated: {name} -->\n.*\\d.*\n<!-- end: {name}", text, re.DOTALL), name
    commands = re.findall(r"^kubestow (.*)", done.stderr, re.MULTILINE)
    assert [json.loads(line)["arguments"] for line in results.read_text().splitlines()] == commands
    assert any("^SchedulingBasic$" in one and one.startswith("bench simulate ") for one in commands)
    ElementTree.parse(tmp_path / "images" / "growth.svg")


def test_the_bench_takes_as_many_nodes_as_a_whole_run_has() -> None:
    assert FULL.most_nodes <= MOST_NODES


def test_calm_results_are_kept_and_others_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        run("SchedulingBasic", 5000, 0, 50, foreign_cores=1.0),
        run("SchedulingBasic", 5000, 0, 60),
    ]
    ended: list[list[str]] = []

    def end(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        ended.append(command)
        return subprocess.CompletedProcess(command, 0, msgspec.json.encode(lines[len(ended) - 1]))

    monkeypatch.setattr(subprocess, "run", end)
    results = tmp_path / "results"
    for expected_us in (50, 60, 60):
        measurer = Measurer(repeat=1, results=results)
        measured = measurer.compared("SchedulingBasic", 0, Variant.PLAIN, 0, 0)
        assert measured.us_per_pod == expected_us
    assert len(ended) == 2


def test_a_page_without_markers_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "performance.md").write_text("# Title\n")
    done = perform(tmp_path)
    assert done.returncode == 1
    assert "generated: machine" in done.stderr
    assert "nodes" not in done.stderr
