"""Many waiting pods in words: the causes, then the changes that help most pods."""

from kubestow.explain.command_lines import command_lines
from kubestow.explain.many_explanation import Cause, ManyExplanation, SharedRemedy
from kubestow.plural import counted
from kubestow.redaction import printable
from kubestow.table import wrapped_line

_INDENT = "  "


def many_lines(
    explanation: ManyExplanation, *, is_wide: bool = False, width: int | None = None
) -> list[str]:
    """The lines; with `is_wide` the pods that are named, too. Without a width none is wrapped."""
    lines = wrapped_line(explanation.summary, width)
    if explanation.causes:
        lines += ["", "Why they wait"]
    for cause in explanation.causes:
        for line in _cause(cause, is_wide=is_wide):
            lines += wrapped_line(line, width)
    if explanation.remedies:
        lines += ["", "What helps most of them, all placed together"]
    for number, remedy in enumerate(explanation.remedies, start=1):
        lines += _remedy(number, remedy, is_wide=is_wide, width=width)
    return [printable(line) for line in lines]


def _cause(cause: Cause, *, is_wide: bool) -> list[str]:
    lines = [f"{_INDENT}{counted(cause.count, 'pod')}: {cause.text}"]
    lines += [f"{_INDENT * 2}{each}" for each in cause.evidence]
    owners = [f"{each.owner} ({each.count})" for each in cause.owners]
    rest = cause.count - sum(each.count for each in cause.owners)
    more = f" and others ({rest})" if rest else ""
    if owners:
        lines.append(f"{_INDENT * 2}of {', '.join(owners)}{more}")
    if is_wide or not owners:
        lines.append(f"{_INDENT * 2}{', '.join(cause.pods)}")
    return lines


def _remedy(number: int, remedy: SharedRemedy, *, is_wide: bool, width: int | None) -> list[str]:
    placed = f"places {remedy.places} of {counted(remedy.of, 'pod')}"
    lines = wrapped_line(f"{_INDENT}{number}. {remedy.text}: {placed}", width)
    if remedy.effect:
        lines += wrapped_line(f"{_INDENT}   {remedy.effect}", width)
    for command in remedy.commands:
        lines += command_lines(command, f"{_INDENT}   ", width, is_wide=is_wide)
    if is_wide:
        lines += wrapped_line(f"{_INDENT}   {', '.join(remedy.pods)}", width)
    return lines
