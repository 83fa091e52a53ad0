"""Which words can follow those of a command line.

Never raises for a command line that is wrong: then nothing is offered, and the shell completes the
names of files.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kubestow.service.completion.table import (
    COMMANDS,
    GATES,
    NODES,
    PODS,
    WORKLOADS,
    Command,
    KnownWords,
    Option,
    read_table,
)

_BOOLS: Final = ("true", "false")


class Word(NamedTuple):
    text: str
    help: str = ""


class TypedLine(NamedTuple):
    """What is written of a command line: values by option, and what follows without one."""

    # By all names of the option.
    values: dict[str, list[str]]
    arguments: list[str]

    def last(self, name: str) -> str:
        return (self.values.get(name) or [""])[-1]


# Names of pods (POD) or nodes (NODE) that begin with a text.
FindObjects = Callable[[str, TypedLine, str], Iterable[str]]


def completions(given: Sequence[str], incomplete: str, find: FindObjects) -> list[Word]:
    """What can stand for the incomplete word; `given` come before it, without the program."""
    table = read_table()
    position = next((i for i, word in enumerate(given) if word in table["commands"]), None)
    if position is None:
        return [*_first_words(table, incomplete)]
    command, rest = table["commands"][given[position]], given[position + 1 :]
    subcommands = command.get("commands", {})
    if rest and rest[0] in subcommands:
        command, rest = subcommands[rest[0]], rest[1:]
    elif not rest and subcommands and not incomplete.startswith("-"):
        return [*_commands(subcommands, incomplete)]
    line, expecting = _read(command, rest)
    if expecting is not None:
        return [*_values(expecting, table, line, incomplete, find)]
    if incomplete.startswith("-"):
        name, equals, value = incomplete.partition("=")
        if not equals:
            return [*_names(command["options"], incomplete)]
        option = _by_name(command).get(name)
        if option is None:
            return []
        return [
            word._replace(text=f"{name}={word.text}")
            for word in _values(option, table, line, value, find)
        ]
    if len(line.arguments) < len(command["arguments"]):
        argument = command["arguments"][len(line.arguments)]
        return [*_values(argument, table, line, incomplete, find)]
    return []


def _first_words(table: KnownWords, incomplete: str) -> Iterator[Word]:
    if incomplete.startswith("-"):
        yield from _names(table["options"], incomplete)
        return
    yield from _commands(table["commands"], incomplete)


def _commands(commands: Mapping[str, Command], incomplete: str) -> Iterator[Word]:
    for name, command in commands.items():
        if name.startswith(incomplete):
            yield Word(name, command["help"])


def _read(command: Command, given: Sequence[str]) -> tuple[TypedLine, Option | None]:
    """What is written, and the option whose value is to follow."""
    options, line = _by_name(command), TypedLine({}, [])
    expecting: Option | None = None
    for word in given:
        name, equals, value = word.partition("=")
        if expecting is not None:
            _note(line, expecting, word)
            expecting = None
        elif word.startswith("-") and (option := options.get(name)) is not None:
            if equals:
                _note(line, option, value)
            elif option["value"]:
                expecting = option
        elif not word.startswith("-"):
            line.arguments.append(word)
    return line, expecting


def _note(line: TypedLine, option: Option, value: str) -> None:
    for name in option["names"]:
        line.values.setdefault(name, []).append(value)


def _by_name(command: Command) -> dict[str, Option]:
    return {name: option for option in command["options"] for name in option["names"]}


def _names(options: Iterable[Option], incomplete: str) -> Iterator[Word]:
    for option in options:
        for name in option["names"]:
            # A short name is offered only to who has not begun a long one.
            if name.startswith(incomplete) and (name.startswith("--") or incomplete == "-"):
                yield Word(name, option["help"])


def _values(
    option: Option, table: KnownWords, line: TypedLine, incomplete: str, find: FindObjects
) -> Iterator[Word]:
    names: Iterable[str] = option["values"]
    match option["value"]:
        case _ if option["values"]:
            pass
        case value if value == GATES:
            names = _gates(table["gates"], incomplete)
        case value if value == WORKLOADS:
            names = table["workloads"]
        case value if value == COMMANDS:
            names = table["commands"]
        case value if value in (NODES, PODS):
            names = find(value, line, incomplete)
        case _:
            return
    yield from (Word(name) for name in names if name.startswith(incomplete))


def _gates(gates: Sequence[str], incomplete: str) -> Iterator[str]:
    """Further gates after a comma, and values after the name of one."""
    before, comma, last = incomplete.rpartition(",")
    name, equals, _ = last.partition("=")
    for each in (f"{name}={value}" for value in _BOOLS) if equals else (f"{g}=" for g in gates):
        yield f"{before}{comma}{each}"
