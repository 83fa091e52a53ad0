"""The order of victims by priority and start (spec 01 §13.5)."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from kubestow.api.importance import (
    by_importance,
    earliest_start_ns,
    importance_key,
    start_time_ns,
)
from kubestow.api.meta import ObjectMeta
from kubestow.api.pod import Pod, PodSpec, PodStatus
from kubestow.api.pod_info import PodInfo
from kubestow.editions.v1_37.api.pod_info import PodInfoV137

HOUR_NS = 3_600 * 10**9
DAY_NS = 1_735_689_600 * 10**9  # 2025-01-01
NOW_NS = DAY_NS + 20 * HOUR_NS + 1


def make(name: str, priority: int | None, hour: int | None) -> PodInfo:
    start = None if hour is None else datetime(2025, 1, 1, hour, tzinfo=UTC)
    return PodInfo(
        Pod(
            metadata=ObjectMeta(name=name),
            spec=PodSpec(priority=priority),
            status=PodStatus(start_time=start),
        )
    )


@pytest.mark.parametrize(
    ("pods", "order", "earliest_hour"),
    [
        pytest.param([make("P", 10, 12), make("Q", 10, 11), make("R", 5, 9)], "QPR", 11, id="M1"),
        pytest.param([make("P", None, 12), make("Q", -5, 8)], "PQ", 12, id="M2-nil-is-zero"),
        pytest.param([make("P", 3, None), make("Q", 3, 10)], "QP", 10, id="M3-not-started"),
        pytest.param([make("R", 5, 9)], "R", 9, id="M4-single"),
        pytest.param(
            [make("B", 1, 9), make("A", 1, 9), make("C", 1, 8)], "CBA", 8, id="equals-keep-order"
        ),
    ],
)
def test_order_and_earliest_start(pods: list[PodInfo], order: str, earliest_hour: int) -> None:
    assert "".join(info.name for info in by_importance(pods, NOW_NS)) == order
    assert earliest_start_ns(pods, NOW_NS) == DAY_NS + earliest_hour * HOUR_NS


@pytest.mark.parametrize(
    ("pods", "order"),
    [
        pytest.param([make("A", 1, None), make("B", 1, None), make("C", 1, None)], "CBA", id="all"),
        pytest.param(
            [make("A", 1, None), make("B", 1, 9), make("C", 1, None), make("D", 2, None)],
            "DBCA",
            id="after-those-that-have-started",
        ),
        pytest.param(
            [make("A", 1, 23), make("B", 1, None), make("C", 1, None)],
            "CBA",
            id="before-later-ones",
        ),
    ],
)
def test_pods_that_have_not_started_are_reversed(pods: list[PodInfo], order: str) -> None:
    assert "".join(info.name for info in by_importance(pods, NOW_NS)) == order
    # v1.37 reads the clock once for each pod.
    later = [PodInfoV137(info.pod) for info in pods]
    names = [info.name for info in sorted(later, key=lambda info: importance_key(info, NOW_NS))]
    assert [info.name for info in by_importance(later, NOW_NS)] == names


def test_pod_not_started_counts_as_started_now() -> None:
    assert start_time_ns(Pod(), NOW_NS) == NOW_NS
    assert earliest_start_ns([make("P", 1, None)], NOW_NS) == NOW_NS


def test_start_is_exact_and_respects_time_zones() -> None:
    start = datetime(2025, 1, 1, 2, 0, 0, 1, tzinfo=timezone(timedelta(hours=2)))
    assert start_time_ns(Pod(status=PodStatus(start_time=start)), NOW_NS) == DAY_NS + 1_000
