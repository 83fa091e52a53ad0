"""What users see of a command line that cannot be used: one line, and how to get help.

Typer's own texts come from the library that checks values ("Value error, …", "unable to parse
string as an integer"); here they become plain, and name the option and the value.
"""

import re
import sys
from typing import Any, Final

import typer

from kubestow.redaction import without_secrets

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
_EXPECTED: Final = {
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "greater_than_equal": "{ge:g} or more",
    "less_than_equal": "{le:g} or less",
}
_CHOICES: Final = re.compile(r"Value error, '.*' is not one of (.*?)\.?")


def print_error(text: str, command: str = "") -> None:
    """Print an error and how to get help, on standard error."""
    text = without_secrets(text)
    program = f"kubestow {command}" if command else "kubestow"
    if len(text) > TEXT_LENGTH_MAX:
        text = f"{text[:TEXT_LENGTH_MAX]}…"
    print(f"kubestow: error: {text}", file=sys.stderr)
    print(f"run '{program} --help' for its options", file=sys.stderr)


def usage_error_text(error: Any) -> str:
    """What is wrong with the command line; `error` is a `USAGE_ERROR`."""
    find_details = getattr(error.__cause__, "errors", None)
    if find_details is not None and error.param is not None:
        return _value_text(max(error.param.opts, key=len), find_details()[0])
    text: str = error.format_message()
    if found := _NEAR_OPTIONS.fullmatch(text):
        return _option_text(found[1], found[2].split(", "))
    for pattern, plain in _REWORDED:
        if found := pattern.fullmatch(text):
            return found.expand(plain)
    return text[:1].lower() + text[1:].removesuffix(".")


def _option_text(given: str, near: list[str]) -> str:
    """An option that begins with what was given is a better guess than one spelt similarly."""
    begun = [option for option in near if option.startswith(given)]
    return f"no option {given} ({', '.join(begun or near)}?)"


def _value_text(option: str, detail: dict[str, Any]) -> str:
    expected = _EXPECTED.get(detail["type"])
    if expected is not None:
        expected = expected.format_map(detail.get("ctx", {}))
    elif found := _CHOICES.fullmatch(detail["msg"]):
        expected = "one of " + found[1].replace("'", "")
    else:
        expected = f"another value: {detail['msg']}"
    return f'{option} is "{detail["input"]}", expected {expected}'
