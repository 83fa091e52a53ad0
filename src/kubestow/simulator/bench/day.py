"""A virtual day of a large cluster: pods arrive, run and end all the time.

Arrivals are Poisson, and pods run so long, four hours on average if there are 100,000 on 5,000
nodes, that they use about four fifths of the cluster.
"""

from collections.abc import Callable
from typing import Final

from kubestow.api.files import Document
from kubestow.api.meta import JsonObject
from kubestow.config.defaults import complete_config
from kubestow.config.scheduler import SchedulerConfig
from kubestow.simulator.node_shapes import NodeShape, node_documents
from kubestow.simulator.results import RunResult
from kubestow.simulator.scenario.arrivals import When, exponential, generated
from kubestow.simulator.scenario.run import run_scenario
from kubestow.simulator.scenario.scenario import Progress, Scenario

DAY_S: Final = 86_400.0
NODES: Final = 5_000
PODS: Final = 100_000
_NODE: Final = NodeShape(capacity={"cpu": "4", "memory": "16Gi"})
# cpu and memory of the pods, each equally frequent.
_REQUESTS: Final = (("250m", "512Mi"), ("500m", "2Gi"), ("1", "2Gi"), ("2", "8Gi"))
# Of the cores; a pod requests 937.5 thousandths of one on average.
_SHARE: Final = 0.8
_CPU_MILLI: Final = 937.5
_NODE_CPU_MILLI: Final = 4_000


def day_scenario(*, nodes: int, pods: int) -> Scenario:
    """A day with about this many arrivals."""
    running = nodes * _NODE_CPU_MILLI * _SHARE / _CPU_MILLI
    run_s = min(running / pods * DAY_S, DAY_S / 4)
    rate = pods / DAY_S / len(_REQUESTS)
    return Scenario(
        name="day",
        until_s=DAY_S,
        documents=[Document(node, "bench") for node in node_documents([_NODE], nodes)],
        arrivals=[
            generated(
                f"batch-{number}",
                _pod(number, *requests),
                When(rate=rate),
                duration=exponential(run_s),
            )
            for number, requests in enumerate(_REQUESTS)
        ],
    )


def run_day(
    *, nodes: int, pods: int, on_progress: Callable[[Progress], None] | None = None
) -> RunResult:
    scenario = day_scenario(nodes=nodes, pods=pods)
    return run_scenario(scenario, complete_config(SchedulerConfig()), on_progress=on_progress)


def _pod(number: int, cpu: str, memory: str) -> JsonObject:
    resources = {"requests": {"cpu": cpu, "memory": memory}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"labels": {"app": f"batch-{number}"}},
        "spec": {"containers": [{"name": "main", "image": "batch", "resources": resources}]},
    }
