"""Spec 07 §4: disks that cannot be shared, and claims for a single pod."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.meta import ApiObject
from kubestow.api.pod import (
    AwsElasticBlockStore,
    GcePersistentDisk,
    Iscsi,
    Pod,
    Rbd,
    Volume,
)
from kubestow.api.pod_info import PodInfo
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import (
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    Action,
    ClusterEvent,
    Hint,
    Resource,
)
from kubestow.framework.status import Status
from kubestow.index.nodes import SimulatedNode, nodes_of
from kubestow.plugins.volume_restrictions import VolumeRestrictions
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
from kubestow.testing.storage import make_claim, make_ephemeral_volume

NO_DISK = Status.unschedulable("node(s) had no available disk")
IN_USE = Status.unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
    "in-use by another pod"
)
CLAIM_ADD = ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD)
ONE_POD = ("ReadWriteOncePod",)


def make_plugin(*objects: ApiObject) -> VolumeRestrictions:
    stores = ClusterObjects()
    stores.put(*objects)
    return VolumeRestrictions(None, make_handle(objects=stores))


def gce(name: str = "d1", *, ro: bool = False) -> Volume:
    return Volume(gce_persistent_disk=GcePersistentDisk(pd_name=name, read_only=ro))


def ebs(name: str = "v1", *, ro: bool = False) -> Volume:
    return Volume(aws_elastic_block_store=AwsElasticBlockStore(volume_id=name, read_only=ro))


def iscsi(iqn: str = "q", *, lun: int = 0, ro: bool = False) -> Volume:
    return Volume(iscsi=Iscsi(iqn=iqn, lun=lun, target_portal=f"p{lun}", read_only=ro))


def rbd(*monitors: str, image: str = "i", pool: str = "p", ro: bool = False) -> Volume:
    return Volume(rbd=Rbd(monitors=monitors, image=image, pool=pool, read_only=ro))


@pytest.mark.parametrize(
    ("running", "wanted", "passes"),
    [
        pytest.param(gce(), gce(ro=True), False, id="1-gce-one-writes"),
        pytest.param(gce(ro=True), gce(ro=True), True, id="1-gce-both-read"),
        pytest.param(gce(ro=True), gce(), False, id="gce-newcomer-writes"),
        pytest.param(gce("d1"), gce("d2"), True, id="gce-other-disk"),
        pytest.param(ebs(ro=True), ebs(ro=True), False, id="2-ebs-never-shared"),
        pytest.param(ebs("v1"), ebs("v2"), True, id="ebs-other-volume"),
        pytest.param(rbd("m1", "m2"), rbd("m2", "m3", ro=True), False, id="3-rbd-common-monitor"),
        pytest.param(rbd("m1"), rbd("m2"), True, id="3-rbd-no-common-monitor"),
        pytest.param(rbd("m1"), rbd("m1", image="j"), True, id="3-rbd-other-image"),
        pytest.param(rbd("m1"), rbd("m1", pool="j"), True, id="3-rbd-other-pool"),
        pytest.param(rbd("m1", ro=True), rbd("m1", ro=True), True, id="3-rbd-both-read"),
        pytest.param(iscsi(ro=True), iscsi(lun=7, ro=True), True, id="4-iscsi-both-read"),
        pytest.param(iscsi(ro=True), iscsi(lun=7), False, id="4-iscsi-one-writes"),
        pytest.param(iscsi("q"), iscsi("r"), True, id="iscsi-other-target"),
        pytest.param(gce("x"), ebs("x"), True, id="other-kind-of-disk"),
    ],
)
def test_disks_conflict(running: Volume, wanted: Volume, passes: bool) -> None:
    nodes = [make_node("n1"), make_node("n2")]
    there = make_pod("r", namespace="other", node="n1", volumes=[running])
    snapshot = make_snapshot(nodes, [there])
    pod = make_pod(volumes=[wanted])
    expected = {} if passes else {"n1": NO_DISK}
    assert run_filter(make_plugin(), pod, snapshot) == expected
    assert run_filter(make_plugin(), pod, SimulatedNode(snapshot, 0)) == expected
    assert run_filter(make_plugin(), pod, SimulatedNode(snapshot, 1)) == {}


def test_pods_being_deleted_still_hold_their_disks() -> None:
    going = make_pod("r", node="n1", volumes=[gce()], deleted=datetime(2026, 1, 1, tzinfo=UTC))
    snapshot = make_snapshot([make_node("n1")], [going])
    assert run_filter(make_plugin(), make_pod(volumes=[gce()]), snapshot) == {"n1": NO_DISK}


def test_a_disk_mounted_twice_counts_as_its_stricter_use() -> None:
    snapshot = make_snapshot([make_node("n1")], [make_pod("r", node="n1", volumes=[gce(ro=True)])])
    both = make_pod(volumes=[gce(), gce(ro=True)])
    assert run_filter(make_plugin(), both, snapshot) == {"n1": NO_DISK}


disks = st.one_of(
    st.builds(gce, st.sampled_from("ab"), ro=st.booleans()),
    st.builds(ebs, st.sampled_from("ab"), ro=st.booleans()),
    st.builds(iscsi, st.sampled_from("ab"), ro=st.booleans()),
    st.builds(
        lambda monitors, image, ro: rbd(*monitors, image=image, ro=ro),
        st.lists(st.sampled_from("xyz"), min_size=1, max_size=2),
        st.sampled_from("ij"),
        st.booleans(),
    ),
)
pods = st.lists(st.lists(disks, max_size=2), max_size=3)


def conflicts(one: Volume, two: Volume) -> bool:
    """One volume against another, as the table says it."""
    if one.gce_persistent_disk and two.gce_persistent_disk:
        a, b = one.gce_persistent_disk, two.gce_persistent_disk
        return a.pd_name == b.pd_name and not (a.read_only and b.read_only)
    if one.aws_elastic_block_store and two.aws_elastic_block_store:
        return one.aws_elastic_block_store.volume_id == two.aws_elastic_block_store.volume_id
    if one.iscsi and two.iscsi:
        return one.iscsi.iqn == two.iscsi.iqn and not (one.iscsi.read_only and two.iscsi.read_only)
    if one.rbd and two.rbd:
        return (
            bool(set(one.rbd.monitors) & set(two.rbd.monitors))
            and (one.rbd.pool, one.rbd.image) == (two.rbd.pool, two.rbd.image)
            and not (one.rbd.read_only and two.rbd.read_only)
        )
    return False


@given(st.lists(pods, min_size=1, max_size=4), pods, st.lists(disks, min_size=1, max_size=3))
def test_the_index_equals_a_test_of_each_volume_with_each(
    before: list[list[list[Volume]]], later: list[list[Volume]], wanted: list[Volume]
) -> None:
    cache = make_cache([make_node(f"n{row}") for row in range(len(before))])
    snapshot = Snapshot()
    plugin = make_plugin()
    pod = make_pod("new", volumes=wanted)

    def check() -> None:
        snapshot.refresh(cache)
        expected = {
            info.name
            for info in snapshot.node_infos
            for there in info.pods
            for one in wanted
            for two in there.pod.spec.volumes
            if conflicts(one, two)
        }
        assert run_filter(plugin, pod, snapshot) == dict.fromkeys(expected, NO_DISK)

    placed: list[Pod] = []
    for row, on_node in enumerate(before):
        placed += [make_pod(node=f"n{row}", volumes=volumes) for volumes in on_node]
    for there in placed:
        cache.add_pod(PodInfo(there))
    check()
    for there in placed[::2]:
        cache.remove_pod(there)
    for volumes in later:
        cache.add_pod(PodInfo(make_pod(node="n0", volumes=volumes)))
    cache.add_node(make_node("late"))
    check()


def test_5_a_claim_for_one_pod_is_in_use_everywhere() -> None:
    user = make_pod("q", node="n3", pvcs=["c"], priority=1)
    snapshot = make_snapshot([make_node("n1"), make_node("n3")], [user, make_pod("x", node="n1")])
    plugin = make_plugin(make_claim("c", modes=ONE_POD))
    pod = make_pod("new", pvcs=["c"], priority=10)
    state = CycleState()
    assert run_filter(plugin, pod, snapshot, state=state) == {"n1": IN_USE, "n3": IN_USE}

    row = snapshot.row_of("n3")
    assert row is not None
    dry_run = state.clone()
    plugin.remove_pod(dry_run, PodInfo(pod), PodInfo(user), row)
    node = SimulatedNode(snapshot, row)
    node.remove_pod(PodInfo(user))
    codes = plugin.filter(dry_run, PodInfo(pod), node)
    assert codes is not None
    assert codes.tolist() == [0]
    # Evicting another pod does not help, and the first state is as it was.
    codes = plugin.filter(state, PodInfo(pod), SimulatedNode(snapshot, 0))
    assert codes is not None
    assert plugin.filter_status(state, int(codes[0])) == IN_USE


def test_6_a_claim_used_twice_counts_once_until_pods_come_and_go() -> None:
    user = make_pod("q", node="n1", pvcs=["c"])
    snapshot = make_snapshot([make_node("n1")], [user])
    plugin = make_plugin(make_claim("c", modes=ONE_POD))
    pod, state = make_pod("new", pvcs=["c", "c"]), CycleState()
    assert run_filter(plugin, pod, snapshot, state=state) == {"n1": IN_USE}
    plugin.remove_pod(state, PodInfo(pod), PodInfo(user), 0)
    assert plugin.filter(state, PodInfo(pod), nodes_of(snapshot)) is None


def test_the_namespace_of_simulated_pods_is_not_compared() -> None:
    user = make_pod("q", node="n1", pvcs=["c"])
    snapshot = make_snapshot([make_node("n1")], [user])
    plugin = make_plugin(make_claim("c", modes=ONE_POD))
    pod, state = make_pod("new", pvcs=["c"]), CycleState()
    run_filter(plugin, pod, snapshot, state=state)
    namesake = PodInfo(make_pod("z", namespace="other", pvcs=["c", "c"]))
    plugin.remove_pod(state, PodInfo(pod), namesake, 0)
    assert plugin.filter(state, PodInfo(pod), nodes_of(snapshot)) is None
    plugin.add_pod(state, PodInfo(pod), namesake, 0)
    assert plugin.filter(state, PodInfo(pod), nodes_of(snapshot)) is not None


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(make_pod(), id="no-volumes"),
        pytest.param(make_pod(pvcs=["many", "one"]), id="7-unused-claims"),
        pytest.param(make_pod(pvcs=["many"]), id="7-claim-for-many"),
        pytest.param(make_pod(volumes=[make_ephemeral_volume()]), id="ephemeral-not-looked-up"),
    ],
)
def test_pods_without_such_volumes_skip(pod: Pod) -> None:
    plugin = make_plugin(make_claim("many"), make_claim("one", modes=ONE_POD))
    snapshot = make_snapshot([make_node("n1")], [make_pod("r", node="n1", pvcs=["many"])])
    assert run_pre_filter(plugin, pod, snapshot) == Status.skip()


def test_a_missing_claim_rejects_the_pod() -> None:
    answer = run_pre_filter(make_plugin(), make_pod(pvcs=["x"]), make_snapshot())
    assert answer == Status.unresolvable('persistentvolumeclaim "x" not found')


def test_filter_without_pre_filter_fails_after_the_disks_were_checked() -> None:
    plugin, state, pod = make_plugin(), CycleState(), PodInfo(make_pod(volumes=[gce()]))
    running = make_pod("r", node="n1", volumes=[gce()])
    snapshot = make_snapshot([make_node("n1"), make_node("n2")], [running])
    codes = plugin.filter(state, pod, nodes_of(snapshot))
    assert codes is not None
    first, second = (plugin.filter_status(state, code) for code in codes.tolist())
    assert first == NO_DISK
    assert str(second.as_error()) == 'cannot read "PreFilterVolumeRestrictions" from cycleState'


@pytest.mark.parametrize(
    ("pod", "event", "old", "new", "hint"),
    [
        pytest.param(
            make_pod(volumes=[gce()]),
            ASSIGNED_POD_DELETE,
            make_pod("r", volumes=[gce()]),
            None,
            Hint.QUEUE,
            id="disk-freed",
        ),
        pytest.param(
            make_pod(volumes=[gce(ro=True)]),
            ASSIGNED_POD_DELETE,
            make_pod("r", volumes=[gce(ro=True)]),
            None,
            Hint.SKIP,
            id="disk-was-shared",
        ),
        pytest.param(
            make_pod(volumes=[gce()]),
            ASSIGNED_POD_DELETE,
            make_pod("r", namespace="other", volumes=[gce()]),
            None,
            Hint.SKIP,
            id="other-namespace",
        ),
        pytest.param(
            make_pod(pvcs=["c", "d"]),
            ASSIGNED_POD_DELETE,
            make_pod("r", pvcs=["d"]),
            None,
            Hint.QUEUE,
            id="same-claim",
        ),
        pytest.param(
            make_pod(pvcs=["c"]),
            ASSIGNED_POD_DELETE,
            make_pod("r", pvcs=["d"]),
            None,
            Hint.SKIP,
            id="other-claim",
        ),
        pytest.param(make_pod(), NODE_ADD, None, make_node(), Hint.QUEUE, id="new-node"),
        pytest.param(
            make_pod(pvcs=["c"]), CLAIM_ADD, None, make_claim("c"), Hint.QUEUE, id="claim"
        ),
        pytest.param(
            make_pod(pvcs=["c"]),
            CLAIM_ADD,
            None,
            make_claim("c", namespace="other"),
            Hint.SKIP,
            id="claim-elsewhere",
        ),
        pytest.param(
            make_pod("p", volumes=[make_ephemeral_volume("v")]),
            CLAIM_ADD,
            None,
            make_claim("p-v"),
            Hint.SKIP,
            id="ephemeral-claim",
        ),
    ],
)
def test_hints(pod: Pod, event: ClusterEvent, old: object, new: object, hint: Hint) -> None:
    assert run_hint(make_plugin(), event, pod, old, new) is hint
