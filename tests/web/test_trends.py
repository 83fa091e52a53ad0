"""What happened over time at several widths, and how much of nodes is in use."""

import asyncio

import numpy as np
from tests.web.followed_cluster import followed_cluster

from kubestow.cluster.resources import PODS
from kubestow.simulator.virtual_time import run_in_virtual_time
from kubestow.testing import make_node, make_pod
from kubestow.web.protocol import NodeRow, SeriesPoint
from kubestow.web.trends import POINTS_MAX, WIDTHS_MS, Trends, UseSums, trend_of

ZONE = "topology.kubernetes.io/zone"


def second(number: int, scheduled: int, failed: int = 0):
    point = SeriesPoint(number * 1000, scheduled, failed, 0, 1.0, 2.0, (number,))
    return trend_of(point, evicted=1, causes=((1, number),), use=((500,),))


def test_wider_points_are_sums_of_seconds() -> None:
    trends = Trends()
    for number in range(25):
        trends.add(second(number, scheduled=number, failed=1))
    first, middle, last = trends._levels[1]
    assert [point.time for point in (first, middle, last)] == [0, 10_000, 20_000]
    assert (first.scheduled, middle.scheduled, last.scheduled) == (45, 145, 110)
    assert (first.failed, first.evicted, first.places) == (10, 10, (9,))
    assert (first.p50_ms, first.p99_ms) == (1.0, 2.0)


def test_the_current_second_replaces_itself() -> None:
    trends = Trends()
    for scheduled in (1, 4, 6):
        trends.add(second(3, scheduled))
    for points in trends._levels:
        assert [(point.scheduled, point.evicted) for point in points] == [(6, 1)]


def test_each_width_keeps_its_newest_points() -> None:
    trends = Trends()
    for number in range(3 * POINTS_MAX):
        trends.add(second(number, 1))
    assert [len(points) for points in trends._levels] == [720, 216, 36, 4, 1]


def test_the_finest_width_that_reaches_back_is_taken() -> None:
    trends, end = Trends(), 3 * POINTS_MAX * 1000
    for number in range(1, 3 * POINTS_MAX):
        trends.add(second(number, 1))

    def asked(begin_ms: int) -> tuple[int, int]:
        found = trends.between(begin_ms, end, ())
        assert len(found.points) <= POINTS_MAX + 1
        return found.width_ms, sum(point.scheduled for point in found.points[1:])

    assert asked(end - 60_000) == (WIDTHS_MS[0], 60)
    assert asked(0)[0] == WIDTHS_MS[1]
    assert sum(point.scheduled for point in trends.between(0, end, ()).points) == 2159


def test_use_equals_that_of_all_nodes_added_up() -> None:
    rng = np.random.default_rng(5)
    sums, nodes = UseSums(("pool", ZONE)), dict[int, NodeRow]()
    for _ in range(200):
        number = int(rng.integers(12))
        groups = (f"pool-{number % 2}", f"zone-{number % 3}")
        amounts = tuple(int(each) for each in rng.integers(1, 50, 2))
        used = tuple(int(each) for each in rng.integers(0, 50, 2))
        new = NodeRow(number, "n", groups, False, True, (), amounts, used, 0)
        new = new if rng.random() < 0.8 else None
        sums.replace(nodes.pop(number, None), new)
        if new is not None:
            nodes[number] = new
    for group, shares in zip(sums.groups(), sums.shares(), strict=True):
        at = {"pool": 0, ZONE: 1}.get(group.key, 0)
        rows = [row for row in nodes.values() if not group.key or row.groups[at] == group.value]
        for index, share in enumerate(shares):
            allocatable = sum(row.allocatable[index] for row in rows)
            requested = sum(row.requested[index] for row in rows)
            assert share == (requested * 1000 // allocatable if allocatable else -1)
    assert {group.key for group in sums.groups()} == {"", "pool", ZONE}


def test_use_falls_when_a_pod_ends_though_none_is_tried() -> None:
    async def main() -> None:
        async with followed_cluster(make_node("n", cpu="4")) as cluster:
            await cluster.follower.start()
            cluster.add(make_pod("a", cpu="2"))
            await cluster.settle()
            now_ms = cluster.follower.now_ms()
            assert cluster.follower.trends_between(0, now_ms).points[-1].use[0][0] == 500
            await asyncio.sleep(5)
            cluster.store.delete(PODS, "default", "a", grace_period_s=0)
            await cluster.settle()
            now_ms = cluster.follower.now_ms()
            assert cluster.follower.trends_between(0, now_ms).points[-1].use[0][0] == 0

    run_in_virtual_time(main())
