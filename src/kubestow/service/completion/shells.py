"""What shells send when TAB is pressed, and how they read the answer.

The scripts of the shells are Typer's (`--install-completion`), so what is exchanged with them is
Typer's as well: the words so far in variables, the answer on standard output.
"""

import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from kubestow.service.completion.words import TypedLine, Word, completions

# What cobra, the library of kubectl, reads: the default, and no names of files.
_DEFAULT: Final = ":0"
_NO_FILES: Final = ":4"


def complete_for_shell(shell: str, environ: Mapping[str, str]) -> int:
    """Print the words that can follow, as the shell reads them; the exit code."""
    answer = _SHELLS.get(shell)
    return 1 if answer is None else answer(environ)


def complete_for_cobra(words: Sequence[str]) -> None:
    """Print the words for kubectl; the last one given is incomplete."""
    *given, incomplete = words or [""]
    found = _found(given, incomplete)
    _print([*_with_help(found), _NO_FILES if found else _DEFAULT])


def _bash(environ: Mapping[str, str]) -> int:
    words = _split(environ.get("COMP_WORDS", ""))
    current = int(environ.get("COMP_CWORD", "0"))
    # Bash makes words of their own of = and what follows it, and replaces only the last of them.
    given, incomplete = _joined(words[1:current], "".join(words[current : current + 1]))
    before, equals, _ = incomplete.rpartition("=")
    _print([word.text.removeprefix(before + equals) for word in _found(given, incomplete)])
    return 0


def _zsh(environ: Mapping[str, str]) -> int:
    found = _found(*_typed(environ))
    lines = [
        f'"{_quoted(word.text)}":"{_quoted(word.help)}"' if word.help else f'"{_quoted(word.text)}"'
        for word in found
    ]
    _print(["_arguments '*: :((" + "\n".join(lines) + "))'" if lines else "_files"])
    return 0


def _fish(environ: Mapping[str, str]) -> int:
    found = _found(*_typed(environ))
    if environ.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":
        # Whether there is anything but files.
        return 0 if found else 1
    _print(_with_help(found))
    return 0


def _powershell(environ: Mapping[str, str]) -> int:
    words = _split(environ.get("_TYPER_COMPLETE_ARGS", ""))
    incomplete = environ.get("_TYPER_COMPLETE_WORD_TO_COMPLETE", "")
    found = _found(words[1:-1] if incomplete else words[1:], incomplete)
    _print([f"{word.text}:::{word.help or ' '}" for word in found])
    return 0


_SHELLS: Final[dict[str, Callable[[Mapping[str, str]], int]]] = {
    "bash": _bash,
    "zsh": _zsh,
    "fish": _fish,
    "powershell": _powershell,
    "pwsh": _powershell,
}


def _with_help(words: Sequence[Word]) -> list[str]:
    return [f"{word.text}\t{word.help}" if word.help else word.text for word in words]


def _print(lines: Sequence[str]) -> None:
    with suppress(BrokenPipeError):
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()


def _found(given: Sequence[str], incomplete: str) -> list[Word]:
    return completions(given, incomplete, _objects)


def _objects(kind: str, line: TypedLine, incomplete: str) -> Sequence[str]:
    """Imported when it is needed: it loads most of the program."""
    from kubestow.service.completion.objects import object_names

    return object_names(kind, line, incomplete)


def _typed(environ: Mapping[str, str]) -> tuple[list[str], str]:
    text = environ.get("_TYPER_COMPLETE_ARGS", "")
    given = _split(text)[1:]
    if given and not text.endswith(" "):
        return given[:-1], given[-1]
    return given, ""


def _split(text: str) -> list[str]:
    """The words of a line that need not be complete."""
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    try:
        words.extend(lexer)
    except ValueError:  # A quote is not closed, or the line ends with a backslash.
        words.append(lexer.token)
    return words


def _joined(given: Sequence[str], incomplete: str) -> tuple[list[str], str]:
    """A name, = and its value as one word."""
    words: list[str] = []
    for word in (*given, incomplete):
        if words and (word.startswith("=") or words[-1].endswith("=")):
            words[-1] += word
        else:
            words.append(word)
    return words[:-1], words[-1]


def _quoted(text: str) -> str:
    """The text for zsh, where it stands inside two kinds of quotes in a list of value:help."""
    text = text.replace('"', '""').replace("'", "''")
    return re.sub(r"([$`])", r"\\\1", text).replace(":", r"\\:")
