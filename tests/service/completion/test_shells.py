"""What shells and kubectl send, and what they read."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer._completion_shared import get_completion_script

from kubestow.service import start
from kubestow.service.completion.shells import complete_for_cobra, complete_for_shell

ROOT = Path(__file__).parents[3]
FILES = ["-f", str(ROOT / "examples")]


@pytest.mark.parametrize(
    ("words", "current", "expected"),
    [
        ("kubestow si", 1, ["simulate"]),
        ("kubestow simulate -o ", 3, ["table", "wide", "name", "json", "yaml"]),
        # Bash splits at =, also without blanks in the line, and replaces what follows.
        ("kubestow run --feature-gates = GangSch", 4, ["GangScheduling="]),
        ("kubestow run --feature-gates = GangScheduling = t", 6, ["true"]),
        ("kubestow run --feature-gates GangScheduling = ", 5, ["true", "false"]),
        ("kubestow explain 'not closed", 2, []),
    ],
)
def test_bash(
    words: str, current: int, expected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    variables = {"COMP_WORDS": words, "COMP_CWORD": str(current), "KUBECONFIG": "/nowhere"}
    assert complete_for_shell("bash", variables) == 0
    assert capsys.readouterr().out.split() == expected


def test_zsh(capsys: pytest.CaptureFixture[str]) -> None:
    complete_for_shell("zsh", {"_TYPER_COMPLETE_ARGS": "kubestow si"})
    complete_for_shell("zsh", {"_TYPER_COMPLETE_ARGS": "kubestow simulate -f "})
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("""_arguments '*: :(("simulate":"Place a workload on a cluster,""")
    assert second == "_files"


def test_fish(capsys: pytest.CaptureFixture[str]) -> None:
    variables = {"_TYPER_COMPLETE_ARGS": "kubestow si", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    assert complete_for_shell("fish", variables) == 0
    assert capsys.readouterr().out.startswith("simulate\tPlace a workload")
    variables["_TYPER_COMPLETE_FISH_ACTION"] = "is-args"
    assert complete_for_shell("fish", variables) == 0
    variables["_TYPER_COMPLETE_ARGS"] = "kubestow simulate -f "
    assert complete_for_shell("fish", variables) == 1


def test_powershell(capsys: pytest.CaptureFixture[str]) -> None:
    variables = {
        "_TYPER_COMPLETE_ARGS": "kubestow si",
        "_TYPER_COMPLETE_WORD_TO_COMPLETE": "si",
    }
    assert complete_for_shell("pwsh", variables) == 0
    assert capsys.readouterr().out.startswith("simulate:::Place a workload")
    assert complete_for_shell("another", variables) == 1


def test_kubectl(capsys: pytest.CaptureFixture[str]) -> None:
    complete_for_cobra(["simulate", "--outp"])
    complete_for_cobra(["run", "--feature-gates=GangSch"])
    complete_for_cobra(["simulate", "-f", ""])
    complete_for_cobra(["explain", *FILES, "rep"])
    assert capsys.readouterr().out.splitlines() == [
        "--output\tHow to print",
        ":4",
        "--feature-gates=GangScheduling=",
        ":4",
        ":0",
        "reports-0",
        ":4",
    ]


def test_kubectl_finds_it_under_its_name() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, function = scripts["kubectl_complete-kubestow"].partition(":")
    assert module == start.__name__
    assert callable(getattr(start, function))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_with_the_script_that_is_installed(tmp_path: Path) -> None:
    script = get_completion_script(
        prog_name="kubestow", complete_var=start.COMPLETE_VARIABLE, shell="bash"
    )
    program = tmp_path / "kubestow"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m kubestow "$@"\n')
    program.chmod(0o755)
    commands = f"""{script}
        COMP_WORDS=({program} simulate --feature-gates = GangSch) COMP_CWORD=4
        _kubestow_completion {program}
        echo "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", commands], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "GangScheduling="
