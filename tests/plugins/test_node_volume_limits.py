"""Spec 07 §5: no more volumes on a node than its CSI drivers can attach."""

from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.meta import ApiObject
from kubestow.api.pod import AwsElasticBlockStore, AzureDisk, GcePersistentDisk, Pod, Volume
from kubestow.api.pod_info import PodInfo
from kubestow.api.storage import CSINode, PersistentVolume, PersistentVolumeClaim, VolumeAttachment
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.config.feature_gates import FeatureGates
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.events import ASSIGNED_POD_DELETE, Action, ClusterEvent, Hint, Resource
from kubestow.framework.status import Status
from kubestow.index.nodes import SimulatedNode, nodes_of
from kubestow.plugins.node_volume_limits import NodeVolumeLimits
from kubestow.plugins.node_volume_limits.attached import AttachedVolumes
from kubestow.plugins.node_volume_limits.room import AttachmentRoom
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
    DRIVER,
    make_attachment,
    make_claim,
    make_csi_driver,
    make_csi_node,
    make_ephemeral_volume,
    make_storage_class,
    make_volume,
)

TOO_MANY = Status.unschedulable("node(s) exceed max volume count")
GCE_DRIVER = "pd.csi.storage.gke.io"
EBS_DRIVER = "ebs.csi.aws.com"


def make_plugin(
    *objects: ApiObject, gates: dict[str, bool] | None = None
) -> tuple[NodeVolumeLimits, ClusterObjects]:
    stores = ClusterObjects()
    stores.put(*objects)
    handle = make_handle(objects=stores, feature_gates=FeatureGates(gates))
    return NodeVolumeLimits(None, handle), stores


def bound(*names: str) -> list[ApiObject]:
    """A claim of that name and its volume, whose handle is the name too."""
    objects: list[ApiObject] = []
    for name in names:
        objects += [make_claim(name, volume=f"pv-{name}"), make_volume(f"pv-{name}", handle=name)]
    return objects


def unbound(*names: str) -> list[ApiObject]:
    return [make_storage_class(), *(make_claim(name) for name in names)]


def gce(name: str = "pd1") -> Volume:
    return Volume(name="v", gce_persistent_disk=GcePersistentDisk(pd_name=name))


def verdict(
    limits: dict[str, int | None] | None,
    running: Iterable[Sequence[str]],
    pod: Pod,
    *objects: ApiObject,
) -> Status | None:
    """What is said of one node with pods that use these claims; None limits: no CSINode."""
    if limits is not None:
        objects = (*objects, make_csi_node("n1", limits))
    plugin, _ = make_plugin(*objects)
    pods = [make_pod(f"r{i}", node="n1", pvcs=claims) for i, claims in enumerate(running)]
    snapshot = make_snapshot([make_node("n1")], pods)
    answer = run_filter(plugin, pod, snapshot).get("n1")
    assert run_filter(plugin, pod, SimulatedNode(snapshot, 0)).get("n1") == answer
    return answer


@pytest.mark.parametrize(
    ("limit", "running", "wanted", "attached", "passes"),
    [
        pytest.param(2, ["v1", "v2"], ["v2"], [], True, id="1-nothing-new"),
        pytest.param(2, ["v1", "v2"], ["v3"], [], False, id="2-full"),
        pytest.param(3, ["v1", "v2"], ["v3"], [], True, id="2-room-for-one"),
        pytest.param(1, [], ["v3"], ["v3"], False, id="3-attached-counts-twice"),
        pytest.param(2, [], ["v3"], ["v3"], True, id="3-attached-counts-twice-but-fits"),
        pytest.param(2, [], ["v1"], ["v7", "v8"], False, id="4-attachments-alone"),
        pytest.param(3, ["v7"], ["v1"], ["v7", "v8"], True, id="4-used-and-attached-count-once"),
        pytest.param(0, [], ["v1"], [], False, id="zero-is-a-limit"),
        pytest.param(None, ["v1"], ["v2"], [], True, id="6-no-limit-given"),
        pytest.param(2, ["v1"], ["v2", "v3"], [], False, id="two-new"),
        pytest.param(2, ["v1"], ["v2", "v2"], [], True, id="one-volume-twice"),
    ],
)
def test_volumes_are_counted(
    limit: int | None, running: list[str], wanted: list[str], attached: list[str], passes: bool
) -> None:
    attachments = [
        make_attachment(f"a{number}", node="n1", volume=f"pv-{name}")
        for number, name in enumerate(
            [*attached, *attached]
        )  # Two objects for one volume count once.
    ]
    answer = verdict(
        {DRIVER: limit},
        [[name] for name in running],
        make_pod("new", pvcs=wanted),
        *bound("v1", "v2", "v3", "v7", "v8"),
        *attachments,
    )
    assert answer == (None if passes else TOO_MANY)


@pytest.mark.parametrize(
    ("limit", "running", "passes"),
    [
        pytest.param(2, [["v1"]], False, id="5-two-unbound-are-too-many"),
        pytest.param(3, [["v1"]], True, id="5-two-unbound-fit"),
        pytest.param(2, [["v1"], ["p"]], False, id="5-shared-unbound"),
        pytest.param(3, [["v1"], ["p"]], True, id="5-shared-unbound-fits"),
    ],
)
def test_unbound_claims_count_under_their_provisioner(
    limit: int, running: list[list[str]], passes: bool
) -> None:
    pod = make_pod("new", pvcs=["p", "q"])
    answer = verdict({DRIVER: limit}, running, pod, *bound("v1"), *unbound("p", "q"))
    assert answer == (None if passes else TOO_MANY)


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param(None, id="6-no-csi-node"),
        pytest.param({}, id="6-no-drivers"),
        pytest.param({"other.csi": 0}, id="6-other-driver"),
        pytest.param({DRIVER: None}, id="6-no-count"),
    ],
)
def test_nodes_without_a_limit_take_everything(limits: dict[str, int | None] | None) -> None:
    assert verdict(limits, [["v1"]], make_pod("new", pvcs=["v2"]), *bound("v1", "v2")) is None


def test_7_in_tree_disks_count_under_their_csi_driver() -> None:
    pod = make_pod("new", volumes=[gce()])
    assert verdict({GCE_DRIVER: 0}, [], pod) == TOO_MANY
    assert verdict({GCE_DRIVER: 1}, [], pod) is None
    assert verdict(None, [], pod) is None


def test_in_tree_volumes_and_provisioners_are_translated() -> None:
    volume = make_volume(
        "pv-e", aws_elastic_block_store=AwsElasticBlockStore(volume_id="aws://a/vol-1")
    )
    bad = make_volume("pv-x", azure_disk=AzureDisk(disk_uri="u", kind="Shared"))
    objects = [
        make_claim("e", volume="pv-e"),
        make_claim("x", volume="pv-x"),
        make_claim("later", class_name="old"),
        make_claim("file", class_name="files"),
        volume,
        bad,
        make_storage_class("old", provisioner="kubernetes.io/aws-ebs"),
        make_storage_class("files", provisioner="kubernetes.io/azure-file"),
    ]
    limits: dict[str, int | None] = {
        EBS_DRIVER: 1,
        "disk.csi.azure.com": 0,
        "file.csi.azure.com": 0,
    }
    assert verdict(limits, [], make_pod("new", pvcs=["e"]), *objects) is None
    assert verdict(limits, [["e"]], make_pod("new", pvcs=["later"]), *objects) == TOO_MANY
    assert verdict(limits, [["later"]], make_pod("new", pvcs=["e"]), *objects) == TOO_MANY
    assert verdict(limits, [], make_pod("new", pvcs=["x", "file"]), *objects) is None
    assert verdict(None, [], make_pod("new", pvcs=["e", "later"]), *objects) is None


def test_8_a_missing_claim_of_the_newcomer_is_unresolvable() -> None:
    answer = verdict(None, [], make_pod("new", pvcs=["x"]))
    assert answer == Status.unresolvable(
        'looking up PVC default/x: persistentvolumeclaim "x" not found'
    )


def test_what_running_pods_lost_is_not_counted() -> None:
    pod = make_pod("new", pvcs=["v1"])
    classless = make_claim("classless", class_name=None)
    lost_class = make_claim("lost", class_name="gone")
    lost_volume = make_claim("orphan", volume="pv-gone")
    answer = verdict(
        {DRIVER: 2},
        [["gone"], ["classless"], ["lost"], ["orphan"]],
        pod,
        *bound("v1"),
        classless,
        lost_class,
        lost_volume,
        make_storage_class(),
    )
    # The claim whose volume is gone counts under its class.
    assert answer is None
    assert (
        verdict({DRIVER: 1}, [["orphan"]], pod, *bound("v1"), lost_volume, make_storage_class())
        == TOO_MANY
    )


def failure(answer: Status | None) -> str:
    error = None if answer is None else answer.as_error()
    assert answer is not None
    assert not answer.is_rejected
    return str(error)


def test_what_cannot_be_read_fails() -> None:
    unnamed = verdict(None, [], make_pod("new", pvcs=[""]))
    assert failure(unnamed) == "PersistentVolumeClaim had no name"
    disk = Volume(name="v", azure_disk=AzureDisk(disk_uri="u", kind="Shared"))
    untranslatable = verdict({}, [], make_pod("new", volumes=[disk]))
    assert failure(untranslatable) == (
        "converting volume(v) from inline to csi: kind(Shared) is not supported in csi migration"
    )
    assert verdict(None, [], make_pod("new", volumes=[disk])) is None
    stranger = make_claim("new-scratch")
    pod = make_pod("new", volumes=[make_ephemeral_volume()])
    assert failure(verdict(None, [], pod, stranger)) == (
        "PVC default/new-scratch was not created for pod default/new (pod is not owner)"
    )


def test_an_unreadable_running_pod_fails_where_volumes_are_counted() -> None:
    objects = [*bound("v1"), make_claim("r-scratch")]
    plugin, _ = make_plugin(
        *objects, make_csi_node("n1", {"other.csi": 5}), make_csi_node("n2", {})
    )
    running = [
        make_pod("r", node=node, volumes=[make_ephemeral_volume()]) for node in ("n1", "n2", "n3")
    ]
    snapshot = make_snapshot([make_node(name) for name in ("n1", "n2", "n3")], running)
    answers = run_filter(plugin, make_pod("new", pvcs=["v1"]), snapshot)
    assert list(answers) == ["n1"]
    assert failure(answers["n1"]) == (
        "PVC default/r-scratch was not created for pod default/r (pod is not owner)"
    )


def test_the_csi_node_decides_what_is_wrong_with_a_node() -> None:
    # In order of the volumes: on a node with CSINode the disk fails before the claim is looked up.
    disk = Volume(name="v", azure_disk=AzureDisk(disk_uri="u", kind="Shared"))
    plugin, _ = make_plugin(make_csi_node("n1"))
    snapshot = make_snapshot([make_node("n1"), make_node("n2")])
    answers = run_filter(plugin, make_pod("new", volumes=[disk], pvcs=["x"]), snapshot)
    assert failure(answers["n1"]).startswith("converting volume(v)")
    assert answers["n2"].is_rejected


@pytest.mark.parametrize(
    ("pod", "is_skipped"),
    [
        pytest.param(make_pod(), True, id="none"),
        pytest.param(make_pod(volumes=[Volume(name="v")]), True, id="other"),
        pytest.param(make_pod(pvcs=["x"]), False, id="claim"),
        pytest.param(make_pod(volumes=[make_ephemeral_volume()]), False, id="ephemeral"),
        pytest.param(make_pod(volumes=[gce()]), False, id="in-tree"),
    ],
)
def test_only_pods_with_volumes_that_may_count_are_looked_at(pod: Pod, is_skipped: bool) -> None:
    plugin, _ = make_plugin()
    answer = run_pre_filter(plugin, pod, make_snapshot())
    assert answer == (Status.skip() if is_skipped else None)


def test_required_drivers_must_be_there_behind_the_gate() -> None:
    objects = [
        *bound("v1"),
        make_csi_driver(is_required=True),
        make_csi_node("with", {DRIVER: None}),
        make_csi_node("without", {"other.csi": None}),
    ]
    snapshot = make_snapshot([make_node(name) for name in ("with", "without", "none")])
    pod = make_pod("new", pvcs=["v1"])
    missing = Status.unschedulable(f"{DRIVER} CSI driver is not installed on the node")
    plugin, stores = make_plugin(*objects, gates={"VolumeLimitScaling": True})
    expected = {"without": missing, "none": missing}
    assert run_filter(plugin, pod, snapshot) == expected
    for row, name in enumerate(snapshot.names):
        answer = run_filter(plugin, pod, SimulatedNode(snapshot, row))
        assert answer.get(name) == expected.get(name)
    stores.put(make_csi_driver(is_required=False))
    assert run_filter(plugin, pod, snapshot) == {}
    plugin, _ = make_plugin(*objects)
    assert run_filter(plugin, pod, snapshot) == {}


# --- Against a slow reading -------------------------------------------------------------------

NODES = ("n0", "n1", "n2")
CLAIM_VOLUMES = {"a": "p", "b": "q", "c": "r", "d": ""}
CLAIMS = tuple(CLAIM_VOLUMES)


def slow_volumes(pod: Pod, stores: ClusterObjects, has_csi_node: bool) -> dict[str, str]:
    found: dict[str, str] = {}
    for volume in pod.spec.volumes:
        if volume.gce_persistent_disk is not None and has_csi_node:
            name = volume.gce_persistent_disk.pd_name
            handle = f"projects/UNSPECIFIED/zones/UNSPECIFIED/disks/{name}"
            found[f"{GCE_DRIVER}/{handle}"] = GCE_DRIVER
        if volume.persistent_volume_claim is None:
            continue
        name = volume.persistent_volume_claim.claim_name
        claim = stores.persistent_volume_claims.get("default", name)
        if claim is None:
            continue
        pv = stores.persistent_volumes.get(claim.spec.volume_name)
        storage_class = stores.storage_classes.get(claim.spec.storage_class_name or "")
        if pv is not None and pv.spec.csi is not None:
            found[f"{pv.spec.csi.driver}/{pv.spec.csi.volume_handle}"] = pv.spec.csi.driver
        elif pv is None and storage_class is not None:
            found[f"{storage_class.provisioner}/unbound {name}"] = storage_class.provisioner
    return found


def slow_verdict(pod: Pod, on_node: Sequence[Pod], node: str, stores: ClusterObjects) -> bool:
    """Whether the volumes fit, counted from scratch."""
    csi_node = stores.csi_nodes.get(node)
    if csi_node is None:
        return True
    new = slow_volumes(pod, stores, True)
    attached: dict[str, str] = {}
    for there in on_node:
        attached |= slow_volumes(there, stores, True)
    extra: dict[str, str] = {}
    for attachment in stores.volume_attachments.list():
        pv = stores.persistent_volumes.get(attachment.spec.source.persistent_volume_name or "")
        if attachment.spec.node_name == node and pv is not None and pv.spec.csi is not None:
            name = f"{attachment.spec.attacher}/{pv.spec.csi.volume_handle}"
            if name not in attached:
                extra[name] = attachment.spec.attacher
    for driver in csi_node.spec.drivers:
        if driver.allocatable is None or driver.allocatable.count is None:
            continue
        there = [*attached.values(), *extra.values()].count(driver.name)
        added = sum(new[name] == driver.name for name in new.keys() - attached.keys())
        if added and there + added > driver.allocatable.count:
            return False
    return True


claims = st.builds(
    lambda name, volume: make_claim(name, volume=volume),
    st.sampled_from(CLAIMS),
    st.sampled_from(["", "p", "q", "r"]),
)
volumes = st.builds(
    lambda name, handle, driver: make_volume(name, handle=handle, driver=driver),
    st.sampled_from("pqr"),
    st.sampled_from(["h-p", "h-q", ""]),
    st.sampled_from([DRIVER, DRIVER, "other.csi"]),
)
csi_nodes = st.builds(
    make_csi_node,
    st.sampled_from(NODES),
    st.dictionaries(
        st.sampled_from([DRIVER, "other.csi", GCE_DRIVER]), st.one_of(st.none(), st.integers(0, 3))
    ),
)
attachments = st.builds(
    lambda name, node, volume: make_attachment(name, node=node, volume=volume),
    st.sampled_from("xyz"),
    st.sampled_from(NODES),
    st.sampled_from([None, "p", "q"]),
)
objects_put = st.one_of(
    claims, volumes, csi_nodes, attachments, st.builds(make_storage_class), st.none()
)
pod_volumes = st.lists(st.sampled_from(CLAIMS), max_size=3)
steps = st.one_of(
    st.tuples(st.just("put"), objects_put),
    st.tuples(st.just("run"), st.tuples(st.sampled_from(NODES), pod_volumes, st.booleans())),
    st.tuples(st.just("end"), st.integers(0, 5)),
    st.tuples(st.just("drop"), st.sampled_from([*CLAIMS, "p", "q", "x", "n1"])),
    st.tuples(st.just("node"), st.sampled_from(NODES)),
)


def apply_step(kind: str, what: object, stores: ClusterObjects, world: "World") -> None:
    match kind, what:
        case "put", ApiObject() as new:
            stores.put(new)
        case "run", (str(node), list(names), bool(with_disk)):
            disks = [gce()] if with_disk else []
            world.run(make_pod(node=node, pvcs=names, volumes=disks))
        case "end", int(index):
            world.end(index)
        case "drop", str(name):
            stores.persistent_volume_claims.remove("default", name)
            stores.store(PersistentVolume).remove(name)
            stores.store(VolumeAttachment).remove(name)
            stores.store(CSINode).remove(name)
        case "node", str(name):
            world.toggle_node(name)
        case _:
            pass


class World:
    """Nodes with pods that come and go."""

    def __init__(self) -> None:
        self.cache = make_cache([make_node(name) for name in NODES])
        self.snapshot = Snapshot()
        self.snapshot.refresh(self.cache)
        self.pods: list[Pod] = []

    def run(self, pod: Pod) -> None:
        self.pods.append(pod)
        self.cache.add_pod(PodInfo(pod))

    def end(self, index: int) -> None:
        if index < len(self.pods):
            self.cache.remove_pod(self.pods.pop(index))

    def toggle_node(self, name: str) -> None:
        """Nodes come and go; their pods stay."""
        if self.snapshot.row_of(name) is not None:
            self.cache.remove_node(make_node(name))
        else:
            self.cache.add_node(make_node(name))


@given(st.lists(steps, max_size=25), st.sets(st.sampled_from(CLAIMS), min_size=1), st.booleans())
def test_counts_kept_equal_counts_from_scratch(
    script: list[tuple[str, object]], wanted: set[str], with_disk: bool
) -> None:
    plugin, stores = make_plugin(
        make_storage_class(),
        *(make_csi_node(node, {DRIVER: row + 1, GCE_DRIVER: 1}) for row, node in enumerate(NODES)),
        *(make_claim(name, volume=volume) for name, volume in CLAIM_VOLUMES.items()),
        *(make_volume(name, handle=f"h-{name}") for name in "pqr"),
    )
    world = World()
    # Every node is full to begin with, so that hardly a change goes unnoticed.
    for row, node in enumerate(NODES):
        world.run(make_pod(node=node, pvcs=CLAIMS[: row + 1]))
    pod = make_pod("new", pvcs=sorted(wanted), volumes=[gce()] if with_disk else [])
    for kind, what in [("put", None), *script]:
        apply_step(kind, what, stores, world)
        world.snapshot.refresh(world.cache)
        if any(stores.persistent_volume_claims.get("default", name) is None for name in wanted):
            continue
        expected = {
            name
            for name in world.snapshot.names
            if not slow_verdict(
                pod, [there for there in world.pods if there.spec.node_name == name], name, stores
            )
        }
        # Nodes are read as they are asked about: first one alone, then the others.
        some = np.array([len(world.pods) % len(NODES)]) % max(len(world.snapshot), 1)
        for rows in (some, slice(0, 2)) if len(world.snapshot) else ():
            view = nodes_of(world.snapshot, rows)
            of_view = dict.fromkeys(expected.intersection(view.names), TOO_MANY)
            assert run_filter(plugin, pod, view) == of_view
        assert run_filter(plugin, pod, world.snapshot) == dict.fromkeys(expected, TOO_MANY)
        for row, name in enumerate(world.snapshot.names):
            alone = run_filter(plugin, pod, SimulatedNode(world.snapshot, row))
            assert (name in alone) is (name in expected)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(make_claim("v1", volume="pv-v2"), id="claim"),
        pytest.param(make_volume("pv-v1", handle="v2"), id="volume"),
        pytest.param(make_storage_class(provisioner="other.csi"), id="class"),
        pytest.param(make_csi_node("n1", {DRIVER: 5}), id="csi-node"),
        pytest.param(make_attachment("a", node="n9", volume="pv-v3"), id="attachment-moves"),
        pytest.param(make_attachment("a", node="n1", volume="pv-v2"), id="attachment-of-used"),
        pytest.param(make_volume("pv-v3", handle="v2"), id="volume-of-attachment"),
    ],
)
def test_every_object_that_was_read_is_followed(change: ApiObject) -> None:
    plugin, stores = make_plugin(
        *bound("v1", "v2", "v3", "new"),
        *unbound("p"),
        make_csi_node("n1", {DRIVER: 4}),
        make_attachment("a", node="n1", volume="pv-v3"),
    )
    running = make_pod("r", node="n1", pvcs=["v1", "v2", "p"])
    snapshot = make_snapshot([make_node("n1"), make_node("n9")], [running])
    pod = make_pod("new", pvcs=["new"])
    assert run_filter(plugin, pod, snapshot) == {"n1": TOO_MANY}
    stores.put(change)
    assert run_filter(plugin, pod, snapshot) == {}


def test_deleted_and_new_objects_change_the_counts() -> None:
    plugin, stores = make_plugin(
        *bound("v1", "new"),
        make_csi_node("n1", {DRIVER: 2}),
        make_attachment("a", node="n1", volume="pv-v9"),
        make_volume("pv-v9", handle="v9"),
    )
    snapshot = make_snapshot([make_node("n1")], [make_pod("r", node="n1", pvcs=["v1"])])
    pod = make_pod("new", pvcs=["new"])
    assert run_filter(plugin, pod, snapshot) == {"n1": TOO_MANY}
    volume = stores.persistent_volumes.remove("pv-v9")
    assert run_filter(plugin, pod, snapshot) == {}
    assert volume is not None
    stores.put(volume)
    assert run_filter(plugin, pod, snapshot) == {"n1": TOO_MANY}
    attachment = stores.volume_attachments.remove("a")
    assert run_filter(plugin, pod, snapshot) == {}
    assert attachment is not None
    stores.put(attachment)
    assert run_filter(plugin, pod, snapshot) == {"n1": TOO_MANY}


def test_nothing_is_kept_of_nodes_that_are_gone() -> None:
    stores = ClusterObjects()
    snapshot = make_snapshot([make_node("n1")])
    attached, room = AttachedVolumes(stores, snapshot), AttachmentRoom(stores, snapshot)
    for number in range(3):
        node = f"gone-{number}"
        stores.put(make_csi_node(node, {DRIVER: 1}), make_attachment("a", node=node, volume="v"))
        stores.volume_attachments.remove("a")
        stores.csi_nodes.remove(node)
    # Until the next refresh, which no pod may ever ask for.
    assert not attached._stale
    assert not attached._attachments
    assert not room._stale
    assert not room._attachments
    assert not room._limiting
    assert not room.has_limits


def test_only_nodes_that_are_asked_about_are_read() -> None:
    _, stores = make_plugin(
        *bound("v", "w", "new"), *(make_csi_node(name, {DRIVER: 2}) for name in ("n1", "n2", "n3"))
    )
    running = [make_pod(f"r-{name}", node=name, pvcs=["v"]) for name in ("n1", "n2", "n3")]
    cache = make_cache([make_node(name) for name in ("n1", "n2", "n3")], running)
    snapshot = Snapshot()
    snapshot.refresh(cache)
    attached = AttachedVolumes(stores, snapshot)
    attached.refresh(np.array([1, 2]))
    assert set(attached._nodes) == {"n2", "n3"}
    assert attached.free(DRIVER)[1:].tolist() == [1, 1]
    cache.add_pod(PodInfo(make_pod("s", node="n2", pvcs=["w"])))
    snapshot.refresh(cache)
    attached.refresh(np.array([0]))
    assert attached.free(DRIVER).tolist() == [1, 1, 1]
    attached.refresh(np.array([1]))
    assert attached.free(DRIVER).tolist() == [1, 0, 1]


def test_volumes_are_read_only_on_nodes_that_may_have_too_little_room() -> None:
    names = ("many-left", "attached", "few-left", "unlimited", "no-claim")
    limits = (9, 2, 2, None, 9)
    plugin, stores = make_plugin(
        *bound("v", "w", "new"),
        *(make_csi_node(name, {DRIVER: limit}) for name, limit in zip(names, limits, strict=True)),
        make_attachment("a", node="attached", volume="pv-v"),
    )
    running = [
        make_pod("r1", node="many-left", pvcs=["v", "w"]),
        make_pod("r2", node="attached", pvcs=["v"]),
        make_pod("r3", node="few-left", pvcs=["v", "w"]),
        make_pod("r4", node="unlimited", pvcs=["v", "w"]),
        make_pod("r5", node="no-claim", volumes=[gce()]),
    ]
    cache = make_cache([make_node(name) for name in names], running)
    snapshot = Snapshot()
    snapshot.refresh(cache)
    pod = make_pod("new", pvcs=["new"])
    assert run_filter(plugin, pod, snapshot) == {"few-left": TOO_MANY}
    # Used and attached is one volume; what has no claim may be unreadable.
    assert set(plugin._attached(snapshot)._nodes) == {"attached", "few-left", "no-claim"}
    wanted = plugin._wanted(CycleState(), PodInfo(pod))
    assert not plugin.fits_everywhere(wanted, snapshot)
    cache.remove_pod(running[2])
    cache.remove_pod(running[4])
    stores.volume_attachments.remove("a")
    snapshot.refresh(cache)
    assert plugin.fits_everywhere(wanted, snapshot)
    stores.put(make_csi_node("unlimited", {DRIVER: 2}))
    assert not plugin.fits_everywhere(wanted, snapshot)
    assert run_filter(plugin, pod, snapshot) == {"unlimited": TOO_MANY}


def test_a_simulated_node_counts_the_simulated_pods() -> None:
    plugin, _ = make_plugin(*bound("v1", "v2"), make_csi_node("n1", {DRIVER: 1}))
    running = make_pod("r", node="n1", pvcs=["v1"])
    snapshot = make_snapshot([make_node("n1")], [running])
    pod, state = make_pod("new", pvcs=["v2"]), CycleState()
    node = SimulatedNode(snapshot, 0)
    assert run_filter(plugin, pod, node, state=state) == {"n1": TOO_MANY}
    node.remove_pod(PodInfo(running))
    assert run_filter(plugin, pod, node, state=state) == {}
    node.add_pod(PodInfo(make_pod("s", pvcs=["v1"])))
    assert run_filter(plugin, pod, node, state=state) == {"n1": TOO_MANY}
    assert run_filter(plugin, pod, snapshot) == {"n1": TOO_MANY}


def test_pods_matter_only_where_some_node_has_a_limit() -> None:
    plugin, stores = make_plugin(*bound("v1"), make_csi_node("n1", {DRIVER: None}))
    counted, uncounted = PodInfo(make_pod(pvcs=["v1"])), PodInfo(make_pod(volumes=[gce()]))
    assert plugin.filter_rule(CycleState(), counted).ignores_pods()
    stores.put(make_csi_node("n2", {"other.csi": 5}))
    # A pod there whose volumes cannot be read fails the node, whatever the driver.
    assert not plugin.filter_rule(CycleState(), counted).ignores_pods()
    assert not plugin.filter_rule(CycleState(), uncounted).ignores_pods()
    assert plugin.filter_rule(CycleState(), PodInfo(make_pod(pvcs=["missing"]))).ignores_pods()
    stores.put(make_csi_node("n2", {}))
    assert plugin.filter_rule(CycleState(), counted).ignores_pods()
    stores.put(make_csi_node("n2", {DRIVER: 1}))
    stores.csi_nodes.remove("n2")
    assert plugin.filter_rule(CycleState(), counted).ignores_pods()
    later = NodeVolumeLimits(None, make_handle(objects=stores))
    stores.put(make_csi_node("n2", {DRIVER: 1}))
    assert not later.filter_rule(CycleState(), counted).ignores_pods()


# --- Hints ------------------------------------------------------------------------------------

CSI_NODE_ADD = ClusterEvent(Resource.CSI_NODE, Action.ADD)
CSI_NODE_UPDATE = ClusterEvent(Resource.CSI_NODE, Action.UPDATE)
CLAIM_ADD = ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD)
ATTACHMENT_DELETE = ClusterEvent(Resource.VOLUME_ATTACHMENT, Action.DELETE)
CLAIMANT = make_pod("p", pvcs=["c"], volumes=[make_ephemeral_volume("v")])
GONE: PersistentVolumeClaim | None = None


@pytest.mark.parametrize(
    ("pod", "event", "old", "new", "hint"),
    [
        pytest.param(CLAIMANT, CSI_NODE_ADD, None, make_csi_node("n"), Hint.QUEUE, id="csi-node"),
        pytest.param(
            CLAIMANT,
            CSI_NODE_UPDATE,
            make_csi_node("n", {"d": 25}),
            make_csi_node("n", {"d": 25, "e": 5}),
            Hint.QUEUE,
            id="7-driver-added",
        ),
        pytest.param(
            CLAIMANT,
            CSI_NODE_UPDATE,
            make_csi_node("n", {"d": 25, "e": 5}),
            make_csi_node("n", {"d": 25, "e": 4}),
            Hint.SKIP,
            id="limit-lowered",
        ),
        pytest.param(
            CLAIMANT,
            CSI_NODE_UPDATE,
            make_csi_node("n", {"d": 1}),
            make_csi_node("n", {"d": None}),
            Hint.SKIP,
            id="limit-gone",
        ),
        pytest.param(
            CLAIMANT,
            ASSIGNED_POD_DELETE,
            make_pod("r", node="n", pvcs=["x"]),
            GONE,
            Hint.QUEUE,
            id="pod-with-claim",
        ),
        pytest.param(
            CLAIMANT,
            ASSIGNED_POD_DELETE,
            make_pod("r", nominated_node="n", volumes=[gce()]),
            GONE,
            Hint.QUEUE,
            id="nominated-pod-with-disk",
        ),
        pytest.param(
            CLAIMANT,
            ASSIGNED_POD_DELETE,
            make_pod("r", pvcs=["x"]),
            GONE,
            Hint.SKIP,
            id="pod-without-node",
        ),
        pytest.param(
            CLAIMANT,
            ASSIGNED_POD_DELETE,
            make_pod("r", node="n", volumes=[Volume(name="v")]),
            GONE,
            Hint.SKIP,
            id="pod-without-such-volumes",
        ),
        pytest.param(CLAIMANT, CLAIM_ADD, None, make_claim("c"), Hint.QUEUE, id="claim"),
        pytest.param(CLAIMANT, CLAIM_ADD, None, make_claim("p-v"), Hint.QUEUE, id="ephemeral"),
        pytest.param(CLAIMANT, CLAIM_ADD, None, make_claim("d"), Hint.SKIP, id="other-claim"),
        pytest.param(
            CLAIMANT,
            ATTACHMENT_DELETE,
            make_attachment("a", node="n", volume="x", attacher="any"),
            GONE,
            Hint.QUEUE,
            id="attachment-claim",
        ),
        pytest.param(
            make_pod(volumes=[gce()]),
            ATTACHMENT_DELETE,
            make_attachment("a", node="n", volume="x", attacher=GCE_DRIVER),
            GONE,
            Hint.QUEUE,
            id="attachment-same-driver",
        ),
        pytest.param(
            make_pod(volumes=[gce(), make_ephemeral_volume()]),
            ATTACHMENT_DELETE,
            make_attachment("a", node="n", volume="x", attacher="any"),
            GONE,
            Hint.SKIP,
            id="attachment-other-driver",
        ),
    ],
)
def test_hints(pod: Pod, event: ClusterEvent, old: object, new: object, hint: Hint) -> None:
    plugin, _ = make_plugin()
    assert run_hint(plugin, event, pod, old, new) is hint


def test_a_disk_that_cannot_be_translated_makes_the_hint_fail() -> None:
    plugin, _ = make_plugin()
    disk = Volume(name="v", azure_disk=AzureDisk(disk_uri="u", kind="Shared"))
    attachment = make_attachment("a", node="n", volume="x")
    with pytest.raises(ValueError, match="not supported in csi migration"):
        run_hint(plugin, ATTACHMENT_DELETE, make_pod(volumes=[disk]), attachment, None)
