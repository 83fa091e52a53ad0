"""The worked examples of spec 06 §6.2.11, and what a filter may be asked besides."""

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import pytest

from kubestow.api.meta import LabelSelector, ObjectMeta
from kubestow.api.node import Node
from kubestow.api.pod import Affinity, Pod
from kubestow.api.pod_info import PodInfo
from kubestow.api.workload import Namespace
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.config.plugin_args import InterPodAffinityArgs
from kubestow.errors import PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.status import Code, Status
from kubestow.index.nodes import Nodes, SimulatedNode, nodes_of
from kubestow.plugins.inter_pod_affinity import InterPodAffinity
from kubestow.testing.builders import make_node, make_pod
from kubestow.testing.handles import make_handle
from kubestow.testing.plugin_runs import run_filter, run_pre_filter
from kubestow.testing.snapshots import make_cache, make_snapshot
from kubestow.testing.topology import make_affinity, make_pod_term, make_selector

ZONE = "zone"
HOST = "kubernetes.io/hostname"

AFF = Status.unresolvable("node(s) didn't match pod affinity rules")
ANTI = Status.unschedulable("node(s) didn't match pod anti-affinity rules")
EXIST = Status.unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")
VERDICTS = {"aff": AFF, "anti": ANTI, "exist": EXIST}

WEB = {"app": "web"}
PROD, DEV = {"env": "prod"}, {"env": "dev"}
NOT_PROD = make_selector("env NotIn prod")


def nodes() -> list[Node]:
    zones = {"n1": "z1", "n2": "z1", "n3": "z2", "n4": None}
    return [
        make_node(name, labels={HOST: name} | ({ZONE: zone} if zone else {}))
        for name, zone in zones.items()
    ]


def plugin(**namespaces: dict[str, str]) -> InterPodAffinity:
    """The plugin in a cluster with these Namespace objects, by name and labels."""
    objects = ClusterObjects()
    for name, labels in namespaces.items():
        metadata = ObjectMeta(name=name.replace("_", "-"), labels=labels)
        objects.put(Namespace(metadata=metadata))
    return InterPodAffinity(InterPodAffinityArgs(), make_handle(objects=objects))


def on(node: str, *, namespace: str = "default", **labels: str) -> Pod:
    return make_pod(node=node, namespace=namespace, labels=labels)


def near(key: str, *requirements: str) -> Pod:
    """A pod without labels that requires others near."""
    return make_pod(affinity=make_affinity(near=[make_pod_term(key, *requirements)]))


A6 = make_pod(
    labels={"app": "web", "tier": "fe"},
    affinity=make_affinity(near=[make_pod_term(ZONE, "app=web"), make_pod_term(HOST, "tier=fe")]),
)
NEAR_ITSELF = make_pod(labels=WEB, affinity=make_affinity(near=[make_pod_term(ZONE, "app=web")]))
APART = make_pod(affinity=make_affinity(apart=[make_pod_term(ZONE, "app=web")]))
HOSTILE = make_pod(node="n3", affinity=make_affinity(apart=[make_pod_term(ZONE, "app=web")]))


@pytest.mark.parametrize(
    ("pod", "running", "expected"),
    [
        pytest.param(
            near(ZONE, "app=cache"),
            [on("n1", app="cache")],
            ["ok", "ok", "aff", "aff"],
            id="A1-same-zone",
        ),
        pytest.param(NEAR_ITSELF, [], ["ok", "ok", "ok", "aff"], id="A2-bootstrap"),
        pytest.param(
            NEAR_ITSELF,
            [on("n4", app="web")],
            ["ok", "ok", "ok", "aff"],
            id="A3-bootstrap-though-one-runs-without-zone",
        ),
        pytest.param(
            NEAR_ITSELF, [on("n3", app="web")], ["aff", "aff", "ok", "aff"], id="A4-joins-the-other"
        ),
        pytest.param(
            make_pod(
                labels={"app": "db"},
                affinity=make_affinity(near=[make_pod_term(ZONE, "app=web")]),
            ),
            [],
            ["aff", "aff", "aff", "aff"],
            id="A5-no-bootstrap-for-others",
        ),
        pytest.param(
            A6,
            [on("n1", app="web"), on("n1", tier="fe")],
            ["ok", "ok", "ok", "aff"],
            id="A6-no-single-pod-matches-both",
        ),
        pytest.param(
            A6,
            [on("n1", app="web", tier="fe")],
            ["ok", "aff", "aff", "aff"],
            id="A7-one-pod-matches-both",
        ),
        pytest.param(
            A6,
            [on("n4", app="web", tier="fe")],
            ["aff", "aff", "aff", "aff"],
            id="no-bootstrap-once-a-match-is-seen-by-one-key",
        ),
        pytest.param(
            APART, [on("n1", app="web")], ["anti", "anti", "ok", "ok"], id="A8-anti-affinity"
        ),
        pytest.param(
            make_pod(labels=WEB), [HOSTILE], ["ok", "ok", "exist", "ok"], id="A9-existing"
        ),
        pytest.param(
            make_pod(
                affinity=make_affinity(
                    near=[make_pod_term(ZONE, "app=cache")],
                    apart=[make_pod_term(ZONE, "app=web")],
                )
            ),
            [on("n1", app="cache"), on("n1", app="web"), on("n3", app="web")],
            ["anti", "anti", "aff", "aff"],
            id="A11-affinity-has-the-first-word",
        ),
        pytest.param(
            make_pod(
                labels=WEB,
                affinity=make_affinity(apart=[make_pod_term(ZONE, "app=web")]),
            ),
            [HOSTILE, on("n1", app="web")],
            ["anti", "anti", "exist", "ok"],
            id="own-anti-affinity-before-that-of-others",
        ),
    ],
)
def test_verdicts(pod: Pod, running: Sequence[Pod], expected: Sequence[str]) -> None:
    assert verdicts(plugin(), pod, running) == expected


def test_A10_terms_of_another_namespace_skip_the_plugin() -> None:
    pod = make_pod(labels=WEB, namespace="team-a")
    assert run_pre_filter(plugin(), pod, make_snapshot(nodes(), [HOSTILE])) == Status.skip()


@pytest.mark.parametrize(
    ("selector", "running", "expected"),
    [
        pytest.param(
            NOT_PROD,
            [on("n1", namespace="team-b", app="web")],
            ["anti", "anti", "ok", "ok"],
            id="A12-the-quirk-reaches-excluded-namespaces",
        ),
        pytest.param(
            make_selector("env In dev"),
            [on("n1", namespace="team-b", app="web"), on("n3", namespace="team-a", app="web")],
            ["ok", "ok", "anti", "ok"],
            id="A13-positive-selector",
        ),
        pytest.param(
            make_selector(),
            [on("n3", namespace="ghost", app="web")],
            ["ok", "ok", "anti", "ok"],
            id="everything-means-namespaces-without-object-too",
        ),
    ],
)
def test_namespace_selectors_of_the_incoming_pod(
    selector: LabelSelector, running: Sequence[Pod], expected: Sequence[str]
) -> None:
    term = make_pod_term(ZONE, "app=web", namespace_selector=selector)
    pod = make_pod(affinity=make_affinity(apart=[term]))
    assert verdicts(plugin(team_a=DEV, team_b=PROD), pod, running) == expected


def test_namespaces_are_resolved_again_when_they_change() -> None:
    objects = ClusterObjects()
    subject = InterPodAffinity(InterPodAffinityArgs(), make_handle(objects=objects))
    term = make_pod_term(ZONE, "app=web", namespace_selector=make_selector("env=dev"))
    pod = make_pod(affinity=make_affinity(apart=[term]))
    running = [on("n1", namespace="team-a", app="web")]
    assert verdicts(subject, pod, running) == ["ok"] * 4
    objects.put(Namespace(metadata=ObjectMeta(name="team-a", labels=DEV)))
    assert verdicts(subject, pod, running) == ["anti", "anti", "ok", "ok"]
    objects.put(Namespace(metadata=ObjectMeta(name="team-a", labels=PROD)))
    assert verdicts(subject, pod, running) == ["ok"] * 4


def test_A14_terms_of_existing_pods_look_at_the_namespace_of_the_incoming_one() -> None:
    subject = plugin(team_a=DEV, team_b=PROD)
    term = make_pod_term(ZONE, "app=web", namespace_selector=NOT_PROD)
    snapshot = make_snapshot(nodes(), [make_pod(node="n3", affinity=make_affinity(apart=[term]))])
    excluded = make_pod(labels=WEB, namespace="team-b")
    assert run_pre_filter(subject, excluded, snapshot) == Status.skip()
    meant = make_pod(labels=WEB, namespace="team-a")
    assert run_filter(subject, meant, snapshot) == {"n3": EXIST}
    # No object, no labels, and those the selector accepts.
    unknown = make_pod(labels=WEB, namespace="ghost")
    assert run_filter(subject, unknown, snapshot) == {"n3": EXIST}


def test_A15_removing_and_adding_simulated_pods() -> None:
    subject, pod = plugin(), PodInfo(APART)
    running = [on("n1", app="web"), on("n2", app="web")]
    snapshot = make_snapshot(nodes(), running)
    state = CycleState()
    assert subject.pre_filter(state, pod, nodes_of(snapshot)) is None
    simulated = state.clone()

    def codes() -> list[str]:
        return named(subject, simulated, pod, nodes_of(snapshot))

    subject.remove_pod(simulated, pod, PodInfo(running[0]), 0)
    assert codes() == ["anti", "anti", "ok", "ok"]
    subject.remove_pod(simulated, pod, PodInfo(running[1]), 1)
    assert codes() == ["ok"] * 4
    subject.add_pod(simulated, pod, PodInfo(running[1]), 1)
    assert codes() == ["anti", "anti", "ok", "ok"]
    # Others see nothing of it.
    subject.remove_pod(simulated, pod, PodInfo(running[1]), 1)
    assert named(subject, state, pod, nodes_of(snapshot)) == ["anti", "anti", "ok", "ok"]


def test_without_the_last_match_the_pod_may_be_the_first() -> None:
    subject, pod = plugin(), PodInfo(NEAR_ITSELF)
    running = on("n3", app="web")
    snapshot = make_snapshot(nodes(), [running])
    state = CycleState()
    assert subject.pre_filter(state, pod, nodes_of(snapshot)) is None
    assert named(subject, state, pod, nodes_of(snapshot)) == ["aff", "aff", "ok", "aff"]
    simulated = state.clone()
    subject.remove_pod(simulated, pod, PodInfo(running), 2)
    assert named(subject, simulated, pod, nodes_of(snapshot)) == ["ok", "ok", "ok", "aff"]


def test_a_simulated_pod_with_anti_affinity_excludes_its_domain() -> None:
    subject = plugin()
    # Near something, so that the plugin is not skipped before the hostile pod is added.
    pod = PodInfo(
        make_pod(labels=WEB, affinity=make_affinity(apart=[make_pod_term(HOST, "app=x")]))
    )
    snapshot = make_snapshot(nodes())
    state = CycleState()
    assert subject.pre_filter(state, pod, nodes_of(snapshot)) is None
    simulated = state.clone()
    subject.add_pod(simulated, pod, PodInfo(HOSTILE), 0)
    assert named(subject, simulated, pod, SimulatedNode(snapshot, 1)) == ["exist"]
    assert named(subject, simulated, pod, nodes_of(snapshot)) == ["exist", "exist", "ok", "ok"]
    assert named(subject, state, pod, nodes_of(snapshot)) == ["ok"] * 4


def test_views_of_some_rows_answer_for_those_rows() -> None:
    subject, pod = plugin(), PodInfo(APART)
    snapshot = make_snapshot(nodes(), [on("n1", app="web")])
    state = CycleState()
    subject.pre_filter(state, pod, nodes_of(snapshot))
    assert named(subject, state, pod, nodes_of(snapshot, slice(1, 3))) == ["anti", "ok"]
    assert named(subject, state, pod, nodes_of(snapshot, np.array([3, 0]))) == ["ok", "anti"]


def test_terminating_pods_count() -> None:
    leaving = make_pod(node="n1", labels=WEB, deleted=datetime(2026, 1, 1, tzinfo=UTC))
    assert verdicts(plugin(), APART, [leaving]) == ["anti", "anti", "ok", "ok"]


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        pytest.param(
            make_affinity(near=[make_pod_term(ZONE, "app In")]),
            "requiredAffinityTerms: values: Invalid value: null: "
            "for 'in', 'notin' operators, values set can't be empty",
            id="required",
        ),
        pytest.param(
            make_affinity(avoids=[(1, make_pod_term(ZONE, "app Bogus x"))]),
            'preferredAntiAffinityTerms: "Bogus" is not a valid label selector operator',
            id="preferred-alone-is-enough",
        ),
        pytest.param(
            make_affinity(
                near=[make_pod_term(ZONE, "app Bogus x")],
                apart=[make_pod_term(ZONE, "app Worse x")],
            ),
            '[requiredAffinityTerms: "Bogus" is not a valid label selector operator, '
            'requiredAntiAffinityTerms: "Worse" is not a valid label selector operator]',
            id="several",
        ),
    ],
)
def test_terms_that_do_not_parse_reject_the_incoming_pod(broken: Affinity, message: str) -> None:
    answer = run_pre_filter(plugin(), make_pod(affinity=broken), make_snapshot(nodes()))
    assert answer == Status.unresolvable(f"parsing pod: {message}")


def test_terms_of_existing_pods_that_do_not_parse_are_not_there() -> None:
    broken = make_pod(
        node="n1",
        affinity=make_affinity(
            apart=[make_pod_term(ZONE, "app=web"), make_pod_term(ZONE, "app Bogus x")]
        ),
    )
    answer = run_pre_filter(plugin(), make_pod(labels=WEB), make_snapshot(nodes(), [broken]))
    assert answer == Status.skip()


def test_without_pods_and_nodes_a_plain_pod_skips() -> None:
    assert run_pre_filter(plugin(), make_pod(), make_snapshot()) == Status.skip()
    assert run_filter(plugin(), APART, make_snapshot()) == {}


def test_filter_without_pre_filter_fails() -> None:
    text = 'error reading "PreFilterInterPodAffinity" from cycleState: not found'
    with pytest.raises(PluginError, match=text):
        plugin().filter(CycleState(), PodInfo(APART), nodes_of(make_snapshot(nodes())))


def test_counts_follow_pods_from_cycle_to_cycle() -> None:
    subject = plugin()
    cache = make_cache(nodes())
    snapshot = Snapshot()
    first, second = on("n1", app="web"), on("n3", app="web")

    def refreshed() -> list[str]:
        snapshot.refresh(cache)
        found = run_filter(subject, APART, snapshot)
        return [name(found.get(node)) for node in ("n1", "n2", "n3", "n4")]

    assert refreshed() == ["ok"] * 4
    cache.add_pod(PodInfo(first))
    assert refreshed() == ["anti", "anti", "ok", "ok"]
    cache.add_pod(PodInfo(second))
    cache.remove_pod(first)
    assert refreshed() == ["ok", "ok", "anti", "ok"]
    cache.update_node(None, make_node("n3", labels={ZONE: "z1", HOST: "n3"}))
    assert refreshed() == ["anti", "anti", "anti", "ok"]


def verdicts(subject: InterPodAffinity, pod: Pod, running: Sequence[Pod]) -> list[str]:
    found = run_filter(subject, pod, make_snapshot(nodes(), running))
    return [name(found.get(node)) for node in ("n1", "n2", "n3", "n4")]


def named(subject: InterPodAffinity, state: CycleState, pod: PodInfo, view: Nodes) -> list[str]:
    codes = subject.filter(state, pod, view)
    if codes is None:
        return ["ok"] * len(view)
    return [name(subject.filter_status(state, code) if code else None) for code in codes.tolist()]


def name(status: Status | None) -> str:
    if status is None or status.code is Code.SUCCESS:
        return "ok"
    return next(verdict for verdict, known in VERDICTS.items() if known == status)
