"""Numbers of things in texts for people."""


def counted(number: int, noun: str) -> str:
    """For example "1 node" and "1,200 nodes"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
