"""Options that are subcommands by now: for one version they still work, with a warning."""

import sys
from collections.abc import Container
from typing import Final

_OPTIONS: Final = {
    "--soak": "soak",
    "--gangs": "gangs",
    "--day": "day",
    "--explain": "explain",
    "--simulate": "simulate",
    "--compatibility": "simulate",
}
# Is an option of the subcommand.
_KEPT: Final = "--compatibility"


def with_subcommand(arguments: list[str], subcommands: Container[str]) -> list[str]:
    """The arguments of `bench`, with a subcommand in place of an option that was one.

    A value becomes an argument: `--soak 10m` is `soak 10m`.
    """
    if arguments and arguments[0] in subcommands:
        return arguments
    for option, subcommand in _OPTIONS.items():
        for position, word in enumerate(arguments):
            name, equals, value = word.partition("=")
            if name == option:
                text = f"{option} of kubestow bench is now kubestow bench {subcommand}"
                print(f"kubestow: warning: {text}", file=sys.stderr)
                kept = [word] if option == _KEPT else [value] if equals else []
                return [subcommand, *arguments[:position], *kept, *arguments[position + 1 :]]
    return arguments
