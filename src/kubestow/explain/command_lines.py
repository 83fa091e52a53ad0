"""Commands of a shell in words that are copied: continued lines, never a broken word."""

import re

# A word of a shell: quotes, escaped characters and all else that is no space.
_WORD = re.compile(r"""(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s])+""")
_HANGING = "    "
_CONTINUED = " \\"


def command_lines(
    command: str, indent: str, width: int | None, *, prompt: str = "$ ", is_wide: bool = False
) -> list[str]:
    """The command after a prompt, on as many lines as the width asks for; without a width on one.

    Lines end as a shell continues them, so that they can be copied as they are; a word that is
    longer than a line has a line of its own. Whole objects are shown with `is_wide`, from the start
    of a line, as a shell reads them; else only the first line is.
    """
    first, _, rest = command.partition("\n")
    if rest and is_wide:
        return [f"{indent}{prompt}{first}", *rest.split("\n")]
    line = f"{indent}{prompt}{first}" + (" …" if rest else "")
    if width is None or len(line) <= width:
        return [line]
    words = [*_WORD.findall(first), *(["…"] if rest else [])]
    lines = [f"{indent}{prompt}{words[0]}"]
    for number, word in enumerate(words[1:], start=2):
        end = "" if number == len(words) else _CONTINUED
        if len(f"{lines[-1]} {word}{end}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(f"{indent}{_HANGING}{word}")
    return [f"{each}{_CONTINUED}" for each in lines[:-1]] + lines[-1:]
