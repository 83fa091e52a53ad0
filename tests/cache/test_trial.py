"""Pods on trial: each member sees those before it, and undoing leaves everything as before."""

import numpy as np
import pytest
from tests.cache.dice import Dice

from kubestow.api.meta import LabelSelector
from kubestow.api.pod import (
    Affinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    WeightedPodAffinityTerm,
    assign,
)
from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.cache.snapshot import Snapshot
from kubestow.cache.trial import SnapshotTrial
from kubestow.errors import CacheError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.status import Status
from kubestow.index.nodes import nodes_of
from kubestow.plugins.inter_pod_affinity import InterPodAffinity
from kubestow.plugins.node_resources_fit import NodeResourcesFit
from kubestow.testing import make_cache, make_handle, make_node, make_pod

ZONE = "topology.kubernetes.io/zone"
NODES = [make_node(f"n{i}", cpu="8", memory="8Gi", zone=f"z{i % 3}") for i in range(7)]


def term(key: str, **labels: str) -> PodAffinityTerm:
    return PodAffinityTerm(label_selector=LabelSelector(match_labels=labels), topology_key=key)


def affinity(rng: Dice) -> Affinity | None:
    weighted = WeightedPodAffinityTerm(
        weight=rng.between(1, 9), pod_affinity_term=term(ZONE, a="x")
    )
    match rng.between(0, 3):
        case 0:
            return None
        case 1:
            return Affinity(pod_anti_affinity=PodAffinity(required=(term(ZONE, a="y"),)))
        case 2:
            return Affinity(pod_affinity=PodAffinity(preferred=(weighted,)))
        case _:
            return Affinity(pod_anti_affinity=PodAffinity(preferred=(weighted,)))


def some_pod(rng: Dice, name: str) -> Pod:
    return make_pod(
        name,
        cpu=f"{rng.between(100, 900)}m",
        memory=f"{rng.between(1, 500)}Mi",
        labels={"a": rng.choice("xy")},
        requests={"example.com/gpu": 1} if rng.is_likely(0.3) else None,
        host_ports=[rng.between(1000, 1005)] if rng.is_likely(0.3) else (),
        pvcs=[f"claim-{rng.between(0, 3)}"] if rng.is_likely(0.3) else (),
        affinity=affinity(rng),
    )


def placed(rng: Dice, name: str) -> Pod:
    return assign(some_pod(rng, name), f"n{rng.between(0, len(NODES) - 1)}")


def world(rng: Dice, count: int) -> Snapshot:
    snapshot = Snapshot()
    snapshot.refresh(make_cache(NODES, [placed(rng, f"old-{i}") for i in range(count)]))
    return snapshot


def contents(snapshot: Snapshot) -> dict[str, object]:
    columns = snapshot.columns
    gpu = columns.resources.column("example.com/gpu")
    return {
        "block": columns.block.tolist(),
        "gpu": None if gpu is None else columns.requested[gpu].tolist(),
        "affinity": columns.has_affinity.tolist(),
        "apart": columns.has_required_anti_affinity.tolist(),
        "pods": [[pod.uid for pod in info.pods] for info in snapshot.node_infos],
        "terms": [dict(info.term_counts) for info in snapshot.node_infos],
        "classes": [dict(info.class_counts) for info in snapshot.node_infos],
        "infos": [id(info) for info in snapshot.node_infos],
        "generations": [info.generation for info in snapshot.node_infos],
        "claims": dict(snapshot.used_pvcs),
        "hidden": dict(snapshot.hidden_terms),
    }


def scores_of(plugin: InterPodAffinity, pod: PodInfo, snapshot: Snapshot) -> IntArray | None:
    state, nodes = CycleState(), nodes_of(snapshot)
    status = plugin.pre_score(state, pod, nodes)
    return None if isinstance(status, Status) else plugin.score(state, pod, nodes)


@pytest.mark.parametrize("seed", range(12))
def test_undoing_leaves_the_snapshot_bit_for_bit(seed: int) -> None:
    rng = Dice(seed)
    snapshot = world(rng, 12)
    handle = make_handle(snapshot=snapshot)
    plugin = InterPodAffinity(args_of(InterPodAffinity), handle)
    asked = [PodInfo(some_pod(rng, f"asked-{i}")) for i in range(4)]
    before = contents(snapshot)
    answers = [scores_of(plugin, pod, snapshot) for pod in asked]
    trial = SnapshotTrial(snapshot)
    on_trial = [PodInfo(placed(rng, f"new-{i}")) for i in range(9)]
    for pod in on_trial:
        trial.add(pod)
        scores_of(plugin, asked[0], snapshot)
    for pod in rng.sample(on_trial, 3):
        trial.remove(pod)
    for info in list(snapshot.node_infos):
        if info.pods and rng.is_likely(0.5):
            trial.remove(info.pods[0])
    assert contents(snapshot) != before
    trial.undo()
    assert contents(snapshot) == before
    for pod, answer in zip(asked, answers, strict=True):
        np.testing.assert_array_equal(scores_of(plugin, pod, snapshot), answer)


@pytest.mark.parametrize("seed", range(12))
def test_a_trial_shows_what_a_new_snapshot_would(seed: int) -> None:
    """Sums always; affinity scores for pods with preferred terms, which look at all nodes."""
    rng = Dice(seed)
    old = [placed(rng, f"old-{i}") for i in range(3)]
    new = [PodInfo(placed(rng, f"new-{i}")) for i in range(5)]
    snapshot, fresh = Snapshot(), Snapshot()
    snapshot.refresh(make_cache(NODES, old))
    fresh.refresh(make_cache(NODES, [*old, *(pod.pod for pod in new)]))
    on_trial = InterPodAffinity(args_of(InterPodAffinity), make_handle(snapshot=snapshot))
    anew = InterPodAffinity(args_of(InterPodAffinity), make_handle(snapshot=fresh))
    trial = SnapshotTrial(snapshot)
    for pod in new:
        trial.add(pod)
    np.testing.assert_array_equal(snapshot.columns.block, fresh.columns.block)
    preferred = Affinity(
        pod_affinity=PodAffinity(
            preferred=(WeightedPodAffinityTerm(weight=3, pod_affinity_term=term(ZONE, a="y")),)
        )
    )
    asked = PodInfo(make_pod("asked", labels={"a": "x"}, affinity=preferred))
    np.testing.assert_array_equal(
        scores_of(on_trial, asked, snapshot), scores_of(anew, asked, fresh)
    )


def test_terms_on_nodes_without_any_are_hidden_from_pods_without_preferences() -> None:
    snapshot = Snapshot()
    snapshot.refresh(make_cache(NODES, ()))
    plugin = InterPodAffinity(args_of(InterPodAffinity), make_handle(snapshot=snapshot))
    apart = Affinity(pod_anti_affinity=PodAffinity(required=(term(ZONE, a="x"),)))
    trial = SnapshotTrial(snapshot)
    trial.add(PodInfo(make_pod("first", node="n0", affinity=apart)))
    asked = PodInfo(make_pod("second", labels={"a": "x"}))
    assert plugin.pre_filter(CycleState(), asked, nodes_of(snapshot)) == Status.skip()
    assert snapshot.hidden_terms
    trial.undo()
    assert not snapshot.hidden_terms


def test_pods_on_trial_have_priorities_too() -> None:
    cache = make_cache(NODES, [make_pod("there", node="n0", priority=5)])
    snapshot = Snapshot()
    snapshot.refresh(cache)
    assert snapshot.lowest_priority == 5
    trial = SnapshotTrial(snapshot)
    trial.add(PodInfo(make_pod("first", node="n0", priority=7)))
    assert snapshot.lowest_priority == 5
    trial.add(PodInfo(make_pod("second", node="n1", priority=-1)))
    assert snapshot.lowest_priority == -1
    trial.undo()
    snapshot.refresh(cache)
    assert snapshot.lowest_priority == 5


def test_a_node_that_is_not_there_is_refused() -> None:
    snapshot = Snapshot()
    snapshot.refresh(make_cache(NODES, ()))
    with pytest.raises(CacheError, match='nodeinfo not found for node name "gone"'):
        SnapshotTrial(snapshot).add(PodInfo(make_pod("p", node="gone")))


def args_of(plugin: type[InterPodAffinity] | type[NodeResourcesFit]) -> object:
    return plugin.args_type()
