"""Placement tests on a real control plane: each expectation has the verdict of the simulation.

Verdicts, and the messages of the pods that wait, must be equal; names and places of single pods
need not be, since among equal nodes the choice is random. With KUBESTOW_KEEP_VERDICTS what is found
is written beside the cases, for machines without a control plane
(tests/simulator/placement_tests/test_real_verdicts.py).
"""

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import msgspec
import pytest
from tests.e2e.control_plane.conftest import ControlPlane, control_plane, needs
from tests.e2e.control_plane.real_cluster import EVICTION_FLAGS, RealCluster, controller_manager
from tests.simulator.placement_tests.real_cases import (
    EDITIONS,
    VERDICTS,
    Outcome,
    cases_of,
    outcome_of,
    real_outcomes,
)

from kubestow.editions.edition import Version
from kubestow.simulator.placement_tests.cases import PlacementCase
from kubestow.simulator.placement_tests.judged import JudgedCluster
from kubestow.simulator.placement_tests.results import ExpectationVerdict
from kubestow.simulator.placement_tests.running import played

pytestmark = needs("kube-controller-manager", "kube-scheduler")

CASES = {edition: cases_of(edition) for edition in EDITIONS}
NAMES = sorted({name for cases in CASES.values() for name in cases})
GROUP_FLAGS = {
    Version.V1_36: ("GenericWorkload=true,GangScheduling=true", "v1alpha2"),
    Version.V1_37: ("GenericWorkload=true", "v1beta1"),
}


@pytest.fixture(scope="module", name="edition")
def _edition(server_minor: int) -> Version:
    found = next((each for each in EDITIONS if each == f"v1.{server_minor}"), None)
    if found is None:
        pytest.skip(f"there is no edition for v1.{server_minor}")
    return found


@pytest.fixture(scope="module", name="plane")
def _plane(edition: Version) -> Iterator[ControlPlane]:
    gates, version = GROUP_FLAGS[edition]
    flags = (f"--feature-gates={gates}", f"--runtime-config=scheduling.k8s.io/{version}=true")
    with control_plane(*flags, *EVICTION_FLAGS) as plane, controller_manager(plane):
        yield plane


@pytest.fixture(scope="module", name="outcomes")
def _outcomes(edition: Version) -> Iterator[dict[str, Outcome]]:
    """What is found, by case; kept at the end if that is asked for."""
    found: dict[str, Outcome] = {}
    yield found
    if "KUBESTOW_KEEP_VERDICTS" in os.environ:
        kept = dict(real_outcomes()) if VERDICTS.exists() else {}
        kept[edition] = dict(sorted({**kept.get(edition, {}), **found}.items()))
        content = msgspec.json.format(msgspec.json.encode(dict(sorted(kept.items()))), indent=1)
        VERDICTS.write_bytes(content + b"\n")


@pytest.mark.parametrize("name", NAMES)
def test_verdicts_are_those_of_a_real_cluster(
    name: str, edition: Version, plane: ControlPlane, outcomes: dict[str, Outcome]
) -> None:
    case = CASES[edition].get(name)
    if case is None:
        pytest.skip(f"is for another edition than {edition}")

    @contextmanager
    def really_played(
        case: PlacementCase,
    ) -> Generator[tuple[JudgedCluster, list[ExpectationVerdict]]]:
        cluster = RealCluster(case, plane)
        try:
            cluster.start()
            verdicts = [verdict for step in case.steps for verdict in cluster.play(step)]
            yield cluster, verdicts
        finally:
            cluster.close()

    outcomes[name] = outcome_of(case, really_played)
    assert outcome_of(case, played) == outcomes[name]
