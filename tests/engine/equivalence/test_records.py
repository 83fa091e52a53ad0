"""What is kept between pods, which pods share it, and when it is made and dropped."""

import gc
import weakref
from itertools import count
from typing import Any, cast

import numpy as np
import pytest
from tests.engine.equivalence.sides import SERVING_A, Side, describe, new_node, new_pod

from kubestow.api.device import DeviceClass
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.cache.cache import Cache
from kubestow.cache.numbering import numbered_max
from kubestow.cache.objects import ClusterObjects
from kubestow.engine.equivalence import records
from kubestow.engine.equivalence.evaluation import ReusingEvaluation
from kubestow.engine.equivalence.plan import ReusePlan
from kubestow.engine.equivalence.preparation import build_frame, build_record
from kubestow.engine.equivalence.record import Record
from kubestow.engine.equivalence.records import Records
from kubestow.framework.attempt_timer import AttemptTimer
from kubestow.framework.metrics import PRE_FILTER, PRE_SCORE
from kubestow.framework.node_plugin import NodeFilter
from kubestow.framework.plugin import StatusCodes
from kubestow.framework.reuse import Reads, Reuse
from kubestow.index.nodes import nodes_of
from kubestow.testing import make_node, make_pod


def records_of_twenty_nodes() -> tuple[Side, Records]:
    cache, side = Cache(), Side(reuses_answers=True)
    for number in range(20):
        cache.add_node(new_node(number, number))
    side.snapshot.refresh(cache)
    return side, Records(side.snapshot)


@pytest.mark.parametrize(("pods", "is_bought"), [(3, False), (4, True)])
def test_a_record_is_bought_once_asking_has_cost_as_much(pods: int, is_bought: bool) -> None:
    side, kept = records_of_twenty_nodes()
    pod = PodInfo(make_pod("p", cpu=1))
    for _ in range(pods):
        kept.evaluation(side.profile, pod)
        # So few that three attempts pay for it.
        paid = records.building(20, by_numbers=True) // 3 + 1
        kept.looked_at(paid - records.asking(0, fits=True, by_numbers=True))
    assert bool(next(reversed(kept._records.values())).kept) == is_bought


@pytest.mark.parametrize(
    ("looked_at", "changes", "has_record"),
    [
        pytest.param(20, 8, [True], id="few-changes"),
        pytest.param(20, 300, [False], id="asking-costs-less"),
        pytest.param(2_000, 300, [True], id="asking-costs-more"),
        # The first attempts after many changes ask; once they have cost as much as following the
        # changes, the record is followed again.
        pytest.param(20, [300, 1, 1], [False, False, True], id="worth-it-after-a-while"),
        pytest.param(20, [300] * 9, [False] * 9, id="never-worth-it"),
    ],
)
def test_a_record_is_followed_where_it_costs_less_than_asking(
    looked_at: int, changes: int | list[int], has_record: list[bool]
) -> None:
    side, kept = records_of_twenty_nodes()
    pod = PodInfo(make_pod("p", cpu=1))

    def evaluate() -> Record | None:
        evaluation = kept.evaluation(side.profile, pod)
        assert isinstance(evaluation, ReusingEvaluation)
        kept.looked_at(looked_at)
        return evaluation._record

    while evaluate() is None:
        pass
    found: list[bool] = []
    for number in [changes] if isinstance(changes, int) else changes:
        for _ in range(number):
            side.snapshot.log.note_pods(0)
        found.append(evaluate() is not None)
    assert found == has_record


def test_pods_too_large_to_keep_anything_of_are_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_LARGE_BYTES", 10)
    cache, side = Cache(), Side(reuses_answers=True)
    cache.add_node(new_node(0, 0))
    for number in range(3):
        assert side.decide(cache, PodInfo(make_pod(f"p{number}"))).node_name
    assert side.decider._records is not None
    assert not side.decider._records._frames


def test_pods_of_one_outline_have_one_place() -> None:
    cache, side = Cache(), Side(reuses_answers=True)
    cache.add_node(new_node(0, 0))
    side.snapshot.refresh(cache)
    kept = Records(side.snapshot)
    for number in range(1, 20):
        kept.evaluation(side.profile, PodInfo(make_pod(f"p{number}", cpu=number)))
    assert len(kept._places) == 1
    assert len(kept._records) == 19


def test_applications_that_rules_about_nodes_do_not_distinguish_share_a_frame() -> None:
    cache, side = Cache(), Side(reuses_answers=True)
    cache.add_node(make_node("a", images={"known:latest": 1 << 30}))
    side.snapshot.refresh(cache)
    kept = Records(side.snapshot)
    for number, image in enumerate(("x", "y", "z", "known", "known")):
        pod = PodInfo(make_pod(f"p{number}", image=f"{image}:latest", cpu=number))
        kept.evaluation(side.profile, pod)
        kept.looked_at(1)
    assert len(kept._frames) == 2


def test_a_node_that_gets_an_image_distinguishes_pods_that_name_it() -> None:
    cache, reusing, plain = Cache(), Side(reuses_answers=True), Side(reuses_answers=False)
    for name in "ab":
        cache.add_node(make_node(name))
    for number in range(6):
        if number == 3:
            cache.update_node(make_node("b"), make_node("b", images={"x:latest": 1 << 30}))
        pod = PodInfo(make_pod(f"p{number}", image="x" if number % 2 else "y"))
        decisions = [side.decide(cache, pod) for side in (reusing, plain)]
        totals = [one.scores.total.tolist() for one in decisions if one.scores is not None]
        assert totals[0] == totals[1]


def kept_records(side: Side) -> list[Record]:
    assert side.decider._records is not None
    kept = [account.kept for account in side.decider._records._records.values()]
    return [record for record in kept if record is not None]


@pytest.mark.parametrize(
    ("kinds", "record_count"),
    [
        pytest.param([{"image": "a"}, {"image": "b"}, {"node_selector": {}}], 1, id="frames"),
        pytest.param([{"host_ports": [80]}, {"host_ports": [81]}], 2, id="that-read-pods"),
        pytest.param([{"memory": "1Gi"}, {"memory": "2Gi"}], 2, id="requests"),
    ],
)
def test_pods_that_request_the_same_share_a_record(
    kinds: list[dict[str, Any]], record_count: int
) -> None:
    cache, reusing, plain = Cache(), Side(reuses_answers=True), Side(reuses_answers=False)
    for number in range(4):
        cache.add_node(make_node(f"node-{number}", cpu=str(number + 1), memory="4Gi"))
    for number in range(8 * len(kinds)):
        pod = PodInfo(make_pod(f"p-{number}", cpu="300m", **kinds[number % len(kinds)]))
        decision = reusing.decide(cache, pod)
        assert describe(decision) == describe(plain.decide(cache, pod))
        if decision.node_name:
            cache.assume_pod(pod.assigned_to(decision.node_name))
    assert len(kept_records(reusing)) == record_count


def test_pods_that_request_different_resources_share_a_frame() -> None:
    cache, objects = Cache(), ClusterObjects()
    reusing = Side(reuses_answers=True, objects=objects)
    plain = Side(reuses_answers=False, objects=objects)
    for number in range(4):
        cache.add_node(make_node(f"node-{number}", allocatable={"example.com/b": 100}))

    def try_each(names: str) -> None:
        for name in names:
            pod = PodInfo(make_pod(requests={f"example.com/{name}": 1}))
            decision = reusing.decide(cache, pod)
            assert describe(decision) == describe(plain.decide(cache, pod))

    def is_fit_reused() -> list[bool]:
        assert reusing.decider._records is not None
        frames = reusing.decider._records._frames.values()
        return ["NodeResourcesFit" in frame.reused for frame in frames]

    try_each("ababcdebaa")
    assert is_fit_reused() == [True]
    # One of them is now served by devices, and its answers are not reused any more.
    objects.put(SERVING_A)
    try_each("aabbaabb")
    assert sorted(is_fit_reused()) == [False, True]
    objects.store(DeviceClass).remove("", SERVING_A.metadata.name)
    try_each("aabbaabb")


def test_codes_too_large_for_a_narrow_array_are_kept() -> None:
    """Each scalar resource has a bit of its own in the code."""
    cache, reusing, plain = Cache(), Side(reuses_answers=True), Side(reuses_answers=False)
    scalars = {f"example.com/r{number}": "1" for number in range(12)}
    for number in range(4):
        cache.add_node(make_node(f"node-{number}", cpu="8", allocatable=scalars))
    for number in range(12):
        pod = PodInfo(make_pod(f"p-{number}", cpu="100m", requests=scalars))
        decision = reusing.decide(cache, pod)
        assert describe(decision) == describe(plain.decide(cache, pod))
        if decision.node_name:
            cache.assume_pod(pod.assigned_to(decision.node_name))
    (record,) = kept_records(reusing)
    assert record.codes.dtype == np.int32
    assert not record.is_spoilt


def test_kept_raw_scores_are_copies() -> None:
    """A record writes to them, and a plugin may return an array of the snapshot."""
    cache, side = Cache(), Side(reuses_answers=True)
    for number in range(4):
        cache.add_node(make_node(f"node-{number}", taints=[f"slow=a{number}:PreferNoSchedule"]))
    pod = new_pod(0, 1)
    side.decide(cache, pod)
    frame = build_frame(ReusePlan(side.profile), pod, side.snapshot)
    assert frame is not None
    assert frame.rejected_count == 0
    assert [kept.step.name for kept in frame.varying] == ["TaintToleration"]
    for kept in frame.varying:
        scores = kept.step.plugin.score(frame.state, pod, nodes_of(side.snapshot))
        assert isinstance(scores, np.ndarray)
        assert kept._raw is not None
        assert not np.shares_memory(kept._raw, scores)


def test_rejected_nodes_are_counted_as_they_change() -> None:
    cache, side, pod = Cache(), Side(reuses_answers=True), new_pod(1, 0)
    for number in range(8):
        cache.add_node(make_node(f"node-{number}", cpu="4"))
    side.snapshot.refresh(cache)
    frame = build_frame(ReusePlan(side.profile), pod, side.snapshot)
    assert frame is not None
    record = build_record(frame, pod)
    assert record is not None
    blocker = PodInfo(make_pod("blocker", node="node-3", cpu="3"))
    for change, rejected in ((cache.add_pod, 1), (lambda pod: cache.remove_pod(pod.pod), 0)):
        change(blocker)
        side.snapshot.refresh(cache)
        record.catch_up()
        assert record.rejected_count == rejected


def test_each_plugin_that_prepares_a_record_is_timed() -> None:
    cache, side, pod = Cache(), Side(reuses_answers=True), new_pod(11, 1)
    cache.add_node(new_node(1, 1))
    side.snapshot.refresh(cache)
    seconds, slow = count(), list[tuple[str, str]]()
    timer = AttemptTimer(
        lambda: float(next(seconds)),
        budget_s=0,
        count_slow=lambda plugin, point: slow.append((plugin, point)),
    )
    timer.start(pod)
    plan = ReusePlan(side.profile)
    frame = build_frame(plan, pod, side.snapshot, timer)
    assert frame is not None
    assert build_record(frame, pod, timer) is not None
    reused, profile = plan.reused(pod), side.profile
    filters = [(name, PRE_FILTER) for name, _ in profile.pre_filter_steps if name in reused]
    scores = [(name, PRE_SCORE) for name, _ in profile.pre_score_steps if name in reused]
    prepared = [each for each in slow if each[1] in (PRE_FILTER, PRE_SCORE)]
    assert sorted(prepared) == sorted(filters + scores)
    assert len(filters) > 1 < len(scores)


def test_records_of_small_clusters_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_BYTES_MAX", 160_000)
    cache, side = Cache(), Side(reuses_answers=True)
    cache.add_node(new_node(0, 0))
    side.snapshot.refresh(cache)
    kept = Records(side.snapshot)
    for number in range(50):
        pod = PodInfo(make_pod(f"p{number}", node_selector={"job": str(number)}, cpu=number))
        for _ in range(4):
            kept.evaluation(side.profile, pod)
            kept.looked_at(1)
    assert 4 <= len(kept._records) <= 10
    assert 4 <= len(kept._frames) <= 10


def test_places_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "PLACES_MAX", 5)
    cache, side = Cache(), Side(reuses_answers=True)
    cache.add_node(new_node(0, 0))
    side.snapshot.refresh(cache)
    kept = Records(side.snapshot)
    for number in range(20):
        pod = PodInfo(make_pod(f"p{number}", node_selector={"job": str(number)}, cpu=number))
        kept.evaluation(side.profile, pod)
    assert len(kept._places) == len(kept._kept) == 5


def test_what_no_pod_has_used_for_long_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "UNUSED_ATTEMPTS_MAX", 20)
    cache, side = Cache(), Side(reuses_answers=True)
    cache.add_node(new_node(0, 0))
    side.snapshot.refresh(cache)
    kept = Records(side.snapshot)
    steady = PodInfo(make_pod("steady", cpu=1))
    for number in range(100):
        other = make_pod(f"p{number}", node_selector={"job": str(number)}, cpu=number)
        for pod in (steady, PodInfo(other)):
            for _ in range(2):
                kept.evaluation(side.profile, pod)
                kept.looked_at(1)
    assert 5 <= len(kept._frames) <= 7
    basis = kept._plans[side.profile.name].frame_of(steady)
    assert any(basis == found for _, found in cast(Any, kept._frames))


class NamesTheLoad(NodeFilter):
    """Rejects nodes with a reason of their own, another one for each load."""

    name = "NamesTheLoad"
    reuse = Reuse(filter=Reads.NODE)
    per_node = True

    def filter_node(self, pod: Pod, node: Node) -> bool | str:
        load = node.metadata.labels.get("load")
        return load is None or f"load is {load}"


def test_reasons_that_are_no_longer_given_are_dropped() -> None:
    cache, side = Cache(), Side(reuses_answers=True, extra=[NamesTheLoad])
    for number in range(6):
        cache.add_node(new_node(number, 0))
    before, most = new_node(0, 0), 0
    for load in range(numbered_max(6) + 5):
        node = make_node("node-0", zone="zone-0", labels={"load": str(load)})
        cache.update_node(before, node)
        before = node
        decision = side.decide(cache, new_pod(0, load))
        (codes,) = (value for value in decision.state.values() if isinstance(value, StatusCodes))
        most = max(most, len(codes))
        assert decision.diagnosis.statuses()["node-0"].message == f"load is {load}"
    assert len(codes) < most == numbered_max(6) + 1


def test_dropped_records_are_freed_at_once() -> None:
    """Records live long: the garbage collector would look at them after many hours."""
    cache, side = Cache(), Side(reuses_answers=True)
    cache.add_node(new_node(0, 0))
    side.snapshot.refresh(cache)
    pod = PodInfo(make_pod("p", cpu="1"))
    frame = build_frame(ReusePlan(side.profile), pod, side.snapshot)
    assert frame is not None
    record = build_record(frame, pod)
    kept = weakref.ref(frame), weakref.ref(record)
    gc.disable()
    try:
        del frame, record
        assert [reference() for reference in kept] == [None, None]
    finally:
        gc.enable()
