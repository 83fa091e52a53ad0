"""The words that shells complete, made of the commands: options, flags of `run`, gates, workloads.

`words.json` in the package is their text. After a change of a command, `make docs` writes it again.
"""

import json
from typing import Any, Final

from typer.main import get_command

from kubestow.api.decode import is_list, is_map
from kubestow.config.flag_table import FLAGS
from kubestow.editions import CORE
from kubestow.service.cli import COMMANDS as SUMMARIES
from kubestow.service.cli import app, import_command
from kubestow.service.completion.table import (
    COMMANDS,
    GATES,
    NODES,
    PODS,
    WORKLOADS,
    Command,
    KnownWords,
    Option,
)
from kubestow.simulator.bench.workloads import WORKLOADS as KNOWN_WORKLOADS

_COMPLETED: Final = (NODES, PODS, GATES, WORKLOADS, COMMANDS)


def table_text() -> str:
    """The table as it is to be in the file, from the commands themselves."""
    commands: dict[str, Command] = {}
    for name, summary in SUMMARIES.items():
        commands[name] = _command(import_command(name), summary)
        if name == "run":
            commands[name]["options"] = _run_flags()
    words = KnownWords(
        commands=commands,
        options=_parameters(get_command(app))[0],
        gates=sorted(CORE.gates),
        workloads=sorted(workload.name for workload in KNOWN_WORKLOADS),
    )
    return f"{_written(words, levels=6)}\n"


def _written(value: object, *, levels: int, indent: str = "") -> str:
    """A value as JSON that has an option in each line, so that changes of two do not meet."""
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
