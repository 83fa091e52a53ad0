"""The worked examples of spec 06 §6.3.11, and pods added and removed in simulations."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np
import pytest

from kubestow.api.node import Node
from kubestow.api.pod import Pod, Toleration, TopologySpreadConstraint
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IdArray
from kubestow.cache.snapshot import Snapshot
from kubestow.config.plugin_args import PodTopologySpreadArgs
from kubestow.errors import PluginError
from kubestow.framework.attempt_timer import NoTimer
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes, SimulatedNode, nodes_of
from kubestow.index.topology.counts import KEYS_MAX
from kubestow.plugins.pod_topology_spread import PodTopologySpread
from kubestow.testing.builders import make_node, make_pod
from kubestow.testing.handles import make_handle
from kubestow.testing.plugin_runs import run_filter, run_pre_filter
from kubestow.testing.snapshots import make_cache, make_snapshot
from kubestow.testing.topology import make_selector, make_spread

WEB = {"app": "web"}
OK = "ok"
VERDICTS = {
    "U": Status.unschedulable("node(s) didn't match pod topology spread constraints"),
    "UU": Status.unresolvable(
        "node(s) didn't match pod topology spread constraints (missing required label)"
    ),
}
LEAVING = datetime(2026, 1, 1, tzinfo=UTC)


def plugin() -> PodTopologySpread:
    return PodTopologySpread(PodTopologySpreadArgs(), make_handle())


def incoming(
    *constraints: TopologySpreadConstraint,
    labels: Mapping[str, str] = WEB,
    pool: str | None = None,
    tolerations: Sequence[Toleration] = (),
) -> Pod:
    return make_pod(
        labels=labels,
        spread=constraints,
        node_selector=None if pool is None else {"pool": pool},
        tolerations=tolerations,
    )


def zone(
    max_skew: int = 1, *, min_domains: int | None = None, **policies: str
) -> TopologySpreadConstraint:
    return make_spread("zone", "app=web", max_skew=max_skew, min_domains=min_domains, **policies)


def web_pods(node: str, count: int, *, deleted: datetime | None = None) -> list[Pod]:
    return [make_pod(node=node, labels=WEB, deleted=deleted) for _ in range(count)]


def cluster(
    *nodes: tuple[dict[str, str], int], taints: Mapping[int, str] | None = None
) -> Snapshot:
    """Nodes n1, n2, … with these labels and numbers of web pods."""
    made: list[Node] = []
    pods: list[Pod] = []
    for i, (labels, count) in enumerate(nodes, 1):
        taint = (taints or {}).get(i)
        made.append(make_node(f"n{i}", labels=labels, taints=[taint] if taint else []))
        pods += web_pods(f"n{i}", count)
    return make_snapshot(made, pods)


def zones(*counts: int) -> Snapshot:
    """One node per zone z1, z2, … with these numbers of web pods."""
    return cluster(*(({"zone": f"z{i}"}, count) for i, count in enumerate(counts, 1)))


F1 = cluster(
    ({"zone": "z1"}, 2), ({"zone": "z1"}, 1), ({"zone": "z2"}, 1), ({"zone": "z3"}, 0), ({}, 4)
)
F6 = cluster(
    ({"zone": "z1", "rack": "r1"}, 1), ({"zone": "z1"}, 1), ({"zone": "z2", "rack": "r2"}, 0)
)
RACK = make_spread("rack", "app=web")
F7 = cluster(
    ({"zone": "z1", "pool": "a"}, 2), ({"zone": "z2", "pool": "a"}, 2), ({"zone": "z3"}, 0)
)
F9 = cluster(
    ({"zone": "z1"}, 1), ({"zone": "z2"}, 1), ({"zone": "z3"}, 0), taints={3: "x=y:NoSchedule"}
)


@pytest.mark.parametrize(
    ("snapshot", "pod", "expected"),
    [
        pytest.param(F1, incoming(zone()), ["U", "U", "U", OK, "UU"], id="F1-skew"),
        pytest.param(F1, incoming(zone(3)), ["U", "U", OK, OK, "UU"], id="F2-max-skew-3"),
        pytest.param(
            F1,
            incoming(zone(), labels={"app": "db"}),
            ["U", "U", OK, OK, "UU"],
            id="F3-no-self-match",
        ),
        pytest.param(zones(1, 1, 1), incoming(zone(min_domains=3)), [OK] * 3, id="F4-min-domains"),
        pytest.param(
            zones(1, 1, 1), incoming(zone(min_domains=4)), ["U"] * 3, id="F5-too-few-domains"
        ),
        pytest.param(
            zones(1, 1, 1), incoming(zone(2, min_domains=4)), [OK] * 3, id="F5-but-skew-2"
        ),
        pytest.param(F6, incoming(zone(), RACK), ["U", "U", OK], id="F6-zone-fails-first"),
        pytest.param(F6, incoming(RACK, zone()), ["U", "UU", OK], id="F6-rack-is-missing-first"),
        pytest.param(F7, incoming(zone(), pool="a"), [OK] * 3, id="F7-honors-node-affinity"),
        pytest.param(
            F7,
            incoming(zone(affinity_policy="Ignore"), pool="a"),
            ["U", "U", OK],
            id="F8-ignores-node-affinity",
        ),
        pytest.param(F9, incoming(zone()), ["U", "U", OK], id="F9-ignores-taints"),
        pytest.param(F9, incoming(zone(taints_policy="Honor")), [OK] * 3, id="F9-honors-taints"),
        pytest.param(
            F9,
            incoming(zone(taints_policy="Honor"), tolerations=[Toleration(operator="Exists")]),
            ["U", "U", OK],
            id="F9-honors-tolerated-taints",
        ),
        pytest.param(
            zones(5, 0),
            incoming(make_spread("zone", selector=make_selector())),
            [OK, OK],
            id="F11-everything-counts-nothing",
        ),
        pytest.param(
            zones(5, 0), incoming(make_spread("zone")), [OK, OK], id="F11-nothing-counts-nothing"
        ),
        pytest.param(
            zones(5, 0), incoming(zone(), pool="none"), [OK, OK], id="F12-no-eligible-domain"
        ),
        pytest.param(
            cluster(({"zone": ""}, 2), ({"zone": "z"}, 0)),
            incoming(zone()),
            ["U", OK],
            id="the-empty-value-is-a-domain",
        ),
        pytest.param(
            cluster(
                ({"kubernetes.io/hostname": "a"}, 1),
                ({"kubernetes.io/hostname": "a"}, 1),
                ({"kubernetes.io/hostname": "b"}, 1),
            ),
            incoming(make_spread("kubernetes.io/hostname", "app=web")),
            ["U", "U", OK],
            id="hostname-is-a-label-like-others-here",
        ),
    ],
)
def test_verdicts(snapshot: Snapshot, pod: Pod, expected: Sequence[str]) -> None:
    found = run_filter(plugin(), pod, snapshot)
    assert [name(found.get(node)) for node in snapshot.names] == expected


def test_F10_terminating_pods_do_not_count() -> None:
    nodes = [make_node("n1", labels={"zone": "z1"}), make_node("n2", labels={"zone": "z2"})]
    pods = [*web_pods("n1", 1, deleted=LEAVING), *web_pods("n2", 1)]
    found = run_filter(plugin(), incoming(zone()), make_snapshot(nodes, pods))
    assert found == {"n2": VERDICTS["U"]}


def test_F13_terminating_pods_are_taken_away_though_they_never_counted() -> None:
    nodes = [
        make_node(name, labels={"zone": zone})
        for name, zone in (("n1", "z1"), ("n2", "z1"), ("n3", "z2"))
    ]
    victims = [*web_pods("n1", 2), *web_pods("n1", 1, deleted=LEAVING)]
    snapshot = make_snapshot(nodes, victims)
    subject, pod = plugin(), PodInfo(incoming(zone()))
    state = CycleState()
    assert subject.pre_filter(state, pod, nodes_of(snapshot)) is None
    node = SimulatedNode(snapshot, 0)
    assert verdicts(subject, state, pod, node) == ["U"]
    simulated = state.clone()
    for victim in victims:
        subject.remove_pod(simulated, pod, PodInfo(victim), 0)
    assert verdicts(subject, simulated, pod, node) == [OK]
    subject.add_pod(simulated, pod, PodInfo(victims[0]), 0)
    assert verdicts(subject, simulated, pod, node) == [OK]
    subject.add_pod(simulated, pod, PodInfo(victims[1]), 0)
    assert verdicts(subject, simulated, pod, node) == ["U"]
    assert verdicts(subject, state, pod, nodes_of(snapshot)) == ["U", "U", OK]


def test_a_selector_for_everything_matches_simulated_pods() -> None:
    subject = plugin()
    pod = PodInfo(incoming(make_spread("zone", selector=make_selector())))
    snapshot = zones(3, 3)
    state = CycleState()
    subject.pre_filter(state, pod, nodes_of(snapshot))
    assert verdicts(subject, state, pod, nodes_of(snapshot)) == [OK, OK]
    subject.add_pod(state, pod, PodInfo(make_pod("any")), 0)
    assert verdicts(subject, state, pod, nodes_of(snapshot)) == ["U", OK]


@pytest.mark.parametrize(
    ("added", "row"),
    [
        pytest.param(make_pod(labels=WEB, namespace="other"), 0, id="other-namespace"),
        pytest.param(make_pod(labels={"app": "db"}), 0, id="no-match"),
        pytest.param(make_pod(labels=WEB), 2, id="node-without-the-key"),
        pytest.param(make_pod(labels=WEB), 3, id="node-that-does-not-count"),
    ],
)
def test_simulated_pods_that_do_not_count(added: Pod, row: int) -> None:
    snapshot = cluster(
        ({"zone": "z1", "pool": "a"}, 0),
        ({"zone": "z2", "pool": "a"}, 0),
        ({"pool": "a"}, 0),
        ({"zone": "z1"}, 0),
    )
    subject, pod = plugin(), PodInfo(incoming(zone(), pool="a"))
    state = CycleState()
    subject.pre_filter(state, pod, nodes_of(snapshot))
    before = verdicts(subject, state, pod, nodes_of(snapshot))
    subject.add_pod(state, pod, PodInfo(added), row)
    assert verdicts(subject, state, pod, nodes_of(snapshot)) == before
    subject.add_pod(state, pod, PodInfo(make_pod(labels=WEB)), 0)
    assert verdicts(subject, state, pod, nodes_of(snapshot)) == ["U", OK, "UU", "U"]


def test_views_of_some_rows_answer_for_those_rows() -> None:
    subject, pod = plugin(), PodInfo(incoming(zone()))
    state = CycleState()
    subject.pre_filter(state, pod, nodes_of(F1))
    assert verdicts(subject, state, pod, nodes_of(F1, slice(2, 5))) == ["U", OK, "UU"]
    assert verdicts(subject, state, pod, nodes_of(F1, np.array([4, 3, 0]))) == ["UU", OK, "U"]


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(make_pod(), id="no-constraints-but-the-defaults"),
        pytest.param(incoming(make_spread("zone", "app=web", hard=False)), id="soft-only"),
    ],
)
def test_pods_without_hard_constraints_skip(pod: Pod) -> None:
    assert run_pre_filter(plugin(), pod, F1) == Status.skip()


def test_a_selector_that_does_not_parse_fails_the_attempt() -> None:
    text = (
        "get constraints from pod: obtaining pod's hard topology spread constraints: "
        '"Bogus" is not a valid label selector operator'
    )
    with pytest.raises(PluginError, match=text):
        run_pre_filter(plugin(), incoming(make_spread("zone", "app Bogus x")), F1)


def test_filter_without_pre_filter_fails() -> None:
    text = 'reading "PreFilterPodTopologySpread" from cycleState: not found'
    with pytest.raises(PluginError, match=text):
        plugin().filter(CycleState(), PodInfo(incoming(zone())), nodes_of(F1))


def test_counts_follow_pods_and_nodes_from_cycle_to_cycle() -> None:
    nodes = [make_node(f"n{i}", labels={"zone": f"z{i}"}) for i in (1, 2)]
    cache = make_cache(nodes, web_pods("n1", 1))
    snapshot = Snapshot()
    subject = plugin()

    def refreshed() -> dict[str, str]:
        snapshot.refresh(cache)
        found = run_filter(subject, incoming(zone()), snapshot)
        return {node: name(found.get(node)) for node in snapshot.names}

    assert refreshed() == {"n1": "U", "n2": OK}
    cache.add_pod(PodInfo(web_pods("n2", 1)[0]))
    assert refreshed() == {"n1": OK, "n2": OK}
    cache.add_node(make_node("n3", labels={"zone": "z3"}))
    assert refreshed() == {"n1": "U", "n2": "U", "n3": OK}
    cache.update_node(None, make_node("n3", labels={"zone": "z2"}))
    assert refreshed() == {"n1": OK, "n2": OK, "n3": OK}
    cache.remove_node(nodes[0])
    assert refreshed() == {"n2": OK, "n3": OK}


def verdicts(
    subject: PodTopologySpread, state: CycleState, pod: PodInfo, nodes: Nodes
) -> list[str]:
    codes = subject.filter(state, pod, nodes)
    if codes is None:
        return [OK] * len(nodes)
    return [name(subject.filter_status(state, code) if code else None) for code in codes.tolist()]


def name(status: Status | None) -> str:
    if status is None:
        return OK
    return next(verdict for verdict, known in VERDICTS.items() if known == status)


def test_each_label_is_read_once_for_all_constraints(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a read of every key for every constraint, a thousand of them took two seconds."""
    read: list[str] = []
    label_ids = Nodes.label_ids

    def counted(nodes: Nodes, key: str) -> IdArray:
        read.append(key)
        return label_ids(nodes, key)

    monkeypatch.setattr(Nodes, "label_ids", counted)
    keys = [f"key{i}" for i in range(60)]
    labels = dict.fromkeys(keys, "a")
    # Labels that all nodes have are not read at all.
    snapshot = cluster((labels, 0), (labels, 1), (labels | {"key7": "b"}, 0), ({}, 0))
    pod = incoming(*(make_spread(key, "app=web") for key in keys))
    found = run_filter(plugin(), pod, snapshot)
    # The skew on key7 is between {n1, n2} and {n3}; on other keys all nodes but n4, which has no
    # labels, are one domain.
    assert set(found) == {"n1", "n2", "n4"}
    assert sorted(read) == sorted(keys)


class Pauses(NoTimer):
    """Counts where an attempt may rest."""

    def __init__(self) -> None:
        self.count = 0

    def pause(self) -> None:
        self.count += 1


@pytest.mark.parametrize(("key_count", "pauses"), [(KEYS_MAX, 0), (KEYS_MAX + 1, KEYS_MAX + 1)])
@pytest.mark.parametrize("is_hard", [True, False])
def test_an_attempt_may_rest_between_constraints_on_many_keys(
    key_count: int, pauses: int, is_hard: bool
) -> None:
    keys = [f"key-{number}" for number in range(key_count)]
    snapshot = make_snapshot([make_node("n1", labels=dict.fromkeys(keys, "a"))], [])
    pod = PodInfo(incoming(*(make_spread(key, "app=web", hard=is_hard) for key in keys)))
    state, timer = CycleState(), Pauses()
    state.timer = timer
    spread, nodes = plugin(), nodes_of(snapshot)
    if is_hard:
        spread.pre_filter(state, pod, nodes)
    else:
        spread.pre_score(state, pod, nodes)
        pauses *= 3  # for the counts, the labels that a node needs, and the costs
    assert timer.count == pauses
