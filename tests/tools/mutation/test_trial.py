"""A change is found by a test that runs it, and what is left of the copy is the original."""

from pathlib import Path

import pytest

from tools.mutation.reach import KnownTest, ReachMap
from tools.mutation.sites import Site, sites_in
from tools.mutation.trial import TrialRunner, stages_of

SOURCE = b"def positive(number):\n    return number > 0\n"
PATH = "src/numbers_of.py"


def a_test(name: str, seconds: float = 0.1, line: int = 2) -> KnownTest:
    return KnownTest(name, seconds, {"src/kubestow/queue/moves.py": [line]})


def test_tests_nearby_run_first_then_recorded_decisions_then_short_ones() -> None:
    names = {
        "tests/queue/test_moves.py::a": 0.5,
        "tests/queue/test_queue.py::b": 0.1,
        "tests/simulator/conformance/test_recorded.py::c": 9.0,
        "tests/engine/test_decide.py::d": 0.1,
        "tests/engine/test_bind.py::e": 0.2,
        "tests/service/test_run.py::f": 90.0,
    }
    reach = ReachMap([a_test(name, seconds) for name, seconds in reversed(names.items())])
    site = Site("src/kubestow/queue/moves.py", 2, "constant", 0, 0, b"")
    near, others = stages_of(site, reach, 60.0)
    assert [test.name for test in near + others] == list(names)[:-1]


def test_what_only_an_import_runs_needs_any_test_of_the_file_or_any_at_all() -> None:
    other = KnownTest("tests/api/test_pod.py::b", 0.1, {})
    reach = ReachMap([a_test("tests/queue/test_moves.py::a"), other])
    assert [test.name[-1] for test in reach.tests_of(("src/kubestow/queue/moves.py", 1))] == ["a"]
    assert len(reach.tests_of(("src/kubestow/api/pod.py", 1))) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("argument", "found_by"),
    [pytest.param(0, "FAILED tests/test_numbers.py::test_it", id="found"), (7, "")],
)
def test_a_change_is_found_or_survives(tmp_path: Path, argument: int, found_by: str) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / PATH).write_bytes(SOURCE)
    (tmp_path / "tests" / "test_numbers.py").write_text(
        "from numbers_of import positive\n"
        f"def test_it():\n    assert positive({argument}) is {argument > 0}\n"
    )
    (site,) = (site for site in sites_in(PATH, SOURCE) if site.kind == "comparison")
    reach = ReachMap([KnownTest("tests/test_numbers.py::test_it", 0.1, {PATH: [2]})])
    with TrialRunner(tmp_path) as bench:
        assert bench.run_trial(site, reach).found_by == found_by
    assert (tmp_path / PATH).read_bytes() == SOURCE
    assert not list((tmp_path / "src" / "__pycache__").glob("*"))
