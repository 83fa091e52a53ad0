"""Measures what a recording costs: CPU time of the scheduler's thread for each pod.

    python docs/scripts/recording_cost.py --nodes 500 --pods 10000

Two embedded clusters, one of them recorded, place the same pods in turns, a few at a time: what
disturbs one disturbs the other. One line of JSON, with medians over the turns. On a real API server
`live.py --record` measures it.
"""

import argparse
import asyncio
import gc
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

from kubestow.apiserver.memory import MemoryCluster
from kubestow.clock import thread_cpu_s
from kubestow.cluster.resources import PODS
from kubestow.config.scheduler import SchedulerConfig
from kubestow.recording.recording import RecordTo
from kubestow.simulator.embedded import EmbeddedCluster
from kubestow.simulator.virtual_time import VirtualClock, VirtualTimeLoop

TURN_PODS = 50
WARM_TURNS = 3
AMOUNTS = {"cpu": "320", "memory": "1280Gi", "pods": "10000"}


class Side:
    """One of the two clusters, on a loop of its own."""

    def __init__(self, nodes: int, record: Path | None) -> None:
        self.turns: list[float] = []
        self._placed = 0
        self._loop = VirtualTimeLoop()
        self._loop.run_until_complete(self._start(nodes, record))

    async def _start(self, nodes: int, record: Path | None) -> None:
        clock = VirtualClock(self._loop)
        self._store = MemoryCluster(clock)
        self._store.load([node(number) for number in range(nodes)])
        to = None if record is None else RecordTo(record, "bench")
        self._running = EmbeddedCluster(self._store, SchedulerConfig(), clock, record=to).running()
        await self._running.__aenter__()

    def turn(self) -> None:
        """Place some pods."""
        numbers = range(self._placed, self._placed + TURN_PODS)
        self._placed += TURN_PODS
        started_s = thread_cpu_s()
        self._loop.run_until_complete(self._place([pod(number) for number in numbers]))
        self.turns.append((thread_cpu_s() - started_s) / TURN_PODS)

    async def _place(self, pods: list[dict[str, Any]]) -> None:
        for document in pods:
            self._store.create(PODS, document)
        await asyncio.sleep(1)  # virtual: when nothing is left to do

    def end(self) -> None:
        self._loop.run_until_complete(self._running.__aexit__(None, None, None))
        self._loop.close()


def node(number: int) -> dict[str, Any]:
    labels = {"topology.kubernetes.io/zone": f"zone-{number % 3}"}
    metadata = {"name": f"node-{number}", "labels": labels}
    status = {"allocatable": AMOUNTS, "capacity": AMOUNTS}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def pod(number: int) -> dict[str, Any]:
    requests = {"cpu": "100m", "memory": "128Mi"}
    container = {"name": "c", "image": "registry.k8s.io/pause:3.10"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{number}",
            "namespace": "default",
            "labels": {"app": f"a{number % 20}"},
        },
        "spec": {"containers": [{**container, "resources": {"requests": requests}}]},
    }


def measure(nodes: int, pods: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="kubestow-recording-") as folder:
        plain, recorded = Side(nodes, None), Side(nodes, Path(folder, "run.rec"))
        gc.collect()
        gc.disable()  # A collection would count for the side in whose turn it happens.
        try:
            for number in range(WARM_TURNS + max(pods // TURN_PODS, 1)):
                for side in (plain, recorded) if number % 2 else (recorded, plain):
                    side.turn()
        finally:
            gc.enable()
        plain.end()
        recorded.end()
    without = statistics.median(plain.turns[WARM_TURNS:])
    differences = [
        after - before for before, after in zip(plain.turns, recorded.turns, strict=True)
    ]
    more = statistics.median(differences[WARM_TURNS:])
    return {
        "microseconds_a_pod": round(1e6 * without, 1),
        "recording": round(1e6 * more, 1),
        "share": round(more / without, 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what a recording costs.")
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--pods", type=int, default=10_000)
    options = parser.parse_args()
    print(json.dumps(measure(options.nodes, options.pods)))


if __name__ == "__main__":
    main()
