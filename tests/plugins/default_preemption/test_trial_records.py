"""The kept results of trials are what trying every node again would give."""

import gc
import weakref
from collections.abc import Callable
from datetime import UTC, datetime
from typing import ClassVar

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.disruption import BudgetTable
from kubestow.api.meta import ApiObject, LabelSelector, ObjectMeta
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.api.workload import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from kubestow.arrays import IntArray, IntpArray
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.numbering import numbered_max
from kubestow.errors import PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.handle import Handle
from kubestow.framework.node_plugin import NodeFilter
from kubestow.framework.reuse import ASKED, Reads, Reuse
from kubestow.framework.runner import run_pre_filter
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes, nodes_of
from kubestow.plugins.default_preemption import evictable, trial_record, trial_records
from kubestow.plugins.default_preemption.by_numbers import ByNumbers
from kubestow.plugins.default_preemption.candidates import Candidate
from kubestow.plugins.default_preemption.dry_run import (
    DryRun,
    Evaluator,
    TrialInputs,
    TrialResults,
)
from kubestow.plugins.default_preemption.eligibility import DEFAULT_RULES
from kubestow.plugins.default_preemption.evictable import PodSlots
from kubestow.plugins.default_preemption.filters import FilterTable
from kubestow.plugins.default_preemption.many_nodes import ManyNodes
from kubestow.plugins.default_preemption.one_node import OneNode
from kubestow.plugins.default_preemption.trial_record import TrialRecord
from kubestow.plugins.default_preemption.trial_records import RecordedTrials, TrialRecords
from kubestow.plugins.registry import REGISTRY
from kubestow.testing import make_node, make_pod, make_term
from kubestow.testing.storage import DRIVER, make_claim, make_csi_node, make_volume
from tools.small_cluster import SmallCluster

NOW_S = 1_700_000_000
ZONE = "topology.kubernetes.io/zone"
# Volumes are looked at before and after what is kept: NodeResourcesFit lies in between.
PLUGINS = (
    "VolumeZone",
    "NodeUnschedulable",
    "NodeResourcesFit",
    "NodePorts",
    "NodeVolumeLimits",
    "VolumeBinding",
)


class Searches:
    """Asks about pods on a cluster, with what is kept and without."""

    def __init__(self, cluster: SmallCluster) -> None:
        self.cluster = cluster
        self.records = TrialRecords()
        self._table: BudgetTable | None = None
        self._version = -1

    def inputs(self, pod: Pod) -> TrialInputs:
        cluster = self.cluster
        info, state = PodInfo(pod), CycleState()
        outcome = run_pre_filter(cluster.profile, state, info, nodes_of(cluster.snapshot))
        assert outcome.status is None, outcome.status
        return TrialInputs(
            cluster.profile,
            state,
            info,
            cluster.snapshot,
            cluster.nominator,
            self._budgets(),
            DEFAULT_RULES,
            cluster.clock.now_ns(),
            FilterTable(cluster.profile).of_attempt(state, info),
        )

    def check(self, pod: Pod, wanted: int | None) -> None:
        inputs = self.inputs(pod)
        kept = outcome(self.records.evaluator(inputs), inputs, wanted)
        assert kept == outcome(OneNode(inputs), inputs, wanted)

    def _budgets(self) -> BudgetTable | None:
        budgets = self.cluster.objects.pod_disruption_budgets
        if budgets.version != self._version:
            self._version = budgets.version
            self._table = BudgetTable(budgets) if len(budgets) else None
        return self._table


def outcome(evaluator: Evaluator, inputs: TrialInputs, wanted: int | None) -> object:
    """Everything a dry run says, in a form to compare."""
    dry_run = DryRun(inputs.snapshot)
    dry_run.search(evaluator, np.arange(len(inputs.snapshot)), wanted)
    found = dry_run.candidates()
    return (
        [
            (candidate.row, [pod.key for pod in candidate.victims], candidate.violation_count)
            for candidate in (found[position] for position in range(len(found)))
        ],
        found.ranks.tolist(),
        dry_run.statuses(),
        dry_run.error(),
        dry_run.message(),
    )


# --- random clusters that change ---


def hour(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


START_TIMES = st.none() | st.sampled_from([hour(NOW_S + seconds) for seconds in (-100, -50, 0, 50)])
PREEMPTORS = [
    make_pod("p1", priority=3, cpu="2"),
    make_pod("p2", priority=3, cpu="2"),
    make_pod("p3", priority=1, cpu="2"),
    make_pod("ported", priority=3, cpu="1", host_ports=[80]),
    make_pod("in-z1", priority=3, cpu="2", pvcs=["c1"]),
    make_pod("in-z2", priority=3, cpu="2", pvcs=["c2"]),
    make_pod("counted", priority=3, cpu="2", pvcs=["c3"]),
    make_pod("low", priority=-1, cpu="2"),
]
VOLUMES: list[ApiObject] = [
    make_claim("c1", volume="v1"),
    make_volume("v1", labels={ZONE: "z1"}),
    make_claim("c2", volume="v2"),
    make_volume("v2", terms=[make_term(f"{ZONE} In z2")]),
    make_claim("c3", volume="v3"),
    make_volume("v3", handle="v3"),
]


def budget(app: str, allowed: int) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=f"b-{app}", namespace="default"),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": app})),
        status=PodDisruptionBudgetStatus(disruptions_allowed=allowed),
    )


@st.composite
def running_pods(draw: st.DrawFn, name: str, node: str) -> Pod:
    return make_pod(
        name,
        node=node,
        priority=draw(st.integers(-1, 2)),
        cpu=draw(st.sampled_from([None, "1", "2"])),
        labels=draw(st.sampled_from([{}, {"app": "a"}, {"app": "b"}])),
        host_ports=draw(st.sampled_from([(), (), (80,)])),
        pvcs=draw(st.sampled_from([(), (), ("c3",)])),
        start_time=draw(START_TIMES),
    )


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    zone = draw(st.sampled_from([None, "z1", "z2"]))
    return make_node(
        name,
        cpu=draw(st.sampled_from(["2", "4"])),
        labels={} if zone is None else {ZONE: zone},
        unschedulable=draw(st.sampled_from([False, False, False, True])),
    )


@st.composite
def clusters(draw: st.DrawFn) -> SmallCluster:
    names = [f"n{number}" for number in range(draw(st.integers(1, 5)))]
    return SmallCluster(
        [draw(nodes(name)) for name in names],
        [
            draw(running_pods(f"{name}-{number}", name))
            for name in names
            for number in range(draw(st.integers(0, 4)))
        ],
        plugins=PLUGINS,
        objects=VOLUMES,
        now_s=NOW_S,
    )


class Changes:
    """What may happen to a cluster between two searches."""

    def __init__(self, cluster: SmallCluster, data: st.DataObject) -> None:
        self.cluster = cluster
        self._data = data
        self._number = 0

    def happen(self) -> None:
        kinds: list[Callable[[], None]] = [
            self.pod_comes,
            self.pod_goes,
            self.node_changes,
            self.node_comes,
            self.pod_is_nominated,
            self.budget_changes,
            self.time_passes,
            self.clock_is_set,
            self.limit_is_set,
        ]
        self._number += 1
        self._data.draw(st.sampled_from(kinds))()
        self.cluster.snapshot.refresh(self.cluster.cache)

    def _some_node(self) -> str:
        return self._data.draw(st.sampled_from(self.cluster.snapshot.names))

    def pod_comes(self) -> None:
        added = self._data.draw(running_pods(f"added-{self._number}", self._some_node()))
        self.cluster.cache.add_pod(PodInfo(added))

    def pod_goes(self) -> None:
        running = [pod for info in self.cluster.snapshot.node_infos for pod in info.pods]
        if running:
            self.cluster.cache.remove_pod(self._data.draw(st.sampled_from(running)).pod)

    def node_changes(self) -> None:
        name = self._some_node()
        old = self.cluster.snapshot.get(name).node
        self.cluster.cache.update_node(old, self._data.draw(nodes(name)))

    def node_comes(self) -> None:
        self.cluster.cache.add_node(self._data.draw(nodes(f"added-{self._number}")))

    def pod_is_nominated(self) -> None:
        priority = self._data.draw(st.integers(0, 4))
        name = f"w-{self._number}"
        self.cluster.wait(
            make_pod(name, priority=priority, cpu="1", nominated_node=self._some_node())
        )

    def budget_changes(self) -> None:
        app, allowed = self._data.draw(st.sampled_from("ab")), self._data.draw(st.integers(0, 1))
        self.cluster.objects.put(budget(app, allowed))

    def time_passes(self) -> None:
        self.cluster.clock.advance_s(self._data.draw(st.sampled_from([10, 60])))

    def clock_is_set(self) -> None:
        self.cluster.clock.set_s(NOW_S - 70)

    def limit_is_set(self) -> None:
        self.cluster.objects.put(make_csi_node(self._some_node(), {DRIVER: 1}))


@given(clusters(), st.data())
def test_what_is_kept_follows_the_cluster(cluster: SmallCluster, data: st.DataObject) -> None:
    searches, changes = Searches(cluster), Changes(cluster, data)
    for _ in range(4):
        for pod in data.draw(st.lists(st.sampled_from(PREEMPTORS), min_size=1, max_size=3)):
            searches.check(pod, data.draw(st.sampled_from([None, 1, 2, 5])))
        changes.happen()


def test_a_clock_that_was_set_back_invalidates_the_record() -> None:
    searches = Searches(
        SmallCluster(
            [make_node("n0", cpu="4")],
            [
                make_pod("started", node="n0", cpu="2", start_time=hour(NOW_S - 50)),
                make_pod("unstarted", node="n0", cpu="2"),
            ],
            plugins=PLUGINS,
            now_s=NOW_S,
        )
    )
    for now_s in (NOW_S, NOW_S - 70, NOW_S):
        searches.cluster.clock.set_s(now_s)
        searches.check(PREEMPTORS[0], None)


def test_the_first_filter_to_fail_is_reported() -> None:
    searches = Searches(
        SmallCluster(
            [
                make_node("too-small", cpu="1", labels={ZONE: "z1"}),
                make_node("elsewhere", cpu="4", labels={ZONE: "z1"}),
                make_node("empty", cpu="4", labels={ZONE: "z1"}),
                make_node("fits", cpu="4", labels={ZONE: "z2"}),
            ],
            [make_pod(name, node=name, cpu="1") for name in ("too-small", "elsewhere", "fits")],
            plugins=PLUGINS,
            objects=VOLUMES,
        )
    )
    for pod in (PREEMPTORS[4], PREEMPTORS[5], PREEMPTORS[0]):
        searches.check(pod, None)


@pytest.mark.parametrize("few", [0, 8])
def test_pods_are_kept_apart_only_as_far_as_needed(
    few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes are tried once for all pods alike, and again when they change."""
    monkeypatch.setattr(trial_record, "FEW", few)
    monkeypatch.setattr(evictable, "FEW", few)
    tried: list[int] = []
    keep = TrialRecord.keep

    def noted(record: TrialRecord, rows: IntpArray, results: TrialResults) -> None:
        tried.extend(rows.tolist())
        keep(record, rows, results)

    try_node = ByNumbers.try_node

    def noted_by_numbers(
        by_numbers: ByNumbers, row: int, info: NodeInfo, now_ns: int
    ) -> Candidate | int:
        tried.append(row)
        return try_node(by_numbers, row, info, now_ns)

    monkeypatch.setattr(TrialRecord, "keep", noted)
    monkeypatch.setattr(ByNumbers, "try_node", noted_by_numbers)
    cluster = SmallCluster(
        [make_node(f"n{row}", cpu="4") for row in range(6)],
        [make_pod(f"v{row}", node=f"n{row}", cpu="4", priority=0) for row in range(6)],
        plugins=PLUGINS,
        objects=VOLUMES,
    )
    searches = Searches(cluster)

    def search(pod: Pod) -> list[int]:
        tried.clear()
        inputs = searches.inputs(pod)
        dry_run = DryRun(cluster.snapshot)
        dry_run.search(searches.records.evaluator(inputs), np.arange(6), 2)
        assert len(dry_run.candidates()) == 2
        return sorted(tried)

    mounting = make_pod("mounting", priority=3, cpu="2", pvcs=["c1"])
    for pod in (
        make_pod("plain", priority=3, cpu="2"),
        make_pod("higher", priority=4, cpu="2"),
        make_pod("other", priority=3, cpu="1"),
        mounting,
    ):
        # Nothing is kept for a single pod.
        assert search(pod) == []
        assert search(msgspec.structs.replace(pod)) == [0, 1]
        assert search(msgspec.structs.replace(pod)) == []
    cluster.cache.add_pod(PodInfo(make_pod("more", node="n1", priority=5)))
    cluster.snapshot.refresh(cluster.cache)
    assert 0 not in search(make_pod("third", priority=3, cpu="2"))


class FailsOnN1:
    """Looks at every pod by itself, at no other pods, and cannot say what is wrong with a node."""

    name: ClassVar[str] = "FailsOnN1"
    args_type: ClassVar[None] = None
    reuse: ClassVar[Reuse] = Reuse(filter=Reads.NODE, basis=lambda pod: ASKED)

    def __init__(self, args: object, handle: Handle) -> None:
        pass

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        return np.array([-(name == "n1") for name in nodes.names], np.int64)

    def filter_status(self, state: CycleState, code: int) -> Status:
        return Status.from_error(PluginError("broken"))


class RaisesOnN1(FailsOnN1):
    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> IntArray | None:
        if "n1" in nodes.names:
            raise PluginError("broken")
        return None


@pytest.mark.parametrize("plugin", [FailsOnN1, RaisesOnN1])
def test_faults_are_reported_and_not_kept(plugin: type[FailsOnN1]) -> None:
    searches = Searches(
        SmallCluster(
            [make_node(f"n{row}", cpu="4") for row in range(3)],
            [make_pod(f"v{row}", node=f"n{row}", cpu="4", priority=0) for row in range(3)],
            plugins=("NodeResourcesFit", plugin.name),
            registry={**REGISTRY, plugin.name: plugin},
        )
    )
    for wanted in (None, 1, 3):
        searches.check(PREEMPTORS[0], wanted)
    inputs = searches.inputs(PREEMPTORS[0])
    searches.records.evaluator(inputs)
    first = searches.records.evaluator(inputs)
    assert isinstance(first, RecordedTrials)
    first.evaluate(np.arange(3), None)
    if plugin is FailsOnN1:
        assert searches.records.evaluator(inputs).statuses is not first.statuses


class KeepsTeamsApart(NodeFilter):
    """Admits each team to its own nodes only: reads a label of the pod."""

    name: ClassVar[str] = "KeepsTeamsApart"
    reuse: ClassVar[Reuse] = Reuse(filter=Reads.NODE)
    per_node: ClassVar[bool] = True

    def filter_node(self, pod: Pod, node: Node) -> bool | str:
        return pod.metadata.labels["team"] == node.metadata.labels["team"] or "another team"


def test_pods_that_a_filter_tells_apart_by_labels_have_records_of_their_own() -> None:
    searches = Searches(
        SmallCluster(
            [make_node(f"n{row}", cpu="4", labels={"team": str(row % 2)}) for row in range(4)],
            [make_pod(f"v{row}", node=f"n{row}", cpu="4", priority=0) for row in range(4)],
            plugins=("NodeResourcesFit", KeepsTeamsApart.name),
            registry={**REGISTRY, KeepsTeamsApart.name: KeepsTeamsApart},
        )
    )
    for number in range(6):
        pod = make_pod("p", priority=3, cpu="2", labels={"team": str(number % 2)})
        searches.check(pod, None)
    assert len(searches.records._records) == 2


class NamesTheLoad(NodeFilter):
    """Rejects every node with a reason of its own, another one for each load."""

    name: ClassVar[str] = "NamesTheLoad"
    reuse: ClassVar[Reuse] = Reuse(filter=Reads.NODE)
    per_node: ClassVar[bool] = True

    def filter_node(self, pod: Pod, node: Node) -> str:
        return f"load is {node.metadata.labels['load']}"


def test_reasons_that_are_no_longer_given_are_forgotten() -> None:
    before = make_node("n0", cpu="4", labels={"load": "0"})
    cluster = SmallCluster(
        [before],
        [make_pod("v0", node="n0", cpu="4", priority=0)],
        plugins=("NodeResourcesFit", NamesTheLoad.name),
        registry={**REGISTRY, NamesTheLoad.name: NamesTheLoad},
    )
    searches = Searches(cluster)
    for load in range(numbered_max(1) + 5):
        node = make_node("n0", cpu="4", labels={"load": str(load)})
        cluster.cache.update_node(before, node)
        before = node
        cluster.snapshot.refresh(cluster.cache)
        inputs = searches.inputs(PREEMPTORS[0])
        evaluator = searches.records.evaluator(inputs)
        (code,) = evaluator.evaluate(np.arange(1), None).codes
        assert evaluator.statuses.status_of(code).message == f"load is {load}"
        assert len(evaluator.statuses) <= numbered_max(1) + 1


def test_small_clusters_do_not_keep_records_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_records, "_NUMBERS_MAX", 20_000)
    searches = Searches(
        SmallCluster(
            [make_node("n0", cpu="4")],
            [make_pod("v0", node="n0", cpu="4", priority=0)],
            plugins=PLUGINS,
        )
    )
    for number in range(50):
        searches.check(make_pod("p", priority=3, cpu="2", node_selector={"job": str(number)}), None)
    assert 4 <= len(searches.records._records) <= 10


def test_budgets_of_earlier_times_are_not_kept() -> None:
    """Every change of a budget makes a new table, which knows all budgets and many pods."""
    cluster = SmallCluster(
        [make_node("n0", cpu="4"), make_node("n1", cpu="4")],
        [make_pod(f"v{row}", node=f"n{row}", cpu="4", priority=0) for row in range(2)],
        plugins=PLUGINS,
    )
    searches = Searches(cluster)
    tables: list[weakref.ref[BudgetTable]] = []
    for number in range(3):
        cluster.objects.put(budget(f"app-{number}", 1))
        # Each pod has a shape of its own, and each search stops at another node.
        searches.check(make_pod("p", priority=3 + number, cpu=f"{number + 1}"), 1)
        inputs = searches.inputs(make_pod("q", priority=3, cpu="2"))
        tables.append(weakref.ref(inputs.budgets))
        del inputs
        gc.collect()
        assert [table() is not None for table in tables] == [False] * number + [True]


def test_numbers_of_all_pods_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit counts numbers for each node. Those of its pods would be many times as many."""
    monkeypatch.setattr(evictable, "FEW", 0)
    searches = Searches(
        SmallCluster(
            [make_node("n0", cpu="4"), make_node("n1", cpu="4")],
            [make_pod(f"v{row}", node=f"n{row}", cpu="4", priority=0) for row in range(2)],
            plugins=PLUGINS,
        )
    )
    searches.check(PREEMPTORS[0], None)
    searches.check(PREEMPTORS[0], None)
    gc.collect()
    (record,) = searches.records._records.values()
    assert record is not None
    assert [pod.name for pod in record.victims_of(1)] == ["v1"]
    assert not [one for one in gc.get_objects() if isinstance(one, PodSlots)]


def test_a_filter_that_counts_other_pods_keeps_nothing() -> None:
    cluster = SmallCluster(
        [make_node("n0", cpu="4")],
        plugins=PLUGINS,
        objects=[*VOLUMES, make_csi_node("n0", {DRIVER: 1})],
    )
    searches = Searches(cluster)
    plain = searches.inputs(make_pod("plain", priority=3))
    counted = searches.inputs(make_pod("counted", priority=3, pvcs=["c3"]))
    for inputs, kind in ((plain, RecordedTrials), (counted, ManyNodes)):
        searches.records.evaluator(inputs)
        assert isinstance(searches.records.evaluator(inputs), kind)
