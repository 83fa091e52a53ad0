"""LoadAware: thresholds, scores, pods that were just placed, and nothing without measurements."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kubestow.api.meta import Condition, OwnerReference
from kubestow.api.pod_info import PodInfo
from kubestow.api.quantity import parse_quantity
from kubestow.config.load_aware_args import LoadAwareArgs, LoadEstimate, LoadThresholds
from kubestow.framework.cycle_state import CycleState
from kubestow.index.nodes import nodes_of
from kubestow.plugins.load_aware import placed as placed_module
from kubestow.plugins.load_aware import rows as rows_module
from kubestow.plugins.load_aware.placed import PlacedPods
from kubestow.plugins.load_aware.plugin import is_exempt
from kubestow.testing import make_pod
from kubestow.usage.measurement import Amounts, Measurement

GIB = 1 << 30
SECOND = 10**9
OFFERED = (4000, 16 * GIB)
POD = make_pod("p", cpu="1", memory="1Gi")
SET = OwnerReference(api_version="apps/v1", kind="DaemonSet", name="d", uid="u", controller=True)


def pending(reason):
    return Condition(
        type="PodScheduled",
        status="False",
        reason="Unschedulable",
        message=f"0/4 nodes are available: {reason}.",
    )


def limited(requested, limit):
    pod = make_pod("p", cpu=requested)
    container = pod.spec.containers[0]
    resources = replace(container.resources, limits={"cpu": parse_quantity(limit)})
    spec = replace(pod.spec, containers=(replace(container, resources=resources),))
    return replace(pod, spec=spec)


# --- nothing without measurements ---


def test_without_measurements_the_plugin_takes_no_part(load_cluster):
    cluster = load_cluster()
    assert cluster.codes(POD) == [0, 0, 0, 0]
    assert cluster.scores(POD) is None
    assert cluster.plugin.reuse.basis(PodInfo(POD)) == 0


def test_without_a_source_the_plugin_takes_no_part(load_cluster):
    cluster = load_cluster()
    cluster.handle.usage = None
    plugin = type(cluster.plugin)(LoadAwareArgs(), cluster.handle)
    assert plugin.reuse.basis(PodInfo(POD)) == 0
    plugin.reserve(CycleState(), PodInfo(POD), "n0")
    assert len(plugin.load.placed) == 0


@pytest.mark.parametrize(
    "measure",
    [
        pytest.param(lambda cluster: cluster.measure({"n0": 3900}, age_s=181), id="stale"),
        pytest.param(lambda cluster: cluster.measure({"n0": 3900}, age_s=-61), id="of-the-future"),
        pytest.param(lambda cluster: cluster.measure({"n0": 32_001}), id="not-plausible"),
        pytest.param(lambda cluster: cluster.measure({"n0": -1}), id="negative"),
        pytest.param(lambda cluster: cluster.measure({"other": 3900}), id="other-node"),
        pytest.param(lambda cluster: cluster.measure({"n0": 0}, {"n0": 1 << 60}), id="huge"),
    ],
)
def test_what_is_not_usable_changes_nothing(load_cluster, measure):
    cluster = load_cluster()
    measure(cluster)
    assert cluster.codes(POD) == [0, 0, 0, 0]
    assert cluster.scores(POD) is None


def test_a_node_is_left_alone_as_soon_as_its_measurement_is_too_old(load_cluster):
    cluster = load_cluster()
    cluster.measure({"n0": 3900})
    assert cluster.codes(POD) == [1, 0, 0, 0]
    cluster.clock.advance_s(180)
    assert cluster.codes(POD) == [1, 0, 0, 0]
    cluster.clock.advance_s(0.001)
    assert cluster.codes(POD) == [0, 0, 0, 0]
    assert cluster.scores(POD) is None


def test_nodes_without_a_measurement_get_the_mean_of_the_others(load_cluster):
    cluster = load_cluster(estimate=LoadEstimate(defaults={}, requests_percent={}))
    cluster.measure({"n0": 0, "n2": 2000}, {"n0": 0, "n2": 0})
    assert cluster.scores(make_pod("p")) == [100, 87, 75, 87]


# --- thresholds ---


def test_a_node_over_a_threshold_is_left_out_with_a_reason(load_cluster):
    cluster = load_cluster(thresholds=LoadThresholds(average={"cpu": 50}, peak={"memory": 25}))
    cluster.measure({"n0": 2000, "n1": 2001, "n2": 0}, {"n2": 4 * GIB + 1})
    assert cluster.codes(POD) == [0, 1, 2, 0]
    status = cluster.plugin.filter_status(CycleState(), 2)
    assert status.all_reasons == ("node(s) had memory in use above 25% (peak)",)
    assert status.is_rejected


def test_a_node_gets_pods_again_once_it_is_well_below(load_cluster):
    thresholds = LoadThresholds(average={"cpu": 50})
    cluster = load_cluster(history=1, thresholds=thresholds, hysteresis_percent=10)
    seen = []
    for used in (1900, 2001, 1900, 1601, 1600, 1900):
        cluster.clock.advance_s(1)
        cluster.measure({"n0": used})
        seen.append(cluster.codes(POD)[0])
    assert seen == [0, 1, 1, 1, 0, 0]


@pytest.mark.parametrize(
    ("pod", "exempt"),
    [
        pytest.param(make_pod("p", owner=SET), True, id="daemon-set"),
        pytest.param(make_pod("p", priority=2_000_000_000), True, id="critical"),
        pytest.param(make_pod("p", priority=1_999_999_999), False, id="important"),
    ],
)
def test_thresholds_are_not_for_daemon_sets_and_critical_pods(load_cluster, pod, exempt):
    cluster = load_cluster()
    cluster.measure({"n0": 4000})
    assert is_exempt(PodInfo(pod)) is exempt
    assert cluster.codes(pod) == [0 if exempt else 1, 0, 0, 0]


def test_pods_that_wait_are_activated_when_a_node_is_below_again(load_cluster):
    cluster = load_cluster(history=1)
    activated = []
    cluster.handle.activate = activated.extend
    cluster.measure({"n0": 4000})
    assert cluster.codes(POD)[0] == 1
    waiting = make_pod("w", conditions=[pending("4 node(s) had cpu in use above 85% (average)")])
    other = make_pod("o", conditions=[pending("4 Insufficient cpu")])
    cluster.handle.objects.put(waiting, other)
    cluster.clock.advance_s(1)
    cluster.measure({"n0": 3900})
    assert activated == []
    cluster.clock.advance_s(1)
    cluster.measure({"n0": 100})
    assert activated == [waiting]


# --- scores ---


def test_a_pod_is_expected_to_use_what_its_siblings_use(load_cluster):
    cluster = load_cluster()
    owner = OwnerReference(api_version="v1", kind="Job", name="j", uid="u", controller=True)
    pod = make_pod("p", namespace="ns", cpu="1", memory="1Gi", owner=owner)
    estimate = cluster.plugin.estimates.of
    assert estimate(PodInfo(pod)) == (850, GIB * 70 // 100)
    cluster.usage.add(
        Measurement(1, Amounts(used, GIB), namespace="ns", pod=name, workload="ns/Job/j")
        for name, used in (("a", 100), ("b", 201))
    )
    assert estimate(PodInfo(pod)) == (150, GIB)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(make_pod("p"), (100, 200 << 20), id="default"),
        pytest.param(limited("1", "10"), (3000, 200 << 20), id="limits"),
        pytest.param(limited("2", "4"), (1700, 200 << 20), id="requests"),
    ],
)
def test_an_estimate_is_a_share_of_requests_and_limits(load_cluster, pod, expected):
    assert load_cluster().plugin.estimates.of(PodInfo(pod)) == expected


def test_risk_counts_the_deviation_as_used(load_cluster):
    cluster = load_cluster(risk_percent=200, estimate=LoadEstimate(defaults={"cpu": "0"}))
    for used in (0, 2000):
        cluster.clock.advance_s(1)
        cluster.measure({"n0": used, "n1": 1000}, {"n0": 0, "n1": 0})
    # n0: average 1000, deviation 1000, counts 3000 of 4000; n1: 1000.
    assert cluster.scores(make_pod("p"))[:2] == [(25 + 100) // 2, (75 + 100) // 2]


# --- pods that were just placed ---


def test_a_placed_pod_fades_into_the_measurement(load_cluster):
    cluster = load_cluster(estimate=LoadEstimate(fade_seconds=100))
    load = cluster.plugin.load
    cluster.measure({"n0": 0})
    cluster.codes(POD)
    cluster.reserve(make_pod("a", cpu="2"), "n0")
    placed_s = cluster.clock.now_ns() // SECOND
    assert load.pending[0, 0] == 1700
    for passed_s, counted in ((25, 1275), (50, 850), (99, 17), (100, 0)):
        cluster.clock.set_s(placed_s + passed_s)
        cluster.measure({"n0": 0})
        cluster.codes(POD)
        assert load.pending[0, 0] == counted
        assert load.headroom[0, 0] == 4000 - counted


def test_a_pod_that_is_gone_counts_no_more(load_cluster):
    cluster = load_cluster()
    cluster.measure({"n0": 3000})
    cluster.codes(POD)
    pods = [make_pod(name, cpu="1") for name in "abc"]
    for pod in pods:
        cluster.reserve(pod, "n0")
    assert cluster.codes(POD) == [1, 0, 0, 0]  # 3000 + 3 x 850 of 4000
    cluster.plugin.unreserve(CycleState(), PodInfo(pods[0]), "n0")
    cluster.handle.objects.put(pods[1])
    cluster.handle.objects.pods.remove(pods[1].metadata.namespace, "b")
    ended = make_pod("c", cpu="1", node="n0", phase="Succeeded")
    cluster.handle.objects.put(replace(ended, metadata=pods[2].metadata))
    assert cluster.plugin.load.pending[0, 0] == 0
    assert cluster.codes(POD) == [0, 0, 0, 0]


def test_pods_that_others_place_are_counted_once(load_cluster):
    cluster = load_cluster()
    cluster.measure({"n0": 0})
    for pod in (make_pod("a", cpu="1"), make_pod("a", cpu="1", node="n0")):
        cluster.handle.objects.put(pod)
    assert cluster.plugin.load.pending[0, 0] == 850
    cluster.handle.objects.put(make_pod("a", cpu="1", node="n0", labels={"x": "y"}))
    cluster.handle.objects.put(make_pod("old", cpu="1", node="n0"))  # placed in 1970
    assert cluster.plugin.load.pending[0, 0] == 850


def test_a_limited_number_of_placed_pods_is_kept(load_cluster, monkeypatch):
    for module in (placed_module, rows_module):
        monkeypatch.setattr(module, "PLACED_HALF", 500)
    cluster = load_cluster()
    load = cluster.plugin.load
    load.refresh(cluster.snapshot)
    for number in range(3000):
        assert load.place(0, f"u{number}", 1, Amounts(1, 1))
        assert len(load.placed) <= 1001
    assert "u2999" in load.placed
    load.placed.file(0)
    assert load.placed.sums(4, np.full(4, -1)).sum() == 2 * len(load.placed)


def test_placed_pods_follow_the_numbers_of_their_nodes():
    pods = PlacedPods(100)
    pods.recent |= {"a": (0, 10, 1, 2), "b": (1, 20, 3, 4), "c": (2, 30, 5, 6)}
    pods.file(0)
    pods.recent |= {"b": (1, 25, 7, 8), "d": (2, 40, 9, 10)}  # One of them is counted already.
    pods.renumber(np.array([-1, 2, 0]))
    assert len(pods) == 3
    assert pods.sums(3, np.full(3, -1)).tolist() == [[14, 0, 3], [16, 0, 4]]
    assert pods.remove("c") == (0, 30, 5, 6)
    assert pods.remove("c") is None
    pods.file(25)
    assert ["b" in pods, "d" in pods] == [False, True]
    assert pods.sums(3, np.full(3, -1)).tolist() == [[9, 0, 0], [10, 0, 0]]


def test_estimates_of_a_limited_number_of_kinds_are_kept(load_cluster, monkeypatch):
    from kubestow.plugins.load_aware import estimates as module

    monkeypatch.setattr(module, "PLACED_MAX", 3)
    estimates = load_cluster().plugin.estimates
    for number in range(10):
        estimates.of(PodInfo(make_pod("p", cpu=f"{number + 1}m")))
    assert len(estimates._kept) <= 3


# --- a slow reading, one node at a time ---

numbers = st.integers(0, 3)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("measure"), numbers, st.integers(0, 5000), st.integers(0, 20 * GIB)),
        st.tuples(st.just("place"), numbers, st.integers(1, 3000), st.integers(1, 9)),
        st.tuples(st.just("remove"), st.integers(0, 20), st.just(0), st.just(0)),
        st.tuples(st.just("wait"), st.integers(1, 200), st.just(0), st.just(0)),
    ),
    max_size=15,
)
ARGS = {
    "thresholds": LoadThresholds(average={"cpu": 60, "memory": 70}, p95={"cpu": 80}),
    "estimate": LoadEstimate(fade_seconds=60),
    "hysteresis_percent": 20,
    "risk_percent": 50,
    "max_age_seconds": 100,
}


class SlowNode:
    """One node, with plain numbers: its measurements and the pods placed on it."""

    def __init__(self):
        self.history, self.time_ns, self.over, self.pods = [], -1, {}, {}

    def usable(self, now_ns):
        return (
            self.time_ns >= 0
            and now_ns - 100 * SECOND <= self.time_ns
            and all(self.history[-1][place] <= 8 * OFFERED[place] for place in range(2))
        )

    def average(self, place):
        return sum(each[place] for each in self.history) // len(self.history)

    def p95(self, place):
        ordered = sorted(each[place] for each in self.history)
        return ordered[-(-95 * len(ordered) // 100) - 1]

    def pending(self, place):
        total = 0
        for time_ns, estimate in self.pods.values():
            left_ns = min(max(60 * SECOND - (self.time_ns - time_ns), 0), 60 * SECOND)
            total += estimate[place] * (left_ns * 1000 // (60 * SECOND)) // 1000
        return total

    def deviation(self, place):
        unit = (1, 1 << 20)[place]
        mean = self.average(place)
        squares = sum((abs(each[place] - mean) // unit) ** 2 for each in self.history)
        return int((squares // len(self.history)) ** 0.5) * unit

    def code(self, now_ns):
        found = 0
        rules = [("average", 0, 60), ("average", 1, 70), ("p95", 0, 80)]
        for number, (statistic, place, percent) in enumerate(rules, 1):
            over = False
            if self.usable(now_ns):
                used = getattr(self, statistic)(place)
                limit = percent - 20 if self.over.get(number) else percent
                over = used * 100 > limit * OFFERED[place]
                self.over[number] = over
                if statistic == "average":
                    over |= (used + self.pending(place)) * 100 > percent * OFFERED[place]
            else:
                self.over[number] = False
            found = found or (number if over else 0)
        return found

    def score(self, now_ns, estimate):
        if not self.usable(now_ns):
            return None
        total = 0
        for place in range(2):
            used = self.average(place) + self.deviation(place) // 2 + self.pending(place)
            free = max(OFFERED[place] - used - estimate[place], 0)
            total += free * 100 // OFFERED[place]
        return total // 2


def slow_scores(nodes, now_ns, estimate):
    scores = [node.score(now_ns, estimate) for node in nodes]
    known = [score for score in scores if score is not None]
    if not known:
        return None
    return [sum(known) // len(known) if score is None else score for score in scores]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps)
def test_arrays_equal_a_slow_reading(load_cluster, changes):
    cluster, nodes = load_cluster(**ARGS), [SlowNode() for _ in range(4)]
    placed = []
    assert cluster.codes(POD) == [0] * 4
    for what, first, second, third in changes:
        now_ns = cluster.clock.now_ns()
        if what == "measure":
            cluster.measure({f"n{first}": second}, {f"n{first}": third})
            if nodes[first].time_ns < now_ns:
                nodes[first].history.append((second, third))
                nodes[first].time_ns = now_ns
        elif what == "place":
            pod = make_pod(f"p{len(placed)}", cpu=f"{second}m", memory=f"{third}Gi")
            cluster.reserve(pod, f"n{first}")
            estimate = (second * 85 // 100, third * GIB * 70 // 100)
            nodes[first].pods[pod.metadata.uid] = now_ns, estimate
            placed.append(pod)
        elif what == "remove" and first < len(placed):
            cluster.plugin.unreserve(CycleState(), PodInfo(placed[first]), "")
            for node in nodes:
                node.pods.pop(placed[first].metadata.uid, None)
        elif what == "wait":
            cluster.clock.advance_s(first)
        now_ns = cluster.clock.now_ns()
        assert cluster.codes(POD) == [node.code(now_ns) for node in nodes]
        expected = slow_scores(nodes, now_ns, (850, GIB * 70 // 100))
        assert cluster.scores(POD) == expected
        final = cluster.plugin.final_scores(CycleState(), PodInfo(POD), nodes_of(cluster.snapshot))
        assert (None if final is None else final.tolist()) == expected
        rule = cluster.plugin.filter_rule(CycleState(), PodInfo(POD))
        assert rule.passes_all() is not any(cluster.codes(POD))
