"""The simulation judges as a real control plane did: what was found there is in a file.

tests/e2e/control_plane/test_placement_tests.py writes the file, where there are the binaries.
"""

from collections import defaultdict

import pytest
from tests.simulator.placement_tests.real_cases import (
    EDITIONS,
    cases_of,
    outcome_of,
    real_outcomes,
)

from kubestow.editions.edition import Version
from kubestow.simulator.placement_tests.document import ExpectEntry
from kubestow.simulator.placement_tests.running import RunOptions, played, run_case

CASES_MIN = 60


@pytest.mark.slow
@pytest.mark.parametrize("edition", EDITIONS)
def test_verdicts_and_messages_are_those_of_a_real_cluster(edition: Version) -> None:
    cases, real = cases_of(edition), real_outcomes()[edition]
    assert len(cases) >= CASES_MIN
    assert {name: outcome_of(case, played) for name, case in cases.items()} == real


@pytest.mark.slow
def test_every_kind_of_expectation_holds_and_fails_in_some_case() -> None:
    found: dict[str, set[bool]] = defaultdict(set)
    for case in cases_of(EDITIONS[0]).values():
        result = run_case(case, RunOptions(explains=False))
        # Neither an error, nor a limit that was reached.
        assert not result.error, result.name
        assert not result.notes, result.notes
        for verdict in result.verdicts:
            found[verdict.kind].add(verdict.holds)
    assert set(found) == set(ExpectEntry.__struct_encode_fields__)
    assert all(verdicts == {True, False} for verdicts in found.values()), found
