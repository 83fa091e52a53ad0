"""The words that are always the same: options of commands, flags of `run`, gates, workloads.

They are derived from the commands and written to a file (`tools.schemas.words`), which a test
compares: reading the file takes a millisecond, importing the commands half a second.
"""

import json
from pathlib import Path
from typing import Final, NotRequired, TypedDict

TABLE_FILE: Final = Path(__file__).with_name("words.json")

# What can be completed although it is not in the table, and how options name it in their help.
NODES: Final = "NODE"
PODS: Final = "POD"
GATES: Final = "NAME=BOOL,..."
WORKLOADS: Final = "REGEX"
COMMANDS: Final = "COMMAND"


class Option(TypedDict):
    """`value` is empty for a switch, one of the names above, or ? for anything else; `values` are
    all that it may be."""

    names: list[str]
    help: str
    value: str
    values: list[str]


class Command(TypedDict):
    """`arguments` are the values of what follows without an option, in order; `commands` are those
    that can follow instead."""

    help: str
    options: list[Option]
    arguments: list[Option]
    commands: NotRequired[dict[str, "Command"]]


class KnownWords(TypedDict):
    commands: dict[str, Command]
    options: list[Option]
    gates: list[str]
    workloads: list[str]


def read_table() -> KnownWords:
    return json.loads(TABLE_FILE.read_bytes())
