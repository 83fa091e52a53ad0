"""The priorities of v1.9 by the worked examples of the specification (05 §18, 06 §6.6.2 to
§6.6.4)."""

import json
from datetime import UTC, datetime

import numpy as np
import pytest

from kubestow.api.meta import ObjectMeta, OwnerReference
from kubestow.api.pod import Container, ResourceRequirements
from kubestow.api.topology import BETA_ZONE_LABEL
from kubestow.api.workload import (
    ReplicaSet,
    ReplicaSetSpec,
    ReplicationController,
    ReplicationControllerSpec,
    Service,
    ServiceSpec,
)
from kubestow.editions.shared.avoided_pods import ANNOTATION
from kubestow.editions.shared.zone_spread import spread
from kubestow.editions.v1_9.plugins.contract import MAX_PRIORITY, PriorityError
from kubestow.editions.v1_9.plugins.priorities.balanced import BalancedResourceAllocation
from kubestow.editions.v1_9.plugins.priorities.equal import EqualPriority
from kubestow.editions.v1_9.plugins.priorities.image_locality import score_of
from kubestow.editions.v1_9.plugins.priorities.inter_pod_affinity import (
    InterPodAffinityPriority,
    scaled,
)
from kubestow.editions.v1_9.plugins.priorities.label_preference import LabelPreference
from kubestow.editions.v1_9.plugins.priorities.node_affinity import NodeAffinityPriority
from kubestow.editions.v1_9.plugins.priorities.prefer_avoid_pods import NodePreferAvoidPodsPriority
from kubestow.editions.v1_9.plugins.priorities.requested import (
    LeastRequestedPriority,
    MostRequestedPriority,
)
from kubestow.editions.v1_9.plugins.priorities.resource_limits import ResourceLimitsPriority
from kubestow.editions.v1_9.plugins.priorities.selector_spread import SelectorSpreadPriority
from kubestow.editions.v1_9.plugins.priorities.service_anti_affinity import spread_by_label
from kubestow.editions.v1_9.plugins.priorities.taint_toleration import TaintTolerationPriority
from kubestow.testing.builders import (
    make_node,
    make_node_affinity,
    make_pod,
    make_resources,
    make_term,
)
from kubestow.testing.topology import make_affinity, make_pod_term, make_selector
from tools.bench_v1_9 import BenchV19

MB = 1024 * 1024


@pytest.mark.parametrize(
    ("priority", "cpu", "memory", "score"),
    [
        pytest.param(LeastRequestedPriority(), "5", 6000, 4, id="least"),
        pytest.param(LeastRequestedPriority(), "9", 6000, 3, id="least-too-much-cpu"),
        pytest.param(MostRequestedPriority(), "5", 6000, 4, id="most"),
        pytest.param(MostRequestedPriority(), "9", 6000, 1, id="most-too-much-cpu"),
        pytest.param(BalancedResourceAllocation(), "5", 6000, 7, id="balanced"),
        pytest.param(BalancedResourceAllocation(), "8", 6000, 0, id="balanced-full"),
    ],
)
def test_how_full_a_node_of_8_cpus_and_16000_bytes_is(
    priority: LeastRequestedPriority, cpu: str, memory: int, score: int
) -> None:
    bench = BenchV19([make_node(cpu="8", memory=16000)])
    assert bench.scores(priority, make_pod(cpu=cpu, memory=memory)) == {"n": score}


def test_a_pod_that_asks_for_nothing_counts_with_the_defaults() -> None:
    bench = BenchV19([make_node(cpu="4", memory="8Gi")])
    assert bench.scores(LeastRequestedPriority(), make_pod()) == {"n": 9}


def test_balanced_truncates() -> None:
    bench = BenchV19([make_node(cpu="4", memory="8Gi")])
    pod = make_pod(cpu="1", memory="1Gi")
    assert bench.scores(BalancedResourceAllocation(), pod) == {"n": 8}


def test_a_resource_the_node_lacks_scores_0_and_counts() -> None:
    bench = BenchV19([make_node(cpu="4", memory=None)])
    assert bench.scores(LeastRequestedPriority(), make_pod(cpu=0)) == {"n": 5}


def test_node_affinity_is_relative_to_the_best() -> None:
    nodes = [make_node(name, labels={"is": name}) for name in "abc"]
    preferred = [(5, make_term("is In b")), (2, make_term("is In c")), (9, make_term())]
    pod = make_pod(node_affinity=make_node_affinity(preferred=preferred))
    assert BenchV19(nodes).scores(NodeAffinityPriority(), pod) == {"a": 0, "b": 10, "c": 4}


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("a Near b", '"Near" is not a valid node selector operator'),
        ("a In", "for 'in', 'notin' operators, values set can't be empty"),
        ("a Exists b", "values set must be empty for exists and does not exist"),
        ("a Gt 1,2", "for 'Gt', 'Lt' operators, exactly one value is required"),
        ("a Gt b", "for 'Gt', 'Lt' operators, the value must be an integer"),
    ],
)
def test_a_preferred_term_with_a_mistake_fails(expression: str, text: str) -> None:
    pod = make_pod(node_affinity=make_node_affinity(preferred=[(1, make_term(expression))]))
    with pytest.raises(PriorityError) as failure:
        BenchV19([make_node()]).scores(NodeAffinityPriority(), pod)
    assert str(failure.value) == text


def test_a_mistake_with_weight_0_does_no_harm() -> None:
    pod = make_pod(node_affinity=make_node_affinity(preferred=[(0, make_term("a Near b"))]))
    assert BenchV19([make_node()]).scores(NodeAffinityPriority(), pod) == {"n": 0}


def test_fewer_soft_taints_are_better() -> None:
    nodes = [
        make_node(f"n{count}", taints=[f"t{index}:PreferNoSchedule" for index in range(count)])
        for count in (0, 1, 3)
    ]
    scores = BenchV19(nodes).scores(TaintTolerationPriority(), make_pod())
    assert scores == {"n0": 10, "n1": 7, "n3": 0}


def test_image_locality_by_size() -> None:
    sizes = np.array([22, 23, 120, 121, 250, 950, 1000], np.int64) * MB
    assert score_of(sizes).tolist() == [0, 1, 1, 2, 3, 10, 10]


def test_service_anti_affinity_by_label() -> None:
    counts, ids = np.array([2, 1, 0, 0], np.int64), np.array([1, 2, 3, 0], np.intp)
    assert spread_by_label(counts, ids, 3).tolist() == [3, 6, 10, 0]
    assert spread_by_label(counts * 0, ids, 0).tolist() == [10, 10, 10, 0]


@pytest.mark.parametrize(("count", "score"), list(enumerate([10, 8, 7, 5, 4, 2, 1, 0])))
def test_service_anti_affinity_of_seven_pods(count: int, score: int) -> None:
    found = spread_by_label(np.array([count], np.int64), np.array([1], np.intp), 7)
    assert found.tolist() == [score]


@pytest.mark.parametrize(
    ("kind", "uid", "score"),
    [
        pytest.param("ReplicaSet", "abc", 0, id="listed"),
        pytest.param("ReplicaSet", "other", 10, id="another"),
        pytest.param("ReplicationController", "abc", 10, id="of-another-kind"),
        pytest.param("StatefulSet", "abc", 10, id="never-avoided"),
    ],
)
def test_nodes_prefer_to_avoid_pods_of_a_controller(kind: str, uid: str, score: int) -> None:
    avoided = {
        "preferAvoidPods": [
            {"podSignature": {"podController": {"kind": listed, "uid": "abc"}}}
            for listed in ("ReplicaSet", "StatefulSet")
        ]
    }
    bench = BenchV19(
        [
            make_node("n1", annotations={ANNOTATION: json.dumps(avoided)}),
            make_node("n2", annotations={ANNOTATION: "{"}),
        ]
    )
    pod = make_pod(owner=OwnerReference(kind=kind, uid=uid, controller=True))
    assert bench.scores(NodePreferAvoidPodsPriority(), pod) == {"n1": score, "n2": 10}


def test_limits_that_fit_score_1() -> None:
    limits = ResourceRequirements(limits=make_resources({"cpu": "4"}))
    bench = BenchV19([make_node("small", cpu="2"), make_node("large", cpu="4")])
    pod = make_pod(containers=[Container(resources=limits)])
    assert bench.scores(ResourceLimitsPriority(), pod) == {"small": 0, "large": 1}
    assert bench.scores(ResourceLimitsPriority(), make_pod()) == {"small": 0, "large": 0}


@pytest.mark.parametrize("presence", [True, False])
def test_label_preference(presence: bool) -> None:
    bench = BenchV19([make_node("has", labels={"ssd": ""}), make_node("lacks")])
    scores = bench.scores(LabelPreference("x", label="ssd", presence=presence), make_pod())
    assert scores == {"has": 10 * presence, "lacks": 10 * (not presence)}


def test_all_nodes_are_equal() -> None:
    assert BenchV19([make_node()]).scores(EqualPriority(), make_pod()) == {"n": 1}


A, B, C, X, Y = 1, 2, 3, 1, 2


@pytest.mark.parametrize(
    ("counts", "zones", "scores"),
    [
        pytest.param([3, 1, 0, 2], [A, A, B, 0], [0, 2, 10, 3], id="L1"),
        pytest.param([3, 1, 0, 2], [0, 0, 0, 0], [0, 6, 10, 3], id="L2-no-zones"),
        pytest.param([1, 1, 1, 0], [A, A, B, C], [0, 0, 3, 10], id="L3"),
        pytest.param([2, 1, 0, 1], [A, A, B, B], [0, 1, 7, 6], id="L4"),
        pytest.param([5, 6, 5, 4], [X, Y, Y, Y], [4, 0, 0, 1], id="L5-just-below-5"),
        pytest.param([0, 0, 3], [A, B, 0], [10, 10, 0], id="L6-no-pods-in-zones"),
        pytest.param([0, 0], [A, 0], [10, 10], id="nothing-anywhere"),
    ],
)
def test_selector_spread(counts: list[int], zones: list[int], scores: list[int]) -> None:
    found = spread(np.array(counts, np.int64), np.array(zones, np.intp), best=MAX_PRIORITY)
    assert found.tolist() == scores


def test_selectors_are_found_by_labels_and_any_of_them_counts() -> None:
    meta = ObjectMeta(name="x", namespace="default")
    objects = [
        Service(metadata=meta, spec=ServiceSpec(selector={"app": "web"})),
        ReplicationController(metadata=meta, spec=ReplicationControllerSpec(selector={"v": "1"})),
        ReplicaSet(metadata=meta, spec=ReplicaSetSpec(selector=make_selector("v=2"))),
    ]
    leaving = datetime(2026, 1, 1, tzinfo=UTC)
    pods = [
        make_pod("by-service", labels={"app": "web"}, node="n1"),
        make_pod("by-controller", labels={"v": "1"}, node="n1"),
        make_pod("not-ours", labels={"v": "2"}, node="n2"),
        make_pod("elsewhere", namespace="other", labels={"app": "web"}, node="n2"),
        make_pod("leaving", labels={"app": "web"}, node="n2", deleted=leaving),
        make_pod("third", labels={"v": "1"}, node="n3"),
    ]
    bench = BenchV19([make_node(f"n{number}") for number in (1, 2, 3)], pods, objects)
    pod = make_pod(labels={"app": "web", "v": "1"})
    assert bench.scores(SelectorSpreadPriority(), pod) == {"n1": 0, "n2": 10, "n3": 5}


def test_only_the_beta_labels_make_zones() -> None:
    service = Service(
        metadata=ObjectMeta(name="x", namespace="default"),
        spec=ServiceSpec(selector={"app": "web"}),
    )
    nodes = [
        make_node("old", labels={BETA_ZONE_LABEL: "a"}),
        make_node("new", zone="a"),
        make_node("empty", labels={BETA_ZONE_LABEL: ""}),
    ]
    running = make_pod("r", labels={"app": "web"}, node="old")
    bench = BenchV19(nodes, [running], [service])
    scores = bench.scores(SelectorSpreadPriority(), make_pod(labels={"app": "web"}))
    assert scores == {"old": 0, "new": 10, "empty": 10}


@pytest.mark.parametrize(
    ("raw", "scores"),
    [
        ([5, 10], [5, 10]),
        ([7, 7], [10, 10]),
        ([-7, -7], [0, 0]),
        ([20, 20, 10, 0], [10, 10, 5, 0]),
        ([-5, -10, 0], [5, 0, 10]),
        ([1, 1, -40, 0], [10, 10, 0, 9]),
        ([-20, 10, -30, 0], [2, 10, 0, 7]),
        ([], []),
    ],
)
def test_sums_of_weights_are_scaled_from_zero(raw: list[int], scores: list[int]) -> None:
    assert scaled(np.array(raw, np.int64)).tolist() == scores


def test_required_affinity_of_running_pods_has_the_hard_weight() -> None:
    nodes = [make_node(name, labels={"zone": name}) for name in "abc"]
    near_web = make_pod_term("zone", "app=web")
    pods = [
        make_pod("r1", node="a", affinity=make_affinity(near=[near_web])),
        make_pod("r2", node="b", affinity=make_affinity(prefers=[(10, near_web)])),
    ]
    bench = BenchV19(nodes, pods)
    pod = make_pod(labels={"app": "web"})
    assert bench.scores(InterPodAffinityPriority(), pod) == {"a": 1, "b": 10, "c": 0}
    heavy = InterPodAffinityPriority(hard_weight=20)
    assert bench.scores(heavy, pod) == {"a": 10, "b": 5, "c": 0}
