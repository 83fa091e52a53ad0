"""The cases that are judged on a real control plane, and what was found there.

The files are in tests/e2e/control_plane/placements. `verdicts.json` beside them is written by the
control-plane tests: it has what a real kube-scheduler did, not what a simulation does.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from kubestow.editions.edition import Version
from kubestow.simulator.placement_tests.cases import PlacementCase
from kubestow.simulator.placement_tests.for_each import failures_of, verdicts_after
from kubestow.simulator.placement_tests.judged import JudgedCluster, message_of
from kubestow.simulator.placement_tests.reading import find_tests, read_test
from kubestow.simulator.placement_tests.results import ExpectationVerdict

FOLDER = Path(__file__).parents[2] / "e2e" / "control_plane" / "placements"
VERDICTS = FOLDER / "verdicts.json"
EDITIONS = (Version.V1_36, Version.V1_37)


class Outcome(msgspec.Struct, frozen=True):
    """What came of a case.

    verdicts  whether each expectation holds, in the order in which they are judged
    waiting   the messages of the pods that wait at the end
    failures  of a forEach: the verdicts after each failure
    """

    verdicts: list[bool]
    waiting: list[str]
    failures: dict[str, list[bool]] = {}


Played = AbstractContextManager[tuple[JudgedCluster, list[ExpectationVerdict]]]


def cases_of(edition: Version) -> dict[str, PlacementCase]:
    """All cases for an edition, by name: files for other ones have none."""
    found: dict[str, PlacementCase] = {}
    for path in find_tests([FOLDER]):
        for case in read_test(path):
            if case.matrix.get("edition", edition) == edition:
                variant = msgspec.structs.replace(case.variant, name=edition, version=edition)
                found[case.name] = msgspec.structs.replace(case, variant=variant)
    return found


def outcome_of(case: PlacementCase, play: Callable[[PlacementCase], Played]) -> Outcome:
    """Play a case, and then each of its failures from the start, and judge what is found."""
    with play(case) as (cluster, verdicts):
        verdicts = [*verdicts, *map(cluster.judge, case.expectations)]
        waiting = [message_of(pod) for pod in cluster.all_pods() if not pod.spec.node_name]
        tried = failures_of(cluster)
    failures: dict[str, list[bool]] = {}
    for failure in tried:
        with play(case) as (cluster, _):
            failures[failure.name] = [each.holds for each in verdicts_after(cluster, failure)]
    return Outcome([each.holds for each in verdicts], sorted(waiting), failures)


def real_outcomes() -> Mapping[str, dict[str, Outcome]]:
    """What was found on real control planes, by edition and case."""
    return msgspec.json.decode(VERDICTS.read_bytes(), type=dict[str, dict[str, Outcome]])
