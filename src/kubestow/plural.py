"""Numbers of things in texts for people."""


def counted(number: int, noun: str) -> str:
    """For example "1 node", "1,200 nodes" and "2 copies"."""
    return f"{number:,} {plural(noun, number)}"


def plural(noun: str, number: float) -> str:
    """The noun as it follows the number."""
    if number == 1:
        return noun
    return f"{noun.removesuffix('y')}ies" if noun.endswith("y") else f"{noun}s"
