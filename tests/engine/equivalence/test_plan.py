"""Which plugins have their answers reused follows from what they declare."""

from collections.abc import Callable, Hashable
from typing import Any

import pytest

from kubestow.api.pod_info import PodInfo
from kubestow.engine.equivalence.plan import ReusePlan
from kubestow.framework.reuse import ASKED, Concern, PodReads, Reads, Reuse, VersionedBasis
from kubestow.testing import make_plugin, make_pod, make_profile

POD = PodInfo(make_pod())
FILTER: dict[str, Any] = {"filter": lambda *_: None, "filter_status": lambda *_: None}
SCORE: dict[str, Any] = {"score": lambda *_: 0}
PRE_FILTER: dict[str, Any] = {"pre_filter": lambda *_: None}


@pytest.mark.parametrize(
    ("points", "reuse", "is_reused"),
    [
        pytest.param(FILTER, None, False, id="no-declaration"),
        pytest.param(FILTER, Reuse(filter=Reads.NODE), True, id="filter"),
        pytest.param(FILTER, Reuse(score=Reads.NODE), False, id="filter-declared-for-score"),
        pytest.param(SCORE, Reuse(score=Reads.PODS), True, id="score"),
        pytest.param(FILTER | SCORE, Reuse(filter=Reads.NODE), False, id="one-of-two"),
        pytest.param(FILTER | SCORE, Reuse(Reads.NODE, Reads.NODE), True, id="both"),
        pytest.param(PRE_FILTER, None, False, id="pre-filter-without-declaration"),
        pytest.param(
            FILTER, Reuse(filter=Reads.NODE, basis=lambda pod: ASKED), False, id="excepted"
        ),
        pytest.param(
            FILTER, Reuse(filter=Reads.NODE, basis=lambda pod: None), True, id="not-excepted"
        ),
    ],
)
def test_reused(points: dict[str, Any], reuse: Reuse | None, is_reused: bool) -> None:
    declared = {} if reuse is None else {"reuse": reuse}
    plan = ReusePlan(make_profile(make_plugin("P", **points, **declared)))
    assert plan.reused(POD) == ({"P"} if is_reused else set())


def test_versions_are_those_of_plugins_that_may_be_reused() -> None:
    versions = {"A": 1, "B": 2}

    def basis(version: Callable[[], Hashable]) -> VersionedBasis:
        return VersionedBasis(lambda pod: None, version)

    plan = ReusePlan(
        make_profile(
            make_plugin("A", **FILTER, reuse=Reuse(Reads.NODE, basis=basis(lambda: versions["A"]))),
            make_plugin("B", **FILTER, reuse=Reuse(score=Reads.NODE, basis=basis(lambda: 1 / 0))),
            make_plugin("C", **FILTER),
        )
    )
    assert [value for _, value in plan.versions()] == [1]
    versions["A"] = 3
    assert [value for _, value in plan.versions()] == [3]


@pytest.mark.parametrize(
    ("concern", "skips"),
    [
        pytest.param(Concern.BOTH, (False, False), id="concerned"),
        pytest.param(Concern.SCORE, (True, False), id="by-its-score-alone"),
        pytest.param(Concern.FILTER, (False, True), id="by-its-filter-alone"),
        pytest.param(Concern.NOTHING, (True, True), id="unconcerned"),
    ],
)
def test_skipped(concern: Concern, skips: tuple[bool, bool]) -> None:
    other = Reuse(Reads.PODS, Reads.PODS, PodReads.CLUSTER)
    reuse = other._replace(basis=lambda pod: concern)
    plan = ReusePlan(
        make_profile(
            make_plugin("A", **FILTER, **SCORE, reuse=other),
            make_plugin("B", **FILTER, **SCORE, reuse=reuse),
        )
    )
    skipped = plan.skipped(POD)
    assert ("B" in skipped.filter, "B" in skipped.score) == skips
    assert "A" not in skipped.filter | skipped.score
    assert plan.skipped(POD) is skipped
