"""How many pods a second `simulate` places, from the queue to the binding, in process.

Run it with `make bench-simulate`, or one shape with `python tests/bench/simulate_throughput.py
SHAPE`. Each shape runs in a process of its own, so that the peak memory is its own.
"""

import multiprocessing
import resource
import sys
import time
from typing import Any

from kubestow.config.scheduler import SchedulerConfig
from kubestow.simulator.simulation import Simulation
from kubestow.simulator.virtual_time import run_in_virtual_time

Json = dict[str, Any]
ZONES = ("moon-1", "moon-2", "moon-3")


def nodes(count: int) -> list[Json]:
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": f"node-{i:05d}",
                "labels": {
                    "kubernetes.io/hostname": f"node-{i:05d}",
                    "topology.kubernetes.io/zone": ZONES[i % len(ZONES)],
                },
            },
            "status": {"capacity": {"cpu": "4", "memory": "32Gi", "pods": "110"}},
        }
        for i in range(count)
    ]


def pod(name: str, spec: Json, *, node: str = "", labels: Json | None = None) -> Json:
    requests = {"cpu": "100m", "memory": "500Mi"}
    container = {"name": "main", "image": "pause", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels or {}},
        "spec": {"containers": [container], **({"nodeName": node} if node else {}), **spec},
    }


def affinity(kind: str, rule: str, color: str, key: str) -> Json:
    term = {"labelSelector": {"matchLabels": {"color": color}}, "topologyKey": key}
    entry: Json = {"weight": 1, "podAffinityTerm": term} if rule == "preferred" else term
    return {"affinity": {kind: {f"{rule}DuringSchedulingIgnoredDuringExecution": [entry]}}}


def spread(color: str) -> Json:
    constraint = {
        "maxSkew": 5,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"color": color}},
    }
    return {"topologySpreadConstraints": [constraint]}


HOSTNAME = "kubernetes.io/hostname"
# Shape → nodes, pods running before, pods to place, spec of the pods, color of the pods.
SHAPES: dict[str, tuple[int, int, int, Json, str]] = {
    "basic": (5000, 0, 10000, {}, ""),
    "anti-affinity": (
        1000,
        5000,
        1000,
        affinity("podAntiAffinity", "required", "green", HOSTNAME),
        "green",
    ),
    "zone-spread": (1000, 5000, 1000, spread("blue"), "blue"),
    "preferred-affinity": (
        1000,
        5000,
        1000,
        affinity("podAffinity", "preferred", "red", HOSTNAME),
        "red",
    ),
}


def run(shape: str) -> str:
    node_count, running_count, waiting_count, spec, color = SHAPES[shape]
    labels = {"color": color} if color else {}
    documents = nodes(node_count)
    documents += [
        pod(f"running-{i}", {}, node=f"node-{i % node_count:05d}") for i in range(running_count)
    ]
    documents += [pod(f"pod-{i}", spec, labels=labels) for i in range(waiting_count)]

    async def place() -> tuple[int, float]:
        simulation = Simulation(documents, SchedulerConfig())
        started_s = time.perf_counter()
        result = await simulation.run()
        return len(result.scheduled), time.perf_counter() - started_s

    scheduled, seconds = run_in_virtual_time(place())
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (
        f"{shape:<20} {node_count:>6} nodes {running_count:>6} running "
        f"{scheduled:>6} of {waiting_count} placed {scheduled / seconds:>8.0f} pods/s "
        f"{peak_mib:>6.0f} MiB peak"
    )


def main() -> None:
    shapes = sys.argv[1:] or list(SHAPES)
    unknown = [shape for shape in shapes if shape not in SHAPES]
    if unknown:
        sys.exit(f"no such shape: {', '.join(unknown)}; there are {', '.join(SHAPES)}")
    for shape in shapes:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            print(pool.apply(run, (shape,)), flush=True)


if __name__ == "__main__":
    main()
