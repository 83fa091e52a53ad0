"""Spec 07 §3: pods stay in the zones their volumes' labels name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.meta import ApiObject
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_info import PodInfo
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import NODE_ADD, Action, ClusterEvent, Hint, Resource
from kubestow.framework.status import Status
from kubestow.index.nodes import nodes_of
from kubestow.plugins.volume_zone import VolumeZone
from kubestow.testing import (
    make_cache,
    make_handle,
    make_node,
    make_pod,
    make_snapshot,
    run_filter,
    run_hint,
    run_pre_filter,
)
from kubestow.testing.storage import (
    make_claim,
    make_ephemeral_volume,
    make_storage_class,
    make_volume,
)

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"

WRONG_ZONE = Status.unresolvable("node(s) had no available volume zone")


def make_plugin(*objects: ApiObject) -> VolumeZone:
    stores = ClusterObjects()
    stores.put(*objects)
    return VolumeZone(None, make_handle(objects=stores))


def plugin_for(labels: dict[str, str]) -> VolumeZone:
    return make_plugin(make_claim("c", volume="pv"), make_volume("pv", labels=labels))


POD = make_pod(pvcs=["c"])


@pytest.mark.parametrize(
    ("volume", "node", "passes"),
    [
        pytest.param({ZONE: "a__b"}, {ZONE: "b"}, True, id="1-one-of-two"),
        pytest.param({ZONE: "a__b"}, {ZONE: "c"}, False, id="1-neither"),
        pytest.param({BETA_ZONE: "a"}, {ZONE: "a"}, True, id="2-beta-volume-ga-node"),
        pytest.param({BETA_ZONE: "a"}, {ZONE: "b"}, False, id="2-beta-volume-wrong-ga-node"),
        pytest.param({ZONE: "a"}, {BETA_ZONE: "a"}, False, id="2-ga-volume-beta-node"),
        pytest.param(
            {BETA_ZONE: "a"}, {BETA_ZONE: "b", ZONE: "a"}, False, id="2-beta-label-comes-first"
        ),
        pytest.param({ZONE: "a"}, {REGION: "r"}, False, id="3-constrained-without-key"),
        pytest.param({ZONE: "a"}, {}, True, id="4-unconstrained-node"),
        pytest.param({ZONE: "a"}, {"other": "x"}, True, id="4-other-labels-only"),
        pytest.param({ZONE: "a", REGION: "r"}, {ZONE: "a", REGION: "x"}, False, id="6-region"),
        pytest.param({ZONE: "a", REGION: "r"}, {ZONE: "a", REGION: "r"}, True, id="6-both"),
        pytest.param({ZONE: " a __ b"}, {ZONE: "b"}, True, id="trimmed"),
        pytest.param({BETA_REGION: "r"}, {REGION: "r"}, True, id="beta-region"),
    ],
)
def test_nodes_must_be_where_the_volume_is(
    volume: dict[str, str], node: dict[str, str], passes: bool
) -> None:
    snapshot = make_snapshot([make_node("n1", labels=node)])
    assert run_filter(plugin_for(volume), POD, snapshot) == ({} if passes else {"n1": WRONG_ZONE})


def test_all_volumes_count() -> None:
    plugin = make_plugin(
        make_claim("c", volume="pv"),
        make_claim("d", volume="pw"),
        make_volume("pv", labels={ZONE: "a__b"}),
        make_volume("pw", labels={ZONE: "b__c"}),
    )
    nodes = [make_node(zone, zone=zone) for zone in "abc"]
    rejected = run_filter(plugin, make_pod(pvcs=["c", "d"]), make_snapshot(nodes))
    assert rejected == {"a": WRONG_ZONE, "c": WRONG_ZONE}


@pytest.mark.parametrize(
    ("pod", "labels"),
    [
        pytest.param(make_pod(), {}, id="no-volumes"),
        pytest.param(POD, {}, id="no-labels"),
        pytest.param(POD, {ZONE: "a__"}, id="5-unparsable"),
        pytest.param(POD, {ZONE: ""}, id="5-empty"),
        pytest.param(make_pod(pvcs=["w"]), {ZONE: "a"}, id="7-waits-for-consumer"),
        pytest.param(
            make_pod(volumes=[make_ephemeral_volume()]), {ZONE: "a"}, id="ephemeral-ignored"
        ),
    ],
)
def test_nothing_to_check_skips(pod: Pod, labels: dict[str, str]) -> None:
    plugin = make_plugin(
        make_claim("c", volume="pv"),
        make_claim("w"),
        make_storage_class(),
        make_volume("pv", labels=labels),
    )
    assert run_pre_filter(plugin, pod, make_snapshot()) == Status.skip()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        pytest.param("", "PersistentVolumeClaim had no name", id="unnamed"),
        pytest.param("gone", 'persistentvolumeclaim "gone" not found', id="no-claim"),
        pytest.param(
            "classless", "PersistentVolumeClaim had no pv name and storageClass name", id="no-class"
        ),
        pytest.param(
            "lost-class", 'storageclass.storage.k8s.io "lost" not found', id="class-not-found"
        ),
        pytest.param(
            "unset", 'VolumeBindingMode not set for StorageClass "unset"', id="mode-not-set"
        ),
        pytest.param("immediate", "PersistentVolume had no name", id="immediate"),
        pytest.param("lost-volume", 'persistentvolume "pv-gone" not found', id="no-volume"),
    ],
)
def test_unreadable_claims_reject_the_pod(name: str, reason: str) -> None:
    plugin = make_plugin(
        make_claim("classless", class_name=""),
        make_claim("lost-class", class_name="lost"),
        make_claim("unset", class_name="unset"),
        make_claim("immediate", class_name="now"),
        make_claim("lost-volume", volume="pv-gone", is_bound=False),
        make_storage_class("unset", mode=None),
        make_storage_class("now", mode="Immediate"),
    )
    pod = make_pod(pvcs=[name])
    answer = Status.unresolvable(reason)
    assert run_pre_filter(plugin, pod, make_snapshot()) == answer
    # Without PreFilter its status comes from Filter.
    snapshot, state = make_snapshot([make_node("n1")]), CycleState()
    codes = plugin.filter(state, PodInfo(pod), nodes_of(snapshot))
    assert codes is not None
    assert plugin.filter_status(state, int(codes[0])) == answer


def test_filter_without_pre_filter_reads_the_volumes_itself() -> None:
    plugin, state = plugin_for({ZONE: "a"}), CycleState()
    snapshot = make_snapshot([make_node("n1", zone="b")])
    codes = plugin.filter(state, PodInfo(POD), nodes_of(snapshot))
    assert codes is not None
    assert plugin.filter_status(state, int(codes[0])) == WRONG_ZONE
    assert plugin.filter(CycleState(), PodInfo(make_pod()), nodes_of(snapshot)) is None


zones = st.sampled_from(["a", "b", "a__b", "b__c", "a__"])
volume_labels = st.dictionaries(st.sampled_from([ZONE, REGION, BETA_ZONE, BETA_REGION]), zones)
node_labels = st.dictionaries(
    st.sampled_from([ZONE, REGION, BETA_ZONE, BETA_REGION, "other"]), st.sampled_from("abc")
)


def fits(volume: dict[str, str], node: Node) -> bool:
    labels = node.metadata.labels
    if not {ZONE, REGION, BETA_ZONE, BETA_REGION} & labels.keys():
        return True
    for key, text in volume.items():
        allowed = text.split("__")
        if "" in allowed:
            continue
        value = labels.get(key)
        if value is None:
            value = labels.get({BETA_ZONE: ZONE, BETA_REGION: REGION}.get(key, ""))
        if value not in allowed:
            return False
    return True


@given(volume_labels, st.lists(node_labels, min_size=1, max_size=5), node_labels)
def test_the_mask_equals_a_test_of_each_node(
    volume: dict[str, str], labels: list[dict[str, str]], changed: dict[str, str]
) -> None:
    nodes = [make_node(f"n{row}", labels=each) for row, each in enumerate(labels)]
    cache, snapshot, plugin = make_cache(nodes), Snapshot(), plugin_for(volume)
    for _ in range(2):
        snapshot.refresh(cache)
        expected = {node.metadata.name for node in snapshot.nodes if not fits(volume, node)}
        assert run_filter(plugin, POD, snapshot) == dict.fromkeys(expected, WRONG_ZONE)
        cache.update_node(nodes[0], make_node("n0", labels=changed))


CLASS_ADD = ClusterEvent(Resource.STORAGE_CLASS, Action.ADD)
CLAIM_UPDATE = ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, Action.UPDATE)
VOLUME_ADD = ClusterEvent(Resource.PERSISTENT_VOLUME, Action.ADD)
VOLUME_UPDATE = ClusterEvent(Resource.PERSISTENT_VOLUME, Action.UPDATE)
LABEL_UPDATE = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL)


@pytest.mark.parametrize(
    ("event", "old", "new", "hint"),
    [
        pytest.param(CLASS_ADD, None, make_storage_class(), Hint.QUEUE, id="class-waits"),
        pytest.param(
            CLASS_ADD, None, make_storage_class(mode="Immediate"), Hint.SKIP, id="class-immediate"
        ),
        pytest.param(
            CLASS_ADD, None, make_storage_class(mode=None), Hint.SKIP, id="class-says-nothing"
        ),
        pytest.param(NODE_ADD, None, make_node(), Hint.QUEUE, id="node"),
        pytest.param(LABEL_UPDATE, make_node(), make_node(), Hint.QUEUE, id="node-labels"),
        pytest.param(CLAIM_UPDATE, make_claim("c"), make_claim("c"), Hint.QUEUE, id="claim"),
        pytest.param(CLAIM_UPDATE, make_claim("d"), make_claim("d"), Hint.SKIP, id="other-claim"),
        pytest.param(VOLUME_ADD, None, make_volume(), Hint.QUEUE, id="volume"),
        pytest.param(
            VOLUME_UPDATE,
            make_volume(labels={ZONE: "a"}),
            make_volume(labels={ZONE: "a__b"}),
            Hint.QUEUE,
            id="volume-zones-changed",
        ),
        pytest.param(
            VOLUME_UPDATE,
            make_volume(labels={ZONE: "a__b", REGION: ""}),
            make_volume(labels={ZONE: "b__a", "x": "y"}),
            Hint.SKIP,
            id="volume-zones-same",
        ),
    ],
)
def test_hints(event: ClusterEvent, old: object, new: object, hint: Hint) -> None:
    assert run_hint(make_plugin(), event, POD, old, new) is hint
