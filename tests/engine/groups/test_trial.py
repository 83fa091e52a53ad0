"""Trials of groups with plugins that fail; scores of placements."""

from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np
import pytest

from kubestow.api.group import GroupKey
from kubestow.api.pod_info import PodInfo
from kubestow.config.feature_gates import FeatureGates
from kubestow.errors import PluginError
from kubestow.framework.group_cycle import GroupCycle, GroupPlacement
from kubestow.framework.status import Status
from kubestow.plugins.pod_group_pods_count import PodGroupPodsCount
from kubestow.testing import make_handle, make_node, make_plugin, make_pod

Run = Callable[[Coroutine[Any, Any, None]], None]
PREFIX = "failed to schedule other pod from a pod group: "


def fails_for(name: str) -> Any:
    def filter(state: Any, pod: PodInfo, nodes: Any) -> Any:
        return np.full(len(nodes), -1 if pod.name == name else 0, np.int64)

    return make_plugin(
        "F",
        filter=filter,
        filter_status=lambda state, code: Status.from_error(PluginError("boom")),
    )


def test_e19_an_error_ends_the_trial_and_fails_all(make_world: Any, run: Run) -> None:
    async def test() -> None:
        gates = FeatureGates({"GenericWorkload": True})
        world = make_world(fails_for("p2"), nodes=[make_node("n1", cpu="4")], gates=gates)
        for name in ("p1", "p2", "p3"):
            world.create(make_pod(name, cpu="1", group="g"))
        world.scheduler.schedule_one(world.queue.pop_nowait())
        await world.settle()
        own = 'running "F" filter plugin: boom'
        assert {event.regarding.metadata.name: event.note for event in world.events.events} == {
            "p1": PREFIX + own,
            "p2": own,
            "p3": PREFIX + own,
        }
        assert [decision.pod.name for decision in world.decisions] == ["p1", "p2"]
        assert {reason for reason, _ in world.conditions} == {"SchedulerError"}
        assert world.cache.statistics().assumed_pods == 0

    run(test())


def test_e36_an_error_ends_the_search_for_a_placement(make_world: Any, run: Run) -> None:
    async def test() -> None:
        gates = FeatureGates({"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True})

        def generate(cycle: GroupCycle, parent: GroupPlacement) -> list[GroupPlacement]:
            return [GroupPlacement(str(row), parent.rows[row : row + 1]) for row in (0, 1)]

        world = make_world(
            fails_for("p2"),
            make_plugin("Generator", generate_placements=generate),
            nodes=[make_node("n1", cpu="4"), make_node("n2", cpu="4")],
            gates=gates,
        )
        for name in ("p1", "p2"):
            world.create(make_pod(name, cpu="1", group="g"))
        world.scheduler.schedule_one(world.queue.pop_nowait())
        await world.settle()
        assert len(world.decisions) == 2
        assert PREFIX in " ".join(world.notes)

    run(test())


@pytest.mark.parametrize(
    ("found", "normalized"),
    [pytest.param([5, 3, 4], [100, 60, 80]), pytest.param([7, 6], [100, 85])],
    ids=["E34-three", "E34-two"],
)
def test_counts_are_normalised_to_the_largest(found: list[int], normalized: list[int]) -> None:
    cycle = GroupCycle(GroupKey("default", "g"))
    plugin = PodGroupPodsCount({}, make_handle())
    assert plugin.normalize_placements(cycle, found) == normalized


def test_no_member_anywhere_is_an_error() -> None:
    cycle = GroupCycle(GroupKey("default", "g"))
    with pytest.raises(PluginError, match="no pods from pod group are assigned"):
        PodGroupPodsCount({}, make_handle()).normalize_placements(cycle, [0, 0])
