"""What a command line loads that only prints help, completes a word or is wrong.

Counted in modules, not in time: a library that takes long to load must not come in unnoticed.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from kubestow.service.cli import COMMANDS

EXAMPLES = Path(__file__).parents[2] / "examples"
# What takes long to load, and only work needs.
LIBRARIES = {"numpy", "aiohttp", "cryptography", "prometheus_client", "uvloop"}
FOLDERS = {"apiserver", "cache", "cluster", "engine", "framework", "plugins", "queue", "index"}

# Runs command lines one after the other and prints what they printed and loaded.
_PROGRAM = """
import contextlib, io, json, os, sys
from kubestow.service.start import main

results = []
for arguments, environment in json.loads(sys.argv[1]):
    os.environ.update(environment)
    sys.argv[1:] = arguments
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        try:
            main()
        except SystemExit:
            pass
    for name in environment:
        del os.environ[name]
    results.append(output.getvalue())
json.dump([results, [*sys.modules]], sys.stdout)
"""

CommandLine = tuple[list[str], dict[str, str]]


def run(command_lines: list[CommandLine]) -> tuple[list[str], set[str]]:
    """What each printed, and the modules that all of them loaded."""
    completed = subprocess.run(
        [sys.executable, "-c", _PROGRAM, json.dumps(command_lines)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "80"},
    )
    outputs, modules = json.loads(completed.stdout)
    return outputs, set(modules)


def completing(*words: str) -> CommandLine:
    variables = {
        "_KUBESTOW_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(("kubestow", *words)),
        "COMP_CWORD": str(len(words)),
    }
    return [], variables


def heavy(modules: set[str]) -> list[str]:
    folders = {f"kubestow.{folder}" for folder in FOLDERS}
    return sorted(modules & (LIBRARIES | folders))


def test_the_list_of_commands_loads_no_command() -> None:
    outputs, modules = run([(["--help"], {}), (["simlate"], {}), completing("")])
    assert "Place a workload on a cluster" in outputs[0]
    assert 'no command "simlate" (simulate?)' in outputs[1]
    assert outputs[2].split() == [*COMMANDS]
    assert [name for name in modules if name.startswith("kubestow.service.commands")] == []
    assert heavy(modules) == []


def test_help_loads_nothing_that_does_the_work() -> None:
    outputs, modules = run([([command, "--help"], {}) for command in COMMANDS])
    for command, output in zip(COMMANDS, outputs, strict=True):
        assert output.startswith(f"Usage: kubestow {command}")
    assert heavy(modules) == []


def test_the_version_and_wrong_options_load_nothing_that_does_the_work() -> None:
    lines: list[CommandLine] = [(["version"], {}), (["run", "--nope"], {})]
    lines += [([command, "--nope"], {}) for command in COMMANDS if command != "run"]
    outputs, modules = run(lines)
    assert outputs[0].startswith("kubestow ")
    assert all("--nope" in output for output in outputs[1:])
    assert heavy(modules) == []


def test_completion_loads_nothing_that_does_the_work() -> None:
    outputs, modules = run([completing(command, "--") for command in COMMANDS])
    assert all("--help" in text.split() for text in outputs)
    assert heavy(modules) == []
    # Nor what reads command lines, which takes longer than all the rest.
    assert {"typer", "asyncio"} & modules == set()


def test_a_simulation_with_pods_that_wait_collects_no_evidence() -> None:
    files = [f"--filename={EXAMPLES / name}" for name in ("cluster.yaml", "workload.yaml")]
    outputs, modules = run([(["simulate", *files], {})])
    assert "1 pending" in outputs[0]
    assert [name for name in modules if name.startswith("kubestow.explain.evidence")] == []
    _, modules = run([(["explain", "reports-0", *files], {})])
    assert "kubestow.explain.evidence.registry" in modules


def test_work_on_files_loads_nothing_that_only_other_work_needs() -> None:
    files = [f"--filename={EXAMPLES / name}" for name in ("cluster.yaml", "workload.yaml")]
    outputs, modules = run([(["simulate", *files], {}), (["explain", "reports-0", *files], {})])
    assert "6 of 7 pods scheduled" in outputs[0]
    assert "Insufficient cpu" in outputs[1]
    # Servers, checks of options, plugins of other packages, expressions for devices, the page.
    libraries = {"aiohttp", "cryptography", "prometheus_client", "pydantic", "importlib.metadata"}
    assert modules & {*libraries, "kubestow.cel", "kubestow.web"} == set()
