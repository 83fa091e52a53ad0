"""Many pods between two measurements are spread, and not sent to the node that was coolest."""

from collections import Counter

import numpy as np

from kubestow.config.profile import PluginConfig, PluginRef, Plugins, PluginSet, ProfileConfig
from kubestow.config.scheduler import SchedulerConfig
from kubestow.simulator.bench.measure import Bench
from kubestow.simulator.bench.workloads import Cluster
from kubestow.testing import ManualClock, make_node, make_pod
from kubestow.usage.store import UsageStore

NODES, PODS = 100, 1000


def placed(*, estimates: bool) -> Counter[str]:
    """1,000 pods in 10 s, each of half a core that it does not request, on nodes of 16 cores that
    use 10 % to 70 % of them."""
    clock, usage = ManualClock(1_000_000), UsageStore()
    names = [f"n{number:02}" for number in range(NODES)]
    used = np.linspace(1600, 11_200, NODES).astype(np.int64)
    memory = np.full(NODES, 1 << 30)
    usage.add_nodes(names, time_ns=clock.now_ns(), cpu_milli=used, memory_bytes=memory)
    args = {"estimate": {"enabled": estimates, "defaults": {"cpu": "500m", "memory": "64Mi"}}}
    profile = ProfileConfig(
        plugins=Plugins(multi_point=PluginSet(enabled=(PluginRef("LoadAware", 30),))),
        plugin_config=(PluginConfig(name="LoadAware", args=args),),
    )
    nodes = [make_node(name, cpu="16", memory="64Gi", pods=1000) for name in names]
    bench = Bench(
        Cluster(nodes=nodes, running=[], scheduled_first=[], measured=[], objects=[]),
        percentage=100,
        clock=clock,
        config=SchedulerConfig(profiles=(profile,)),
        usage=usage,
    )
    counts: Counter[str] = Counter()
    for number in range(PODS):
        clock.advance_s(0.01)
        decision = bench.cycle(bench.enqueue(make_pod(f"p{number}")))
        counts[decision.node_name] += 1
    return counts


def spread(counts: Counter[str]) -> float:
    """What the node with most pods has, in terms of the mean over the coolest tenth."""
    coolest = [counts[f"n{number:02}"] for number in range(NODES // 10)]
    return max(counts.values()) / max(sum(coolest) / len(coolest), 1e-9)


def test_the_fullest_node_gets_little_more_than_the_coolest_tenth():
    counts = placed(estimates=True)
    assert sum(counts.values()) == PODS
    assert spread(counts) <= 1.5
    # Hot nodes get fewer.
    assert counts["n99"] < counts["n00"]


def test_without_estimates_all_pods_go_to_few_nodes():
    assert spread(placed(estimates=False)) > 1.5
