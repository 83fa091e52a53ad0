"""What is behind verdicts and scores of LoadAware."""

from typing import Any

from kubestow.api.meta import ApiObject
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.config.load_aware_args import LoadAwareArgs, LoadThresholds
from kubestow.config.profile import PluginConfig, PluginRef, Plugins, PluginSet, ProfileConfig
from kubestow.config.scheduler import SchedulerConfig
from kubestow.explain.cluster import StillCluster
from kubestow.explain.pod import explain_pod
from kubestow.testing import ManualClock, make_node, make_pod
from kubestow.usage.measurement import Amounts, Measurement
from kubestow.usage.store import UsageStore

GIB = 1 << 30


class LoadedCluster:
    """Nodes of 4 cores and 16 GiB, of which so much is in use."""

    def __init__(self, thresholds: LoadThresholds, *, hysteresis: int = 5) -> None:
        self.clock, self.usage = ManualClock(1_000_000), UsageStore()
        args = LoadAwareArgs(thresholds=thresholds, hysteresis_percent=hysteresis)
        profile = ProfileConfig(
            plugins=Plugins(multi_point=PluginSet(enabled=(PluginRef("LoadAware"),))),
            plugin_config=(PluginConfig(name="LoadAware", args=args),),
        )
        self.still = StillCluster(
            SchedulerConfig(profiles=(profile,)),
            MemoryClient(MemoryCluster(self.clock)),
            self.clock,
            usage=self.usage,
        )

    def load(self, *objects: ApiObject) -> None:
        self.still.load(objects)

    def measure(self, **cpu: int) -> None:
        """Thousandths of cores by node."""
        self.clock.advance_s(1)
        now = self.clock.now_ns()
        self.usage.add(
            Measurement(now, Amounts(used, GIB), node=name) for name, used in cpu.items()
        )

    def explain(self, **options: Any) -> Any:
        pod = make_pod("w", cpu="1")
        self.still.put(pod)
        return explain_pod(self.still, pod, **options)


def test_a_threshold_shows_how_much_is_in_use() -> None:
    cluster = LoadedCluster(LoadThresholds(average={"cpu": 80}))
    cluster.load(make_node("a", cpu="4"), make_node("b", cpu="4"))
    cluster.measure(a=3600, b=3300)
    explained = cluster.explain()
    (group,) = explained.reasons
    assert group.reason == "node(s) had cpu in use above 80% (average)"
    assert group.reason_code == "LoadTooHigh"
    (first, second) = group.evidence.groups
    assert first.text == "3.6 of 4 cpu in use (average): 90%, allowed is 80%"
    assert (first.facts[0].missing, second.facts[0].missing) == ("400m", "100m")
    assert explained.nearest[0].text == first.text


def test_a_node_that_was_over_a_threshold_shows_what_it_must_fall_to() -> None:
    cluster = LoadedCluster(LoadThresholds(average={}, p95={"cpu": 80}), hysteresis=20)
    cluster.load(make_node("a", cpu="4"))
    cluster.measure(a=3600)
    cluster.explain()
    for _ in range(60):  # the high one is forgotten
        cluster.measure(a=2800)
    fact = cluster.explain().reasons[0].evidence.groups[0].facts[0]
    assert (fact.percent, fact.allowed, fact.threshold) == (70, 60, 80)
    assert fact.text.endswith(": 70%, allowed is 60% after it was over 80%")


def test_pods_that_are_not_measured_yet_are_named() -> None:
    cluster = LoadedCluster(LoadThresholds(average={"cpu": 50}))
    cluster.load(make_node("a", cpu="4"))
    cluster.measure(a=1800)
    cluster.still.place(make_pod("first", cpu="1"))
    fact = cluster.explain().reasons[0].evidence.groups[0].facts[0]
    assert (fact.used, fact.pending) == ("1800m", "850m")
    assert "and 0.85 by pods not measured yet: 66.2%, allowed is 50%" in fact.text


def test_scores_show_the_share_that_is_forecast() -> None:
    cluster = LoadedCluster(LoadThresholds())
    cluster.load(make_node("a", cpu="4"), make_node("b", cpu="4"))
    cluster.measure(a=1000, b=2000)
    explained = cluster.explain(node="b")
    found = next(each for each in explained.nodes if each.name == "b")
    parts = found.score_parts["LoadAware"]
    assert parts[0].text == "cpu in use 50% → 71%"
