"""Which statements ran is stored without changing what they do."""

from typing import Any

from kubestow.testing.mutation.reach import instrumented, ran_statements

SOURCE = '''"""Why."""

LIMIT = 3


def kept(number):
    """Docs."""
    if number < LIMIT:
        return number
    try:
        return 1 // (number - 4)
    except ZeroDivisionError:
        return LIMIT
'''


def test_the_statements_that_run_are_stored() -> None:
    statements: list[tuple[str, int]] = []
    names: dict[str, Any] = {}
    exec(instrumented(SOURCE, "m.py", statements), names)

    def lines_of(number: int) -> tuple[int, list[int]]:
        ran = ran_statements()
        before = bytes(ran)
        try:
            ran[:] = bytes(len(ran))
            result = names["kept"](number)
            return result, sorted(line for n, (_, line) in enumerate(statements) if ran[n])
        finally:
            ran[:] = before

    assert lines_of(2) == (2, [8, 9])
    assert lines_of(5) == (1, [8, 10, 11])
    assert lines_of(4) == (3, [8, 10, 11, 13])
    assert names["__doc__"] == "Why."
    assert names["kept"].__doc__ == "Docs."
