"""The words that are always the same: options of commands, flags of `run`, gates, workloads.

They are derived from the commands and written to a file (`make docs`), which a test compares:
reading the file takes a millisecond, importing the commands half a second.
"""

import json
from pathlib import Path
from typing import Any, Final, NotRequired, TypedDict

TABLE_FILE: Final = Path(__file__).with_name("words.json")

# What can be completed although it is not in the table, and how options name it in their help.
NODES: Final = "NODE"
PODS: Final = "POD"
GATES: Final = "NAME=BOOL,..."
WORKLOADS: Final = "REGEX"
COMMANDS: Final = "COMMAND"
_COMPLETED: Final = (NODES, PODS, GATES, WORKLOADS, COMMANDS)


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


def table_text() -> str:
    """The table as it is to be in the file, from the commands themselves."""
    # All of this is needed here only, and takes long to load.
    from typer.main import get_command

    from kubestow.editions import NEWEST
    from kubestow.service.cli import app, import_command
    from kubestow.service.command_names import COMMANDS as SUMMARIES
    from kubestow.simulator.bench.workloads import WORKLOADS as KNOWN_WORKLOADS

    commands: dict[str, Command] = {}
    for name, summary in SUMMARIES.items():
        commands[name] = _command(import_command(name), summary)
        if name == "run":
            commands[name]["options"] = _run_flags()
    words = KnownWords(
        commands=commands,
        options=_parameters(get_command(app))[0],
        gates=sorted(NEWEST.gates),
        workloads=sorted(workload.name for workload in KNOWN_WORKLOADS),
    )
    return f"{_written(words, levels=6)}\n"


def _written(value: object, *, levels: int, indent: str = "") -> str:
    """A value as JSON that has an option in each line, so that changes of two do not meet."""
    from kubestow.api.decode import is_list, is_map

    inner = f"{indent} "
    if levels and value and is_map(value):
        brackets, entries = (
            "{}",
            [
                f"{json.dumps(key)}: {_written(each, levels=levels - 1, indent=inner)}"
                for key, each in value.items()
            ],
        )
    elif levels and value and is_list(value):
        brackets, entries = "[]", [_written(each, levels=0) for each in value]
    else:
        return json.dumps(value, ensure_ascii=False)
    lines = ",\n".join(inner + entry for entry in entries)
    return f"{brackets[0]}\n{lines}\n{indent}{brackets[1]}"


def _command(command: Any, summary: str) -> Command:
    options, arguments = _parameters(command)
    described = Command(help=summary, options=options, arguments=arguments)
    subcommands = getattr(command, "commands", {})
    if subcommands:
        described["commands"] = {
            name: _command(each, _first_sentence(each.help)) for name, each in subcommands.items()
        }
    return described


def _parameters(command: Any) -> tuple[list[Option], list[Option]]:
    """Options and arguments of a command of Typer's."""
    context = command.context_class(command, help_option_names=["-h", "--help"])
    params = [each for each in command.get_params(context) if not getattr(each, "hidden", False)]
    options = [_option(each, context) for each in params if each.param_type_name == "option"]
    arguments = [_option(each, context) for each in params if each.param_type_name == "argument"]
    return options, arguments


def _option(param: Any, context: Any) -> Option:
    choices = [item.value for item in param.shell_complete(context, "") if item.type == "plain"]
    is_switch = getattr(param, "is_flag", False)
    value = param.metavar or ""
    return Option(
        # Names of --help come in any order.
        names=sorted((*param.opts, *param.secondary_opts), key=_is_short),
        help=_first_sentence(getattr(param, "help", "") or ""),
        value="" if is_switch else value.strip("[]") if value.strip("[]") in _COMPLETED else "?",
        values=choices,
    )


def _is_short(name: str) -> bool:
    return not name.startswith("--")


def _run_flags() -> list[Option]:
    from kubestow.config.flag_table import FLAGS

    return [
        Option(
            names=[*((f"-{flag.shorthand}",) if flag.shorthand else ()), f"--{flag.name}"],
            help=_first_sentence(flag.help),
            value=GATES if flag.name == "feature-gates" else "?" if flag.kind.label else "",
            values=[],
        )
        for flag in sorted(FLAGS, key=lambda flag: flag.name)
    ]


def _first_sentence(text: str) -> str:
    """Without the points at its end, as lists of shells have it."""
    sentence, _, _ = " ".join(text.split()).partition(". ")
    return sentence.rstrip(".")
