"""Spec 05 §6: hard taints keep pods out, soft ones cost score."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.node import Node, Taint
from kubestow.api.pod import Toleration
from kubestow.api.pod_info import PodInfo
from kubestow.cache.cache import Cache
from kubestow.cache.snapshot import Snapshot
from kubestow.config.feature_gates import FeatureGates
from kubestow.errors import PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import NODE_ADD, Action, ClusterEvent, Hint, Resource
from kubestow.framework.status import Status
from kubestow.index.nodes import nodes_of
from kubestow.plugins.taint_toleration import TaintToleration
from kubestow.testing import (
    make_handle,
    make_node,
    make_pod,
    make_snapshot,
    make_taint,
    run_filter,
    run_hint,
    run_score,
)
from tools.plain_rules import tolerates

UNTOLERATED = Status.unresolvable("node(s) had untolerated taint(s)")
TAINT_UPDATE = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT)


@pytest.fixture
def plugin() -> TaintToleration:
    return TaintToleration(None, make_handle())


def toleration(key: str, operator: str = "", value: str = "", effect: str = "") -> Toleration:
    return Toleration(key=key, operator=operator, value=value, effect=effect)


@pytest.mark.parametrize(
    ("taints", "tolerations", "passes"),
    [
        pytest.param(["a=1:NoSchedule"], [toleration("a", "Equal", "1")], True, id="1a-equal"),
        pytest.param(["a=1:NoSchedule"], [toleration("a", "Exists")], True, id="1b-exists"),
        pytest.param(["a=1:NoSchedule"], [toleration("a", "Equal", "2")], False, id="1c-other"),
        pytest.param(
            ["a:NoSchedule", "b:NoExecute"],
            [toleration("a", "Exists")],
            False,
            id="2a-each-taint-counts",
        ),
        pytest.param(["c:PreferNoSchedule"], [], True, id="2b-soft-never-blocks"),
        pytest.param(["c:Unknown"], [], True, id="unknown-effect-never-blocks"),
        pytest.param(
            ["gen=5:NoSchedule"], [toleration("gen", "Gt", "4")], False, id="7-gt-needs-its-gate"
        ),
    ],
)
def test_hard_taints_keep_pods_out(
    plugin: TaintToleration, taints: list[str], tolerations: list[Toleration], passes: bool
) -> None:
    snapshot = make_snapshot([make_node("n1", taints=taints), make_node("n2")])
    rejected = run_filter(plugin, make_pod(tolerations=tolerations), snapshot)
    assert rejected == ({} if passes else {"n1": UNTOLERATED})


def test_7_comparison_operators_come_with_their_gate() -> None:
    gates = FeatureGates({"TaintTolerationComparisonOperators": True})
    plugin = TaintToleration(None, make_handle(feature_gates=gates))
    snapshot = make_snapshot([make_node("n1", taints=["gen=5:NoSchedule"])])
    assert run_filter(plugin, make_pod(tolerations=[toleration("gen", "Gt", "4")]), snapshot) == {}


SOFT = "x:PreferNoSchedule"
THREE_SOFT = ["x:PreferNoSchedule", "y:PreferNoSchedule", "z:PreferNoSchedule"]


@pytest.mark.parametrize(
    ("taints", "tolerations", "raw", "normalized"),
    [
        pytest.param([[], [SOFT], THREE_SOFT], [], [0, 1, 3], [100, 67, 0], id="3-fewer-is-better"),
        pytest.param([THREE_SOFT[:2]] * 3, [], [2, 2, 2], [0, 0, 0], id="4-all-alike"),
        pytest.param(
            [[SOFT], []],
            [toleration("x", "Exists", effect="NoSchedule")],
            [1, 0],
            [0, 100],
            id="5-hard-tolerations-do-not-help",
        ),
        pytest.param(
            [THREE_SOFT, [SOFT], []],
            [toleration("", "Exists")],
            [0, 0, 0],
            [100, 100, 100],
            id="6-tolerates-all",
        ),
        pytest.param([[], []], [], [0, 0], [100, 100], id="no-taints-anywhere"),
    ],
)
def test_soft_taints_cost_score(
    plugin: TaintToleration,
    taints: list[list[str]],
    tolerations: list[Toleration],
    raw: list[int],
    normalized: list[int],
) -> None:
    snapshot = make_snapshot(
        [make_node(f"n{number}", taints=each) for number, each in enumerate(taints)]
    )
    pod = make_pod(tolerations=tolerations)
    assert run_score(plugin, pod, snapshot, normalize=False) == raw
    assert run_score(plugin, pod, snapshot) == normalized


def test_score_needs_pre_score(plugin: TaintToleration) -> None:
    text = 'failed to read "PreScoreTaintToleration" from cycleState: not found'
    with pytest.raises(PluginError, match=text):
        plugin.score(CycleState(), PodInfo(make_pod()), nodes_of(make_snapshot([make_node()])))


HARD = ["a:NoSchedule"]


@pytest.mark.parametrize(
    ("before", "after", "hint"),
    [
        pytest.param(None, [], Hint.QUEUE, id="added-without-taint"),
        pytest.param(None, HARD, Hint.SKIP, id="added-tainted"),
        pytest.param(HARD, [], Hint.QUEUE, id="taint-gone"),
        pytest.param(["a:NoSchedule", "b:NoExecute"], HARD, Hint.SKIP, id="H4-another-left"),
        pytest.param([], [], Hint.SKIP, id="was-fine-already"),
        pytest.param(["t:NoSchedule"], [], Hint.SKIP, id="old-one-was-tolerated"),
    ],
)
def test_a_node_that_lets_the_pod_in_wakes_it(
    plugin: TaintToleration, before: list[str] | None, after: list[str], hint: Hint
) -> None:
    pod = make_pod(tolerations=[toleration("t", "Exists")])
    old: Node | None = None if before is None else make_node(taints=before)
    event = NODE_ADD if old is None else TAINT_UPDATE
    assert run_hint(plugin, event, pod, old, make_node(taints=after)) is hint


def test_its_own_new_toleration_wakes_the_pod(plugin: TaintToleration) -> None:
    event = ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.UPDATE_POD_TOLERATION)
    pod = make_pod()
    assert run_hint(plugin, event, pod, pod, make_pod(uid=pod.metadata.uid)) is Hint.QUEUE
    assert run_hint(plugin, event, pod, pod, make_pod()) is Hint.SKIP


EFFECTS = ["NoSchedule", "NoExecute", "PreferNoSchedule", ""]
taint_lists = st.lists(
    st.builds(
        Taint,
        key=st.sampled_from("ab"),
        value=st.sampled_from(["", "1"]),
        effect=st.sampled_from(EFFECTS),
    ),
    max_size=3,
)
toleration_lists = st.lists(
    st.builds(
        Toleration,
        key=st.sampled_from(["", "a", "b"]),
        operator=st.sampled_from(["", "Equal", "Exists", "Gt"]),
        value=st.sampled_from(["", "1"]),
        effect=st.sampled_from(EFFECTS),
    ),
    max_size=3,
)


@given(
    taints=st.lists(taint_lists, max_size=6),
    changes=st.lists(st.tuples(st.integers(0, 5), taint_lists), max_size=3),
    tolerations=toleration_lists,
)
def test_arrays_equal_the_scalar_reading(
    taints: list[list[Taint]],
    changes: list[tuple[int, list[Taint]]],
    tolerations: list[Toleration],
) -> None:
    plugin = TaintToleration(None, make_handle())
    pod = make_pod(tolerations=tolerations)
    current = {f"n{number}": each for number, each in enumerate(taints)}
    cache, snapshot = Cache(), Snapshot()
    for name, each in current.items():
        cache.add_node(make_node(name, taints=each))
    for number, each in [(-1, []), *changes]:
        name = f"n{number}"
        if name in current:
            current[name] = each
            cache.update_node(cache.node(name).node, make_node(name, taints=each))
        snapshot.refresh(cache)
        assert set(run_filter(plugin, pod, snapshot)) == {
            name for name, each in current.items() if _is_kept_out(each, tolerations)
        }
        assert run_score(plugin, pod, snapshot, normalize=False) == [
            _soft_count(current[name], tolerations) for name in snapshot.names
        ]


def _is_kept_out(taints: list[Taint], tolerations: list[Toleration]) -> bool:
    return any(
        taint.effect in ("NoSchedule", "NoExecute")
        and not any(tolerates(each, taint) for each in tolerations)
        for taint in taints
    )


def _soft_count(taints: list[Taint], tolerations: list[Toleration]) -> int:
    kept = [each for each in tolerations if each.effect in ("", "PreferNoSchedule")]
    return sum(
        taint.effect == "PreferNoSchedule" and not any(tolerates(each, taint) for each in kept)
        for taint in taints
    )


def test_taints_of_manifests_read_as_kubectl_writes_them() -> None:
    assert make_taint("a=1:NoSchedule") == Taint(key="a", value="1", effect="NoSchedule")
    assert make_taint("a:NoSchedule") == Taint(key="a", effect="NoSchedule")
