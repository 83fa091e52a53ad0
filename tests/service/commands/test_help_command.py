"""`kubestow help`: what people type first."""

import pytest
from typer.testing import CliRunner

from kubestow.service.cli import COMMANDS, app


def printed(*arguments: str) -> str:
    result = CliRunner().invoke(app, [*arguments])
    assert result.exit_code == 0
    return result.output


def test_it_is_the_help_of_the_program() -> None:
    assert printed("help") == printed("--help")


@pytest.mark.parametrize("command", COMMANDS)
def test_it_is_the_help_of_a_command(command: str) -> None:
    assert printed("help", command).splitlines()[1:] == printed(command, "--help").splitlines()[1:]


def test_a_command_may_have_commands_of_its_own() -> None:
    assert "Time cycles of pod groups." in printed("help", "bench", "gangs")


def test_a_command_that_does_not_exist_is_an_error() -> None:
    result = CliRunner().invoke(app, ["help", "simlate"])
    assert result.exit_code == 2
    assert "simulate" in result.output
