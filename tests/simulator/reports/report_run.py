"""A run for tests of reports: a few nodes, any number of pods and samples, from a seed."""

import numpy as np

from kubestow.simulator.results import (
    ENDED,
    PENDING,
    RUNNING,
    Change,
    NodeRow,
    PodRow,
    RunResult,
    Sample,
)

GPU = "nvidia.com/gpu"


def make_run(
    *, pods: int = 60, nodes: int = 5, samples: int = 30, seed: int = 1, name: str = "a day"
) -> RunResult:
    random = np.random.default_rng(seed)
    duration_s = 86400.0
    rows = [_pod(random, index, nodes, duration_s) for index in range(pods)]
    return RunResult(
        name=name,
        seed=seed,
        variant="default",
        pods=rows,
        nodes=[_node(random, index, rows) for index in range(nodes)],
        samples=[_sample(random, index * duration_s / samples, nodes) for index in range(samples)],
        changes=[
            Change(
                time_s=float(random.integers(0, 86400)),
                kind=str(random.choice(["Preempted", "NodeFailed"])),
                subject=f"default/pod-{index}",
                detail="for a pod of higher priority",
            )
            for index in range(min(pods, 20))
        ],
        virtual_duration_s=duration_s,
    )


def _pod(random: np.random.Generator, index: int, nodes: int, duration_s: float) -> PodRow:
    created_s = round(float(random.uniform(0, duration_s)), 3)
    requests = {"cpu": int(random.integers(1, 9)) * 250, "memory": int(random.integers(1, 9)) << 29}
    if index % 3 == 0:
        requests[GPU] = 1
    owner = f"Deployment/web-{index % 4}"
    if index % 10 == 9:
        return PodRow(
            namespace="default",
            name=f"pod-{index}",
            owner=owner,
            requests=requests,
            outcome=PENDING,
            created_s=created_s,
            attempts=3,
            reason="Unschedulable",
            message=f"0/{nodes} nodes are available: {nodes} Insufficient cpu.",
        )
    scheduled_s = round(created_s + float(random.exponential(20.0)) * (index % 2), 3)
    is_ended = index % 4 == 0
    return PodRow(
        namespace="default",
        name=f"pod-{index}",
        owner=owner,
        requests=requests,
        outcome=ENDED if is_ended else RUNNING,
        node=f"node-{index % nodes}",
        created_s=created_s,
        scheduled_s=scheduled_s,
        ended_s=scheduled_s + 100.0 if is_ended else None,
        attempts=1,
    )


def _node(random: np.random.Generator, index: int, pods: list[PodRow]) -> NodeRow:
    here = [pod for pod in pods if pod.node == f"node-{index}" and pod.outcome == RUNNING]
    resources = ("cpu", "memory", GPU) if index % 2 == 0 else ("cpu", "memory")
    requested = {each: sum(pod.requests.get(each, 0) for pod in here) for each in resources}
    return NodeRow(
        name=f"node-{index}",
        zone=f"zone-{index % 2}",
        left_s=50000.0 if index == 3 else None,
        pods=len(here),
        allowed_pods=110,
        allocatable={each: requested[each] * 2 + 1000 for each in resources},
        requested=requested,
    )


def _sample(random: np.random.Generator, time_s: float, nodes: int) -> Sample:
    allocatable = {"cpu": 32000 * nodes, "memory": nodes << 36, GPU: 4 * nodes}
    requested = {
        each: int(amount * random.uniform(0.2, 0.8)) for each, amount in allocatable.items()
    }
    return Sample(
        time_s=time_s,
        nodes=nodes,
        running=int(random.integers(5, 50)),
        active=int(random.integers(0, 5)),
        backoff=int(random.integers(0, 5)),
        unschedulable=int(random.integers(0, 9)),
        gated=0,
        arrived=int(time_s // 100),
        placed=int(time_s // 120),
        ended=int(time_s // 200),
        preempted=0,
        evicted=0,
        allocatable=allocatable,
        requested=requested,
        stranded={each: int((allocatable[each] - requested[each]) * 0.1) for each in allocatable},
        imbalance={each: float(random.uniform(0, 0.3)) for each in allocatable},
    )
