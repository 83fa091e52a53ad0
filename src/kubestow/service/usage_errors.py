"""What users see of a command line that cannot be used: one line, and how to get help.

Typer's own texts name Python types and quote every name ("'x' is not a valid int range", "-1 is not
in the range x>=0"); here they become plain, and name the option and the value.
"""

import re
import sys
from typing import Any, Final

import typer

from kubestow.redaction import printable_lines, without_secrets
from kubestow.service.help import plain_limits

# Typer's base of all errors about the command line, which it does not export.
USAGE_ERROR: Final[type[Exception]] = typer.BadParameter.__mro__[1]

TEXT_LENGTH_MAX: Final = 10_000  # of an error; values given can be longer

_NEAR_OPTIONS: Final = re.compile(r"No such option: (\S+?)\.? \(Possible options: (.*)\)")
# A text of Typer's, and what is printed in its place.
_REWORDED: Final = (
    (re.compile(r"No such option: (\S+)"), r"no option \1"),
    (re.compile(r"No such command '(.*)'\. Did you mean '(.*)'\?"), r'no command "\1" (\2?)'),
    (re.compile(r"No such command '(.*?)'\.?"), r'no command "\1"'),
    (re.compile(r"Option '(.*)' requires an argument\."), r"\1 needs a value"),
    (re.compile(r"Option '(.*)' does not take a value\."), r"\1 takes no value"),
    (
        re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)"),
        r'unexpected argument "\1"',
    ),
)
# What Typer's checks of a value say of it, the value first, and what was expected.
_EXPECTED: Final = (
    (re.compile(r"['\"](.*)['\"] is not a valid int(?:eger)?(?: range)?"), "a whole number"),
    (re.compile(r"['\"](.*)['\"] is not a valid float(?: range)?"), "a number"),
    (re.compile(r"(.*?)(?:\.0)? is not in the range (.*)"), r"\2"),
    (re.compile(r"['\"](.*)['\"] is not one of (.*)"), r"one of \2"),
)


def print_error(text: str, command: str = "") -> None:
    """Print an error and how to get help, on standard error."""
    text = printable_lines(without_secrets(text))
    program = f"kubestow {command}" if command else "kubestow"
    if len(text) > TEXT_LENGTH_MAX:
        text = f"{text[:TEXT_LENGTH_MAX]}…"
    print(f"kubestow: error: {text}", file=sys.stderr)
    print(f"run '{program} --help' for its options", file=sys.stderr)


def usage_error_text(error: Any) -> str:
    """What is wrong with the command line; `error` is a `USAGE_ERROR`."""
    if isinstance(error, typer.BadParameter) and error.param is not None:
        for pattern, expected in _EXPECTED:
            if found := pattern.fullmatch(error.message.removesuffix(".")):
                option = max(error.param.opts, key=len)
                return f'{option} is "{found[1]}", expected {_plain(found.expand(expected))}'
    # Of a missing argument the values follow, each on a line.
    text: str = error.format_message().partition(" Choose from:")[0]
    if found := _NEAR_OPTIONS.fullmatch(text):
        return _option_text(found[1], found[2].split(", "))
    # Of several names only the first and the last quote would be gone.
    text = text.replace("', '", ", ") if "Did you mean" in text else text
    for pattern, plain in _REWORDED:
        if found := pattern.fullmatch(text):
            return found.expand(plain)
    return text[:1].lower() + text[1:].removesuffix(".")


def _option_text(given: str, near: list[str]) -> str:
    """An option that begins with what was given is a better guess than one spelt similarly."""
    begun = [option for option in near if option.startswith(given)]
    return f"no option {given} ({', '.join(begun or near)}?)"


def _plain(expected: str) -> str:
    return plain_limits(expected).replace("'", "")
