"""The node of the pod before competes again (spec 12 §5.3)."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np
import pytest
from tests.engine.conftest import World

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.config.feature_gates import FeatureGates
from kubestow.editions import edition_named
from kubestow.editions.v1_37.engine.batching import POD_NOMINATED, BatchRulesV137
from kubestow.editions.v1_37.engine.factory import FactoryV137
from kubestow.engine.batching import (
    POD_SKIPPED,
    Asking,
    BatchState,
    KeptNodes,
    LastCycle,
    ScoredNodes,
    Unusable,
)
from kubestow.engine.factory import SchedulerFactory
from kubestow.errors import PluginError
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes
from kubestow.simulator.virtual_time import run_in_virtual_time
from kubestow.testing import make_node, make_pod
from kubestow.testing.profiles import make_plugin

V1_37 = edition_named("v1.37")
EQUAL = {"labels": {}}
KEPT = KeptNodes(EQUAL, ScoredNodes(["a", "b"], range(2), np.array([1, 2])), made_s=0)
STATE = BatchState(LastCycle(4, "n"), KEPT)


@pytest.mark.parametrize(
    ("asking", "shares_cycles", "expected"),
    [
        pytest.param(Asking(5, EQUAL, 0), False, KEPT, id="next"),
        pytest.param(Asking(4, EQUAL, 0), False, POD_SKIPPED, id="the-same-cycle"),
        pytest.param(Asking(4, EQUAL, 0), True, KEPT, id="the-same-cycle-of-a-group"),
        pytest.param(Asking(6, EQUAL, 0), True, POD_SKIPPED, id="a-pod-between"),
        pytest.param(Asking(5, EQUAL, 0, "n"), False, POD_NOMINATED, id="nominated"),
        pytest.param(Asking(5, None, 9, "n"), False, POD_NOMINATED, id="before-the-signature"),
    ],
)
def test_when_what_is_kept_is_of_use(
    asking: Asking, shares_cycles: bool, expected: KeptNodes | Unusable
) -> None:
    rules = BatchRulesV137(lambda: 0.0, shares_cycles=shares_cycles)
    assert rules.kept_for(STATE, asking) is expected


def scenario(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def run() -> None:
        run_in_virtual_time(test())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


class Least:
    """A rule: nodes take `limit` pods, and score higher the fewer they have."""

    def __init__(self, limit: int = 10) -> None:
        self.limit = limit
        self.raises_at = ""
        self.asked: list[int] = []
        self.top = 100

    def plugin(self) -> Any:
        return make_plugin(
            "Least",
            filter=self.filter,
            filter_status=lambda state, code: Status.unschedulable("full"),
            pre_score=self.pre_score,
            score=self.score,
            normalize=self.normalize,
            sign_pod=lambda pod: {},
        )

    def filter(self, state: Any, pod: PodInfo, nodes: Nodes) -> IntArray:
        self._fail("filter", nodes)
        return (nodes.pod_count >= self.limit).astype(np.int64)

    def pre_score(self, state: Any, pod: PodInfo, nodes: Nodes) -> None:
        self._fail("pre_score", nodes)

    def score(self, state: Any, pod: PodInfo, nodes: Nodes) -> IntArray:
        self._fail("score", nodes)
        self.asked.append(len(nodes))
        return self.top - nodes.pod_count.astype(np.int64)

    def normalize(self, state: Any, pod: PodInfo, scores: IntArray) -> IntArray:
        return scores if self.raises_at != "normalize" else scores + 200

    def _fail(self, point: str, nodes: Nodes) -> None:
        if self.raises_at == point and (point != "filter" or len(nodes) == 1):
            raise PluginError("no")


class Rescoring:
    def __init__(
        self, least: Least, *names: str, factory: type[SchedulerFactory] = FactoryV137
    ) -> None:
        self.least = least
        self.world = World(
            least.plugin(),
            nodes=[make_node(name) for name in names],
            gates=FeatureGates({}, V1_37),
            factory=factory,
        )
        self.count = 0

    def place(self, **fields: Any) -> Any:
        self.count += 1
        self.world.create(make_pod(f"p{self.count}", **fields))
        return self.world.schedule()


@scenario
async def test_equal_nodes_take_turns_without_a_search() -> None:
    placing = Rescoring(Least(), "a", "b")
    assert placing.place().node_name == "a"
    second, third, fourth = (placing.place() for _ in range(3))
    assert [each.node_name for each in (second, third, fourth)] == ["b", "a", "b"]
    assert [each.batch.result for each in (second, third, fourth)] == ["hint_used"] * 3
    assert [each.evaluated_count for each in (second, third, fourth)] == [1, 1, 1]
    # After the first pod only the last node is scored.
    assert placing.least.asked[-4:] == [2, 1, 1, 1]
    assert third.batch.check.rescoring_s == 0


@scenario
async def test_the_rescored_node_loses_ties() -> None:
    """Spec 12 §5.3: b is scored again, and a and b are equal: a, which was not just chosen."""
    placing = Rescoring(Least(), "a", "b", "c")
    nodes = [placing.place().node_name for _ in range(6)]
    assert sorted(nodes[:3]) == sorted(nodes[3:]) == ["a", "b", "c"]


@scenario
async def test_a_full_node_is_left_out() -> None:
    placing = Rescoring(Least(limit=1), "a", "b", "c")
    nodes = [placing.place() for _ in range(3)]
    assert sorted(each.node_name for each in nodes) == ["a", "b", "c"]
    assert [each.batch.check.rescoring_s for each in nodes[1:]] == [None, None]
    assert set(placing.least.asked) == {3}


@scenario
async def test_what_is_kept_stays_as_old_as_it_was_made() -> None:
    placing = Rescoring(Least(), "a", "b")
    placing.place()
    await asyncio.sleep(0.4)
    assert placing.place().batch.result == "hint_used"
    await asyncio.sleep(0.2)
    assert placing.place().batch.flushed == ["expired"]


@pytest.mark.parametrize(
    ("point", "reason"),
    [
        ("pre_score", "prescore_error"),
        ("score", "rescore_error"),
        ("normalize", "normalize_error"),
        ("filter", "filter_error"),
    ],
)
def test_a_plugin_that_fails_ends_the_use_of_what_is_kept(point: str, reason: str) -> None:
    async def test() -> None:
        placing = Rescoring(Least(), "a", "b")
        placing.place()
        placing.least.raises_at = point
        decision = placing.place()
        assert decision.batch.hint == ""
        assert decision.batch.flushed[0] == reason

    run_in_virtual_time(test())


@scenario
async def test_a_kept_node_is_gone() -> None:
    placing = Rescoring(Least(), "a", "b", "c")
    placing.place()
    placing.world.scheduler.handlers.node_deleted(make_node("c"))
    decision = placing.place()
    assert (decision.node_name, decision.batch.flushed) == ("b", ["node_missing"])


@scenario
async def test_a_nominated_pod_takes_no_hint() -> None:
    placing = Rescoring(Least(), "a", "b", "c")
    placing.place()
    decision = placing.place(nominated_node="c")
    assert (decision.node_name, decision.via_hint) == ("c", False)
    assert decision.batch.flushed == ["pod_nominated", "empty_list"]
