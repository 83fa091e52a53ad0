"""Records that are brought up to date together have the answers of asking every plugin."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from tests.engine.equivalence.test_evaluation import Side, describe

from kubestow.api.pod_info import PodInfo
from kubestow.cache.cache import Cache
from kubestow.engine.equivalence import batch
from kubestow.engine.equivalence.batch import RecordBatch
from kubestow.engine.equivalence.record import Record
from kubestow.framework.runner import Verdicts
from kubestow.index.nodes import nodes_of
from kubestow.testing import make_node, make_pod

NODES = 90
KINDS = [{"cpu": f"{100 * number}m", "memory": f"{7 * number % 11}Gi"} for number in range(1, 25)]


class World:
    """Pods of many requests in turn, on nodes of which some are too small for most."""

    def __init__(self, seed: int = 1) -> None:
        self.cache = Cache()
        self.reusing, self.plain = Side(reuses_answers=True), Side(reuses_answers=False)
        self.rng = np.random.default_rng(seed)
        self.placed: list[PodInfo] = []
        for number in range(NODES):
            self.add_node(number)

    def add_node(self, number: int) -> None:
        cpu, memory, pods = number % 7 and 8, number % 5 and 40, 4 + number % 9
        self.cache.add_node(make_node(f"node-{number}", cpu=cpu, memory=f"{memory}Gi", pods=pods))

    def place(self, count: int, *, kinds: int = len(KINDS)) -> None:
        for _ in range(count):
            kind = KINDS[self.rng.integers(kinds)]
            pod = PodInfo(make_pod(f"pod-{self.rng.integers(1 << 60)}", **kind))
            decision = self.reusing.decide(self.cache, pod)
            assert describe(decision) == describe(self.plain.decide(self.cache, pod))
            if decision.node_name:
                self.placed.append(pod.assigned_to(decision.node_name))
                self.cache.assume_pod(self.placed[-1])

    def remove(self, count: int) -> None:
        for _ in range(count):
            index = int(self.rng.integers(len(self.placed)))
            self.cache.remove_pod(self.placed.pop(index).pod)

    def records(self) -> list[Record]:
        assert self.reusing.decider._records is not None
        accounts = self.reusing.decider._records._records.values()
        return [account.kept for account in accounts if account.kept is not None]

    def batches(self) -> set[RecordBatch]:
        return {record.batch for record in self.records() if record.batch is not None}

    def check(self) -> None:
        """What is kept equals what is computed anew."""
        for record in self.records():
            record.catch_up()
            kept = record.failed_by.copy(), record.codes.copy(), record.score.copy()
            count = record.rejected_count
            record._compute_all()
            assert count == record.rejected_count
            assert kept[0].tolist() == record.failed_by.tolist()
            assert kept[1].tolist() == record.codes.tolist()
            if count < len(kept[0]):
                assert kept[2].tolist() == record.score.tolist()


@pytest.fixture
def world() -> World:
    return World()


def test_decisions_equal_those_of_asking_every_plugin(world: World) -> None:
    world.place(300)
    (formed,) = world.batches()
    assert len(formed.records()) > 20
    world.remove(100)
    world.place(100)
    world.check()


def test_nodes_come_while_records_are_in_a_batch(world: World) -> None:
    world.place(250)
    assert world.batches()
    for number in range(NODES, NODES + 3):
        world.add_node(number)
        world.place(30)
    world.check()


@pytest.mark.parametrize("rows_joining_max", [0, 512])
def test_a_full_cluster_is_found_to_fit_again(
    world: World, monkeypatch: pytest.MonkeyPatch, rows_joining_max: int
) -> None:
    """Where no node fits, a record that is in no batch does not keep its scores up to date."""
    monkeypatch.setattr(batch, "_ROWS_JOINING_MAX", rows_joining_max)
    world.place(900)
    for _ in range(6):
        world.remove(12)
        world.place(60)
    monkeypatch.undo()
    assert any(record.rejected_count == NODES for record in world.records())
    for _ in range(6):
        world.remove(20)
        world.place(40)
    world.check()


def test_a_batch_ends(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.place(250)
    (first,) = world.batches()
    size = len(first.records())
    monkeypatch.setattr(batch, "BATCH_CHANGES_MAX", 40)
    # Records that no pod uses any more are in the next one no longer.
    world.place(150, kinds=12)
    (later,) = world.batches()
    assert later is not first
    assert not first.records()
    assert len(later.records()) < size
    alone = [record for record in world.records() if record.batch is None]
    assert alone
    for record in alone:
        arrays = record.failed_by, record.codes, record.score
        assert [array.base for array in arrays] == [None] * 3
    world.check()


def test_a_record_that_is_far_behind_is_not_in_the_batch(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "_ROWS_JOINING_MAX", 0)
    world.place(250)
    assert not world.batches()
    world.check()


def test_codes_that_need_more_bits(world: World) -> None:
    world.place(250)
    (formed,) = world.batches()
    first, second = formed.records()[:2]
    for record in formed.records():
        record.catch_up()
    before, count = second.codes.tolist(), first.rejected_count
    failed_by = np.stack([record.failed_by[:1] for record in formed.records()])
    codes = np.stack([record.codes[:1] for record in formed.records()]).astype(np.int64)
    failed_by[0], codes[0] = 1, 1000
    formed._enter(np.array([0]), Verdicts(failed_by, codes))
    assert first.codes[0] == 1000
    assert first.rejected_count - count in (0, 1)
    assert second.codes.tolist() == before


def test_dropped_records_are_freed_at_once(world: World) -> None:
    world.place(250)
    (formed,) = world.batches()
    kept = [weakref.ref(record) for record in formed.records()]
    gc.disable()
    try:
        assert world.reusing.decider._records is not None
        world.reusing.decider._records._records.clear()
        world.reusing.decider._records._last = None
        assert [reference() for reference in kept] == [None] * len(kept)
    finally:
        gc.enable()


@pytest.mark.parametrize("seed", range(20))
def test_the_form_for_several_pods_equals_the_array_form(seed: int) -> None:
    rng = np.random.default_rng(seed)
    side, cache = Side(reuses_answers=False), Cache()
    lacking = seed % 2 == 0
    for number in range(8):
        amounts: dict[str, Any] = {
            "cpu": int(rng.integers(1 - lacking, 5)),
            "memory": f"{rng.integers(1 - lacking, 5)}Gi",
            "ephemeral_storage": f"{rng.integers(0, 3)}Gi",
            "pods": int(rng.integers(2, 8)),
        }
        cache.add_node(make_node(f"node-{number}", **amounts))
        for each in range(int(rng.integers(5))):
            kind = KINDS[rng.integers(len(KINDS))]
            pod = make_pod(f"pod-{number}-{each}", node=f"node-{number}", **kind)
            cache.add_pod(PodInfo(pod))
    side.snapshot.refresh(cache)
    nodes = nodes_of(side.snapshot)
    wanted = [{}, {"requests": {"ephemeral-storage": "1Gi"}}, *(KINDS[i] for i in (0, 4, 19, 23))]
    pods = [PodInfo(make_pod(f"p{place}", **kind)) for place, kind in enumerate(wanted)]
    decisions = [side.decide(cache, pod) for pod in pods]
    for step in (*side.profile.filter_steps, *side.profile.score_steps):
        form = step.many_form
        if form is None:
            continue
        numbers, expected = [], []
        for pod, decision in zip(pods, decisions, strict=True):
            state = decision.state
            plugin: Any = step.plugin
            if plugin.pre_score(state, pod, nodes) is not None:
                continue
            found = form.numbers(state)
            assert found is not None
            numbers.append(found)
            is_filter = hasattr(step, "filter_index")
            one = plugin.filter(state, pod, nodes) if is_filter else plugin.score(state, pod, nodes)
            expected.append([0] * len(nodes) if one is None else one.tolist())
        answers = form.answers(np.array(numbers).T[:, :, np.newaxis], nodes)
        shown = np.zeros((len(numbers), len(nodes)), int) if answers is None else answers
        assert shown.tolist() == expected


def test_pods_with_other_resources_are_not_asked_about_together() -> None:
    side, cache = Side(reuses_answers=False), Cache()
    cache.add_node(make_node("n", allocatable={"example.com/gpu": "1"}))
    decision = side.decide(cache, PodInfo(make_pod(requests={"example.com/gpu": "1"})))
    forms = [step.many_form for step in side.profile.filter_steps if step.many_form is not None]
    assert [form.numbers(decision.state) for form in forms] == [None]
