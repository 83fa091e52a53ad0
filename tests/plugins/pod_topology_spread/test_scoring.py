"""The worked examples of spec 06 §6.3.12, and rounding and normalising at their edges."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.meta import ObjectMeta
from kubestow.api.node import Node
from kubestow.api.pod import Pod, TopologySpreadConstraint
from kubestow.api.pod_info import PodInfo
from kubestow.api.topology import HOSTNAME_LABEL, ZONE_LABEL
from kubestow.api.workload import Service, ServiceSpec
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.config.plugin_args import PodTopologySpreadArgs
from kubestow.errors import PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.index.nodes import nodes_of
from kubestow.plugins.pod_topology_spread import PodTopologySpread
from kubestow.plugins.pod_topology_spread.constraints import SYSTEM_DEFAULTS
from kubestow.plugins.pod_topology_spread.normalising import normalised
from kubestow.testing.builders import make_node, make_pod
from kubestow.testing.handles import make_handle
from kubestow.testing.plugin_runs import run_score
from kubestow.testing.snapshots import make_snapshot
from kubestow.testing.topology import make_selector, make_spread

WEB = {"app": "web"}


def plugin(args: PodTopologySpreadArgs | None = None) -> PodTopologySpread:
    """The plugin in a cluster with a service for the web pods."""
    objects = ClusterObjects()
    objects.put(
        Service(
            metadata=ObjectMeta(name="web", namespace="default"), spec=ServiceSpec(selector=WEB)
        )
    )
    return PodTopologySpread(args or PodTopologySpreadArgs(), make_handle(objects=objects))


def soft(key: str = "zone", max_skew: int = 1, **policies: str) -> TopologySpreadConstraint:
    return make_spread(key, "app=web", max_skew=max_skew, hard=False, **policies)


def web(*constraints: TopologySpreadConstraint, pool: str | None = None) -> Pod:
    return make_pod(
        labels=WEB,
        spread=constraints,
        node_selector=None if pool is None else {"pool": pool},
    )


def cluster(*nodes: tuple[Mapping[str, str], int]) -> Snapshot:
    """Nodes n1, n2, … in the order given, with their hostname, these labels and numbers of pods."""
    made: list[Node] = []
    pods: list[Pod] = []
    for i, (labels, count) in enumerate(nodes, 1):
        made.append(make_node(f"n{i}", labels={HOSTNAME_LABEL: f"n{i}", **labels}))
        pods += [make_pod(node=f"n{i}", labels=WEB) for _ in range(count)]
    return make_snapshot(made, pods)


def in_zones(*nodes: tuple[str | None, int], key: str = "zone") -> Snapshot:
    return cluster(*(({} if zone is None else {key: zone}, count) for zone, count in nodes))


G1 = in_zones(("z1", 2), ("z1", 1), ("z2", 1), ("z2", 0))
G4 = in_zones(("z1", 2), ("z2", 1), (None, 3))
G10 = cluster(({"zone": "a", "pool": "x"}, 1), ({"zone": "a"}, 5), ({"zone": "b", "pool": "x"}, 2))
ROWS_OF_G10 = (0, 2)


@pytest.mark.parametrize(
    ("snapshot", "feasible", "pod", "raw", "final"),
    [
        pytest.param(G1, None, web(soft()), [4, 4, 1, 1], [25, 25, 100, 100], id="G1-zone"),
        pytest.param(
            G1,
            None,
            web(soft(), soft(HOSTNAME_LABEL)),
            [8, 6, 3, 1],
            [12, 37, 75, 100],
            id="G2-zone-and-hostname",
        ),
        pytest.param(
            G1, None, web(soft(max_skew=5)), [8, 8, 5, 5], [62, 62, 100, 100], id="G3-max-skew"
        ),
        pytest.param(G4, None, web(soft()), [3, 1, 0], [33, 100, 0], id="G4-ignored-node"),
        pytest.param(G4, None, web(soft("rack")), [0, 0, 0], [0, 0, 0], id="G5-all-ignored"),
        pytest.param(
            in_zones(("z1", 0), ("z2", 0)), None, web(soft()), [0, 0], [100, 100], id="G8-nothing"
        ),
        pytest.param(
            in_zones(("z1", 0), ("z2", 0)),
            None,
            web(soft(max_skew=2)),
            [1, 1],
            [100, 100],
            id="G8-nothing-with-skew-2",
        ),
        pytest.param(
            in_zones(("z1", 4), ("z2", 2), ("z3", 7)),
            (0, 1),
            web(soft()),
            [6, 3],
            [50, 100],
            id="G9-sizes-come-from-feasible-nodes",
        ),
        pytest.param(
            G10, ROWS_OF_G10, web(soft(), pool="x"), [1, 3], [100, 33], id="G10-honors-affinity"
        ),
        pytest.param(
            G10,
            ROWS_OF_G10,
            web(soft(affinity_policy="Ignore"), pool="x"),
            [8, 3],
            [37, 100],
            id="G10-ignores-affinity",
        ),
        pytest.param(
            in_zones(("z1", 10), ("z2", 12), ("z3", 7)),
            None,
            web(soft()),
            [16, 19, 11],
            [73, 57, 100],
            id="G12-uneven",
        ),
        pytest.param(
            cluster(({HOSTNAME_LABEL: "a"}, 2), ({HOSTNAME_LABEL: "a"}, 0)),
            None,
            web(soft(HOSTNAME_LABEL)),
            [3, 0],
            [0, 100],
            id="nodes-that-share-a-hostname-are-not-merged",
        ),
        pytest.param(
            in_zones(("z1", 9), ("z2", 0)),
            None,
            make_pod(
                labels=WEB, spread=[make_spread("zone", selector=make_selector(), hard=False)]
            ),
            [0, 0],
            [100, 100],
            id="everything-counts-nothing",
        ),
    ],
)
def test_own_constraints(
    snapshot: Snapshot,
    feasible: Sequence[int] | None,
    pod: Pod,
    raw: Sequence[int],
    final: Sequence[int],
) -> None:
    nodes = nodes_of(snapshot) if feasible is None else nodes_of(snapshot, np.array(feasible))
    assert run_score(plugin(), pod, nodes, normalize=False) == raw
    assert run_score(plugin(), pod, nodes) == final


G6 = in_zones(("a", 3), ("b", 1), (None, 2), key=ZONE_LABEL)
LIST_DEFAULTS = PodTopologySpreadArgs(defaulting_type="List", default_constraints=SYSTEM_DEFAULTS)


@pytest.mark.parametrize(
    ("snapshot", "args", "expected"),
    [
        pytest.param(
            G6, None, {"n1": (16, 31), "n2": (9, 75), "n3": (5, 100)}, id="G6-system-defaults"
        ),
        pytest.param(
            G6, LIST_DEFAULTS, {"n1": (14, 64), "n2": (9, 100), "n3": (0, 0)}, id="G7-list-defaults"
        ),
        pytest.param(
            in_zones(("a", 1), ("a", 0), ("b", 1), key=ZONE_LABEL),
            None,
            {"n1": (9, 77), "n2": (7, 100), "n3": (9, 77)},
            id="G11-system-defaults",
        ),
        pytest.param(
            # Zone "" holds its own pod and the two of the node without label, and is one domain
            # with it: 1·ln 4 + 2 + 3·ln 3 + 4 = 10.68 for n1, 2·ln 4 + 2 = 4.77 for n2.
            in_zones(("", 1), (None, 2), key=ZONE_LABEL),
            None,
            {"n1": (11, 45), "n2": (5, 100)},
            id="unlabelled-nodes-share-the-empty-zone",
        ),
    ],
)
def test_default_constraints(
    snapshot: Snapshot, args: PodTopologySpreadArgs | None, expected: dict[str, tuple[int, int]]
) -> None:
    subject = plugin(args)
    raw = run_score(subject, web(), snapshot, normalize=False)
    final = run_score(subject, web(), snapshot)
    assert raw is not None
    assert final is not None
    # Zones make the visiting order alternate, so go by name.
    assert dict(zip(snapshot.names, zip(raw, final, strict=True), strict=True)) == expected


def test_feasible_nodes_without_zone_are_a_domain_of_their_own() -> None:
    # Zones a and "" are left: 3·ln 4 + 2 + 3·ln 4 + 4 = 14.32 for n1, 2·ln 4 + 2 = 4.77 for n3.
    rows = [G6.row_of(name) for name in ("n1", "n3")]
    nodes = nodes_of(G6, np.array(rows))
    assert run_score(plugin(), web(), nodes, normalize=False) == [14, 5]


ZONES = st.sampled_from(["z1", "z2", "", None])
ORDERS = [
    (soft(HOSTNAME_LABEL, 3), soft(max_skew=5)),
    (soft(max_skew=2), soft(HOSTNAME_LABEL)),
    (soft(HOSTNAME_LABEL), soft(), soft("rack")),
    (),  # the defaults
]


@given(
    nodes=st.lists(st.tuples(ZONES, st.sampled_from([0, 0, 1, 2, 3, 40])), min_size=2, max_size=9),
    constraints=st.sampled_from(ORDERS),
    lacks_host=st.booleans(),
    data=st.data(),
)
def test_final_scores_are_the_normalised_ones(
    nodes: list[tuple[str | None, int]],
    constraints: tuple[TopologySpreadConstraint, ...],
    lacks_host: bool,
    data: st.DataObject,
) -> None:
    """However they are computed: by node, by domain, or by count and domain together."""
    made: list[Node] = []
    for number, (zone, _) in enumerate(nodes):
        host = {} if lacks_host and number == 0 else {HOSTNAME_LABEL: f"n{number}"}
        zones = {} if zone is None else {"zone": zone, ZONE_LABEL: zone}
        made.append(make_node(f"n{number}", labels={**host, **zones}))
    pods = [
        make_pod(node=f"n{number}", labels=WEB)
        for number, (_, count) in enumerate(nodes)
        for _ in range(count)
    ]
    snapshot = make_snapshot(made, pods)
    rows = data.draw(st.lists(st.integers(0, len(snapshot) - 1), min_size=1, unique=True))
    under_test, pod = plugin(), PodInfo(web(*constraints))
    feasible = nodes_of(snapshot, np.array(rows))
    final = under_test.final_scores(CycleState(), pod, feasible)
    assert final is not None
    # One number where all are equal.
    scores = np.broadcast_to(final, len(rows)).tolist()
    assert scores == run_score(under_test, pod.pod, feasible)


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(make_pod(), id="default-selector-is-empty"),
        pytest.param(web(make_spread("zone", "app=web")), id="own-hard-constraint-alone"),
    ],
)
def test_pods_without_soft_constraints_skip(pod: Pod) -> None:
    assert run_score(plugin(), pod, G1) is None


def test_a_snapshot_without_nodes_skips() -> None:
    assert run_score(plugin(), web(soft()), make_snapshot()) is None


def test_a_selector_that_does_not_parse_fails_the_attempt() -> None:
    pod = make_pod(spread=[make_spread("zone", "app Bogus x", hard=False)])
    text = (
        "calculating preScoreState: obtaining pod's soft topology spread constraints: "
        '"Bogus" is not a valid label selector operator'
    )
    with pytest.raises(PluginError, match=text):
        run_score(plugin(), pod, G1)


@pytest.mark.parametrize(
    ("raw", "ignored", "final"),
    [
        pytest.param([4, 4, 1, 1], None, [25, 25, 100, 100], id="turned-round"),
        pytest.param([0, 0], None, [100, 100], id="all-zero"),
        pytest.param([7, 0, 7], [False, True, False], [100, 0, 100], id="ignored-do-not-count"),
        pytest.param([0, 0], [True, True], [0, 0], id="all-ignored"),
        pytest.param([0, 0], [False, True], [100, 0], id="zero-and-ignored"),
    ],
)
def test_normalised(raw: list[int], ignored: list[bool] | None, final: list[int]) -> None:
    mask = None if ignored is None else np.array(ignored)
    assert normalised(np.array(raw, np.int64), mask).tolist() == final
