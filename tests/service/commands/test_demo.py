"""`kubestow demo` on the command line, and what it shows in narrow terminals."""

import asyncio
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from kubestow.apiserver.memory import MemoryCluster
from kubestow.config.scheduler import SchedulerConfig
from kubestow.service.cli import app
from kubestow.service.commands.demo.play import node_table
from kubestow.simulator.demo import scenes
from kubestow.simulator.embedded import EmbeddedCluster
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time

NAMES = {"gpu-0", *(f"zone-{zone}-{number}" for zone in "abc" for number in range(3))}


def table(width: int) -> list[str]:
    """The lines of the node table of the second scene."""

    async def inside() -> list[str]:
        clock = VirtualClock(asyncio.get_running_loop())
        store = MemoryCluster(clock)
        for scene in scenes()[:2]:
            store.load(scene.documents)
        cluster = EmbeddedCluster(store, SchedulerConfig(), clock)
        async with cluster.running():
            await cluster.settle(limit_s=30)
            console = Console(width=width, file=None)
            with console.capture() as captured:
                console.print(node_table(cluster, width))
        return captured.get().splitlines()

    return run_in_virtual_time(inside())


@pytest.mark.parametrize("width", [30, 40, 59, 60, 79, 80, 100, 200])
def test_names_of_nodes_are_whole_and_lines_fit(width: int):
    head, *lines = table(width)
    assert head.startswith("NODE")
    assert {line.split()[0] for line in lines} == NAMES
    assert max(map(len, lines)) <= width
    assert all("%" in line for line in lines)


def test_a_wide_terminal_has_bars():
    assert "░" in "".join(table(80))
    assert "░" not in "".join(table(59))


def refused(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["demo", *arguments])
    assert result.exit_code != 0
    return str(result.exception)


@pytest.mark.parametrize(
    "arguments",
    [["--port", "1"], ["--no-scheduler"], ["--kubeconfig", "x"]],
    ids=lambda arguments: arguments[0],
)
def test_options_of_the_server_need_it(arguments: list[str]):
    assert f"{arguments[0]} needs --serve" in refused(*arguments)
    assert f"{arguments[0]} has no effect with --page" in refused("--page", *arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--nodes", "3"],
        ["--node-shape", "cpu=4"],
        ["--config", "x"],
        ["--load", "x"],
        ["--save", "x"],
        ["--for", "1"],
        ["--node-monitor-grace-period", "20"],
        ["--page-port", "1"],
        ["--open"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_the_story_has_no_cluster_to_set_up(arguments: list[str]):
    assert f"{arguments[0]} has no effect with --story" in refused("--story", *arguments)


def test_the_speed_has_no_effect_on_the_server():
    assert "--speed has no effect with --serve" in refused("--serve", "--speed", "2")


def test_one_demo_is_chosen():
    assert refused("--story", "--serve") == "--story and --serve are two demos; choose one"


def test_without_a_terminal_the_story_is_played():
    result = CliRunner().invoke(app, ["demo"])
    assert result.exit_code == 0
    assert result.output == CliRunner().invoke(app, ["demo", "--story"]).output
    assert "nine nodes in three zones" in result.output


def test_the_inside_of_an_older_version_is_shown():
    result = CliRunner().invoke(app, ["demo", "--verbose", "--compatibility", "v1.20"])
    assert result.exit_code == 0
    assert "queue     big-0: unschedulable -> backoff (move_all; cycle 3, move 3)" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--compatibility", "v1.9"], "--compatibility v1.9 needs --verbose"),
        (["--serve", "--verbose"], "--verbose has no effect with --serve"),
        (["--page", "--verbose"], "--verbose has no effect with --page"),
        (["--verbose", "--record", "x"], "--record has no effect with --verbose"),
        (["--serve", "--no-scheduler", "--record", "x"], "--record has no effect with --no-sched"),
    ],
)
def test_the_story_has_its_own_options(arguments: list[str], message: str):
    result = CliRunner().invoke(app, ["demo", *arguments])
    assert message in str(result.exception)


@pytest.mark.slow  # plays the whole story twice
def test_the_story_is_recorded_and_replayed(tmp_path: Path):
    path = str(tmp_path / "demo.rec")
    assert CliRunner().invoke(app, ["demo", "--speed", "0", "--record", path]).exit_code == 0
    result = CliRunner().invoke(app, ["replay", path])
    assert result.exit_code == 0
    assert result.output.rstrip().endswith("of recorded time: 0 differ")
    assert not result.output.startswith("0 decisions")
