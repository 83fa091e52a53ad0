"""Which statements ran is stored without changing what they do."""

from typing import Any

from tools.mutation.reach import (
    KnownTest,
    ReachFile,
    forget,
    instrumented,
    ran_statements,
)

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


def test_tests_run_again_after_they_or_what_they_run_changed() -> None:
    sources = {"src/a.py": "1", "src/b.py": "1"}
    test_files = {"tests/test_a.py": "1", "tests/test_b.py": "1", "tests/test_gone.py": "1"}
    tests = [
        KnownTest("tests/test_a.py::a", 0.1, {"src/a.py": [1]}),
        KnownTest("tests/test_b.py::b", 0.1, {"src/b.py": [1]}),
        KnownTest("tests/test_gone.py::c", 0.1, {}),
    ]

    def kept_after(*, source: str = "1", test: str = "1") -> list[str]:
        record = ReachFile(dict(sources), dict(test_files), {each.name: each for each in tests})
        now = {"tests/test_a.py": test, "tests/test_b.py": "1"}
        forget(record, sources | {"src/b.py": source}, now)
        assert sorted(record.test_files) == sorted(each.file for each in record.tests.values())
        return [name[-1] for name in record.tests]

    assert kept_after() == ["a", "b"]
    assert kept_after(source="2") == ["a"]
    assert kept_after(test="2") == ["b"]
