"""Scheduling pauses after a group that could not be placed, where that is asked for."""

import asyncio

from kubestow.api.decode import to_document
from kubestow.api.meta import JsonObject
from kubestow.config.feature_gates import FeatureGates
from kubestow.config.scheduler import SchedulerConfig
from kubestow.simulator.scenario.run import Simulation
from kubestow.simulator.scenario.stages import placing
from kubestow.simulator.virtual_time import run_in_virtual_time
from kubestow.testing import make_node, make_pod, make_pod_group

PAUSE_S = 100.0


def tried_at(*groups: tuple[str, str]) -> dict[str, list[float]]:
    """When members of groups, of two pods each with these requests of cpu, are decided about."""
    gates = FeatureGates({"GenericWorkload": True, "GangScheduling": True})
    documents: list[JsonObject] = [to_document(make_node("n1", cpu="4"))]
    for name, cpu in groups:
        documents.append(to_document(make_pod_group(name, min_count=2)))
        documents += [
            to_document(make_pod(f"{name}-{number}", cpu=cpu, group=name)) for number in range(2)
        ]

    async def tried() -> dict[str, list[float]]:
        times_s: dict[str, list[float]] = {}
        loop = asyncio.get_running_loop()
        run = Simulation(
            placing(documents, limit_s=2.5 * PAUSE_S),
            SchedulerConfig(),
            gates=gates,
            on_decision=lambda decision: times_s.setdefault(
                decision.pod.pod.metadata.name, []
            ).append(loop.time()),
        )
        run.cluster.scheduler.group_pause_s = PAUSE_S
        await run.run()
        return times_s

    return run_in_virtual_time(tried())


def test_a_group_that_is_placed_delays_no_other() -> None:
    times_s = tried_at(("first", "1"), ("second", "1"))
    assert [times_s[name] for name in ("first-0", "second-0")] == [[0.0], [0.0]]


def test_a_group_that_fits_nowhere_delays_the_next() -> None:
    times_s = tried_at(("first", "9"), ("second", "1"))
    assert times_s["second-0"] == [times_s["first-0"][0] + PAUSE_S]
