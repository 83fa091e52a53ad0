"""The words that shells complete are those of the commands."""

from kubestow.service.cli import COMMANDS
from kubestow.service.completion.table import TABLE_FILE, read_table
from tools.schemas.words import table_text


def test_the_file_is_that_of_the_commands() -> None:
    assert TABLE_FILE.read_text() == table_text(), "run make docs"


def test_it_has_every_command_with_its_options() -> None:
    commands = read_table()["commands"]
    assert [*commands] == [*COMMANDS]
    for command in commands.values():
        assert any("--help" in option["names"] for option in command["options"])
