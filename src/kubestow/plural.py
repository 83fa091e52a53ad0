"""Numbers of things, and lists of them, in texts for people."""

from collections.abc import Sequence


def counted(number: int, noun: str) -> str:
    """A number with its noun, such as "1 node", "1,200 nodes" or "2 copies"."""
    return f"{number:,} {plural(noun, number)}"


def plural(noun: str, number: float) -> str:
    """The noun as it follows the number."""
    if number == 1:
        return noun
    return f"{noun.removesuffix('y')}ies" if noun.endswith("y") else f"{noun}s"


def some_of(texts: Sequence[str], most: int) -> str:
    """The first ones, for example "a, b and 3 more"."""
    shown = ", ".join(texts[:most])
    return f"{shown} and {len(texts) - most} more" if len(texts) > most else shown
