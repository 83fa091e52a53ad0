"""What holds for every plugin, tested with each one that is registered (spec 05 §1.1)."""

import numpy as np
import numpy.typing as npt
import pytest

from kubestow.api.pod import Pod, Toleration
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.cache.snapshot import Snapshot
from kubestow.editions import CORE
from kubestow.editions.v1_17.plugins import REGISTRY_117
from kubestow.editions.v1_20.plugins.registry import REGISTRY_120
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.hints import can_reject
from kubestow.framework.plugin import (
    EventPlugin,
    FilterPlugin,
    NormalizePlugin,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from kubestow.framework.status import Status
from kubestow.index.nodes import Nodes, nodes_of
from kubestow.plugins.registry import REGISTRY, PluginClass
from kubestow.testing import (
    make_handle,
    make_node,
    make_node_affinity,
    make_pod,
    make_snapshot,
    make_term,
)

# Older plugins, too: `v1.20 NodeName`.
CLASSES: dict[str, PluginClass] = {
    **REGISTRY,
    **{
        f"{version} {name}": plugin
        for version, registry in (("v1.17", REGISTRY_117), ("v1.20", REGISTRY_120))
        for name, plugin in registry.items()
        # A ratio needs a shape, which has no default.
        if plugin is not REGISTRY.get(name) and name != "RequestedToCapacityRatio"
    },
}
NAMES = sorted(CLASSES)
MB = 1024 * 1024
PODS = {
    "plain": make_pod("plain"),
    "small": make_pod("small", cpu="500m", memory="1Gi", labels={"app": "web"}),
    "large": make_pod("large", cpu="7", memory="40Gi", requests={"example.com/gpu": 1}),
    "choosy": make_pod(
        "choosy",
        cpu="1",
        image="web",
        host_ports=[80, "10.0.0.1:443"],
        node_selector={"disk": "ssd"},
        node_affinity=make_node_affinity(
            make_term("disk In ssd", "size Gt 1"),
            make_term(fields=["metadata.name NotIn n1"]),
            preferred=[(3, make_term("size In 2")), (9, make_term("gpu Exists"))],
        ),
        tolerations=[Toleration(key="a", operator="Exists")],
    ),
    "fixed": make_pod("fixed", node="n2", host_network=True, host_users=False),
}


def make_cluster(count: int = 12) -> Snapshot:
    nodes = [
        make_node(
            f"n{number}",
            cpu=str(4 + number % 3 * 4),
            pods=1 + number % 4,
            zone=f"z{number % 2}",
            labels={"disk": "ssd" if number % 2 else "hdd", "size": str(number % 4)},
            taints=[["a=1:NoSchedule"], [], ["b:PreferNoSchedule"]][number % 3],
            unschedulable=number % 5 == 4,
            allocatable={"example.com/gpu": 2} if number % 3 == 1 else {},
            images={"web:latest": 300 * MB} if number % 2 else {},
        )
        for number in range(count)
    ]
    pods = [
        make_pod(
            f"r{number}",
            node=f"n{number}",
            cpu="1",
            labels={"app": "web"},
            host_ports=[80] if number % 4 == 0 else [],
        )
        for number in range(0, count, 2)
    ]
    return make_snapshot(nodes, pods)


@pytest.fixture(scope="module")
def cluster() -> Snapshot:
    return make_cluster()


def make_plugin(name: str, snapshot: Snapshot) -> Plugin:
    plugin_class = CLASSES[name]
    args = {} if plugin_class.args_type is None else plugin_class.args_type()
    return plugin_class(args, make_handle(snapshot))


def filter_codes(plugin: Plugin, pod: Pod, nodes: Nodes) -> tuple[CycleState, IntArray] | None:
    """The codes, also where they are all 0; None if the plugin has no filter or leaves it out."""
    if not isinstance(plugin, FilterPlugin):
        return None
    state, pod_info = CycleState(), PodInfo(pod)
    if isinstance(plugin, PreFilterPlugin):
        answer = plugin.pre_filter(state, pod_info, nodes_of(nodes.snapshot))
        if isinstance(answer, Status) and not answer.is_success:
            return None
    codes = plugin.filter(state, pod_info, nodes)
    if codes is None:
        codes = np.zeros(len(nodes), np.int64)
    assert codes.dtype == np.int64
    assert codes.shape == (len(nodes),)
    return state, codes


def final_scores(plugin: Plugin, pod: Pod, nodes: Nodes) -> IntArray | None:
    """The scores after normalising; None if the plugin has none or leaves them out."""
    if not isinstance(plugin, ScorePlugin):
        return None
    state, pod_info = CycleState(), PodInfo(pod)
    if isinstance(plugin, PreScorePlugin):
        status = plugin.pre_score(state, pod_info, nodes)
        if status is not None and not status.is_success:
            return None
    raw = plugin.score(state, pod_info, nodes)
    scores = np.full(len(nodes), raw, np.int64) if isinstance(raw, int) else raw
    assert scores.dtype == np.int64
    assert scores.shape == (len(nodes),)
    if isinstance(plugin, NormalizePlugin):
        scores = plugin.normalize(state, pod_info, scores)
    return scores


def test_plugins_stand_in_the_order_in_which_they_run() -> None:
    default = [*CORE.plugins, *CORE.gated_plugins["NodeDeclaredFeatures"]]
    assert [name for name in REGISTRY if name in default] == [
        name for name in default if name in REGISTRY
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_plugin_is_registered_under_its_name(name: str, cluster: Snapshot) -> None:
    own_name = name.split()[-1]
    assert CLASSES[name].name == own_name
    assert make_plugin(name, cluster).name == own_name


@pytest.mark.parametrize("name", NAMES)
def test_plugins_that_reject_pods_register_events(name: str, cluster: Snapshot) -> None:
    plugin = make_plugin(name, cluster)
    if can_reject(plugin):
        assert isinstance(plugin, EventPlugin)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("pod", PODS.values(), ids=PODS)
def test_codes_mean_something(name: str, pod: Pod, cluster: Snapshot) -> None:
    plugin = make_plugin(name, cluster)
    answer = filter_codes(plugin, pod, nodes_of(cluster))
    if answer is not None:
        assert isinstance(plugin, FilterPlugin)
        state, codes = answer
        for code in set(codes[codes != 0].tolist()):
            status = plugin.filter_status(state, code)
            assert status.is_rejected is (code > 0)
            assert status.all_reasons


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("pod", PODS.values(), ids=PODS)
def test_scores_are_between_0_and_100(name: str, pod: Pod, cluster: Snapshot) -> None:
    scores = final_scores(make_plugin(name, cluster), pod, nodes_of(cluster))
    if scores is not None:
        assert ((scores >= 0) & (scores <= 100)).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("pod", PODS.values(), ids=PODS)
@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(np.array([7, 0, 11, 3, 4, 1, 10, 2, 9, 8, 5, 6]), id="shuffled"),
        pytest.param(np.array([5, 2]), id="two"),
        pytest.param(np.array([], np.intp), id="none"),
    ],
)
def test_shuffled_rows_give_shuffled_codes(
    name: str, pod: Pod, rows: npt.NDArray[np.intp], cluster: Snapshot
) -> None:
    plugin = make_plugin(name, cluster)
    whole = filter_codes(plugin, pod, nodes_of(cluster))
    part = filter_codes(plugin, pod, nodes_of(cluster, rows))
    assert (whole is None) is (part is None)
    if whole is not None and part is not None:
        assert _statuses(plugin, *part) == [_statuses(plugin, *whole)[row] for row in rows]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("pod", PODS.values(), ids=PODS)
def test_shuffled_rows_give_shuffled_scores(name: str, pod: Pod, cluster: Snapshot) -> None:
    rows = np.random.default_rng(1).permutation(len(cluster))
    plugin = make_plugin(name, cluster)
    whole = final_scores(plugin, pod, nodes_of(cluster))
    part = final_scores(plugin, pod, nodes_of(cluster, rows))
    assert (whole is None) is (part is None)
    if whole is not None and part is not None:
        assert part.tolist() == whole[rows].tolist()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("pod", PODS.values(), ids=PODS)
def test_asking_again_gives_the_same_answers(name: str, pod: Pod, cluster: Snapshot) -> None:
    """Also of what plugins keep in the snapshot; its arrays are read-only in all tests."""
    plugin = make_plugin(name, cluster)
    assert _answers(plugin, pod, cluster) == _answers(plugin, pod, cluster)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("pod", PODS.values(), ids=PODS)
def test_an_empty_cluster_is_fine(name: str, pod: Pod) -> None:
    cluster = make_snapshot()
    plugin = make_plugin(name, cluster)
    answer = filter_codes(plugin, pod, nodes_of(cluster))
    assert answer is None or len(answer[1]) == 0
    scores = final_scores(plugin, pod, nodes_of(cluster))
    assert scores is None or len(scores) == 0


def _answers(plugin: Plugin, pod: Pod, cluster: Snapshot) -> object:
    answer = filter_codes(plugin, pod, nodes_of(cluster))
    scores = final_scores(plugin, pod, nodes_of(cluster))
    return (
        None if answer is None else _statuses(plugin, *answer),
        None if scores is None else scores.tolist(),
    )


def _statuses(plugin: Plugin, state: CycleState, codes: IntArray) -> list[Status | None]:
    assert isinstance(plugin, FilterPlugin)
    return [plugin.filter_status(state, code) if code else None for code in codes.tolist()]
