"""Errors of an expression: before it runs, and while it runs."""


class CelError(Exception):
    """An evaluation ended without a value. The text is what the user sees."""


class CompileError(Exception):
    """An expression that cannot be run: it does not parse, or its types do not match."""


def located(source: str, offset: int, message: str) -> CompileError:
    """The error with its source line and a mark below the position."""
    before = source[:offset]
    line_number = before.count("\n") + 1
    column = offset - (before.rfind("\n") + 1)
    line = source.split("\n")[line_number - 1]
    return CompileError(
        f"compilation failed: ERROR: <input>:{line_number}:{column + 1}: {message}\n"
        f" | {line}\n | {'.' * column}^"
    )
