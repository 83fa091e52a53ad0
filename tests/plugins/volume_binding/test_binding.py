"""Spec 07 §2.9: what was reserved is written, then waited for."""

import asyncio
from collections.abc import Callable, Coroutine

import msgspec
import pytest

from kubestow.api.decode import to_document
from kubestow.api.meta import ApiObject, JsonObject
from kubestow.api.node import Node
from kubestow.api.pod import AzureDisk, Pod
from kubestow.api.pod_info import PodInfo
from kubestow.api.storage import CSINode, PersistentVolume, PersistentVolumeClaim
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cache.objects import ClusterObjects
from kubestow.cache.snapshot import Snapshot
from kubestow.config.plugin_args import VolumeBindingArgs
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.status import Code, Status
from kubestow.plugins.volume_binding import VolumeBinding
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time
from kubestow.testing import make_cache, make_handle, make_node, make_pod, make_term, run_filter
from kubestow.testing.storage import (
    make_claim,
    make_csi_node,
    make_storage_class,
    make_volume,
    make_volume_affinity,
)

SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"

STATIC = make_storage_class("static", provisioner="kubernetes.io/no-provisioner")
PROVISIONED = make_storage_class("fast")
POD = make_pod("p", pvcs=["c"], node="n1")
NODE = make_node("n1", zone="a")


class World:
    """An API server, stores that follow it on demand, and a pod that was given node n1."""

    def __init__(self, *objects: ApiObject, timeout_s: int = 10, pod: Pod = POD) -> None:
        clock = VirtualClock(asyncio.get_running_loop())
        self.pod = PodInfo(pod)
        self.cluster = MemoryCluster(clock, admission=False)
        self.stores = ClusterObjects()
        for each in (NODE, pod, STATIC, PROVISIONED, *objects):
            self.cluster.create(self.cluster.resources.of_type(type(each)), to_document(each))
        self.watch()
        snapshot = Snapshot()
        snapshot.refresh(make_cache([NODE]))
        handle = make_handle(
            snapshot, objects=self.stores, clock=clock, client=MemoryClient(self.cluster)
        )
        self.plugin = VolumeBinding(VolumeBindingArgs(bind_timeout_seconds=timeout_s), handle)
        self.state = CycleState()
        assert run_filter(self.plugin, pod, snapshot, state=self.state) == {}
        assert self.plugin.reserve(self.state, self.pod, "n1") is None

    def watch(self) -> None:
        """Bring the stores up to date."""
        for cls in (Node, Pod, PersistentVolume, PersistentVolumeClaim, CSINode):
            self.stores.put(*self.current(cls))
        self.stores.put(STATIC, PROVISIONED)

    def current(self, cls: type[ApiObject]) -> list[ApiObject]:
        resource = self.cluster.resources.of_type(cls)
        return [stored.typed for stored in self.cluster.list(resource).items]

    def patch(self, cls: type[ApiObject], name: str, patch: JsonObject) -> None:
        namespace = "default" if cls in (Pod, PersistentVolumeClaim) else ""
        resource = self.cluster.resources.of_type(cls)
        self.cluster.patch(resource, namespace, name, patch, "merge")

    def complete(self, volume: str, claim: str = "c") -> None:
        """What a volume controller writes."""
        self.patch(
            PersistentVolumeClaim,
            claim,
            {
                "spec": {"volumeName": volume},
                "metadata": {"annotations": {BIND_COMPLETED: "yes"}},
            },
        )

    def at(self, second: float, act: Callable[[], object]) -> None:
        """Do something then, and let the stores show it."""

        def do() -> None:
            act()
            self.watch()

        asyncio.get_running_loop().call_later(second, do)

    async def bind(self) -> tuple[str, float]:
        """The error ("" if there is none) and when it was known."""
        status = await self.plugin.pre_bind(self.state, self.pod, "n1")
        assert status is None or status.code is Code.ERROR
        return "" if status is None else status.message, asyncio.get_running_loop().time()


def in_virtual_time(test: Callable[[], Coroutine[None, None, None]]) -> Callable[[], None]:
    def run() -> None:
        run_in_virtual_time(test())

    run.__name__ = test.__name__
    return run


@in_virtual_time
async def test_a_chosen_volume_is_written_and_waited_for() -> None:
    world = World(make_claim("c", class_name="static"), make_volume("pv", class_name="static"))
    flight = world.plugin.pre_bind_pre_flight(world.state, world.pod, "n1")
    assert (flight.status, flight.allow_parallel) == (None, True)
    world.at(0.1, lambda: None)
    world.at(2.5, lambda: world.complete("pv"))
    assert await world.bind() == ("", 3.0)
    (volume,) = world.current(PersistentVolume)
    assert isinstance(volume, PersistentVolume)
    assert volume.spec.claim_ref is not None
    assert (volume.spec.claim_ref.name, volume.spec.claim_ref.kind) == (
        "c",
        "PersistentVolumeClaim",
    )
    assert volume.metadata.annotations == {"pv.kubernetes.io/bound-by-controller": "yes"}
    assert world.plugin.assumed_volumes() == []


@in_virtual_time
async def test_a_claim_to_provision_is_written_and_waited_for() -> None:
    world = World(make_claim("c"))

    def provision() -> None:
        volume = make_volume("made", terms=[make_term("topology.kubernetes.io/zone In a")])
        resource = world.cluster.resources.of_type(PersistentVolume)
        world.cluster.create(resource, to_document(volume))

    world.at(0.1, lambda: None)
    world.at(1.5, provision)
    world.at(1.6, lambda: world.complete("made"))
    assert await world.bind() == ("", 2.0)
    (claim,) = world.current(PersistentVolumeClaim)
    assert claim.metadata.annotations[SELECTED_NODE] == "n1"


@in_virtual_time
async def test_the_first_check_comes_after_a_second() -> None:
    world = World(make_claim("c"))
    world.at(0.1, lambda: world.complete("made"))
    # The claim is done before the volume is known: that is no error yet.
    world.at(1.5, lambda: world.stores.put(make_volume("made")))
    assert await world.bind() == ("", 2.0)


@in_virtual_time
async def test_what_was_seen_before_the_write_does_not_count() -> None:
    world = World(make_claim("c", class_name="static"), make_volume("pv", class_name="static"))
    # The claim is bound at once, but the stores still show the volume of before.
    asyncio.get_running_loop().call_later(0.1, world.complete, "pv")

    def show_claim_only() -> None:
        world.stores.put(*world.current(PersistentVolumeClaim))

    asyncio.get_running_loop().call_later(0.2, show_claim_only)
    world.at(3.5, lambda: None)
    assert await world.bind() == ("", 4.0)


@in_virtual_time
async def test_a_volume_that_names_the_claim_already_is_only_waited_for() -> None:
    claim = make_claim("c", class_name="static")
    world = World(claim, make_volume("pv", class_name="static", claim=claim, phase="Bound"))
    before = world.cluster.version
    world.at(0.5, lambda: world.complete("pv"))
    assert await world.bind() == ("", 1.0)
    assert world.cluster.version == before + 1


@in_virtual_time
async def test_patience_ends() -> None:
    world = World(make_claim("c"), timeout_s=3)
    world.at(0.1, lambda: None)
    assert await world.bind() == ("binding volumes: context deadline exceeded", 3.0)


@in_virtual_time
async def test_without_patience_it_ends_at_once() -> None:
    world = World(make_claim("c"), timeout_s=0)
    assert await world.bind() == ("binding volumes: context deadline exceeded", 0.0)


@in_virtual_time
async def test_a_refused_write_gives_back_what_is_not_written() -> None:
    pod = make_pod("p", pvcs=["c1", "c2", "new"], node="n1")
    world = World(
        make_claim("c1", class_name="static", size="1Gi"),
        make_claim("c2", class_name="static", size="2Gi"),
        make_claim("new"),
        make_volume("a", class_name="static", size="1Gi"),
        make_volume("b", class_name="static", size="2Gi"),
        pod=pod,
    )
    # Another client changed the second volume meanwhile.
    world.patch(PersistentVolume, "b", {"metadata": {"labels": {"x": "y"}}})
    message, _ = await world.bind()
    assert message == (
        'Operation cannot be fulfilled on persistentvolumes "b": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    assert [volume.metadata.name for volume in world.plugin.assumed_volumes()] == ["a"]
    assert world.plugin.assumed_claims() == []
    written = world.current(PersistentVolume)[0]
    assert isinstance(written, PersistentVolume)
    assert written.spec.claim_ref is not None


def delete(cls: type[ApiObject], name: str) -> Callable[[World], None]:
    def act(world: World) -> None:
        world.stores.store(cls).remove("default" if cls is not Node else "", name)

    return act


def reset_ref(world: World) -> None:
    world.patch(PersistentVolume, "pv", {"spec": {"claimRef": None}})
    world.watch()


def reset_uid(world: World) -> None:
    world.patch(PersistentVolume, "pv", {"spec": {"claimRef": {"uid": ""}}})
    world.watch()


def move_volume(world: World) -> None:
    affinity = make_volume_affinity(make_term("topology.kubernetes.io/zone In b"))
    world.patch(PersistentVolume, "pv", {"spec": {"nodeAffinity": to_document(affinity)}})
    world.watch()


def spoil_volume(world: World) -> None:
    affinity = make_volume_affinity(make_term("zone Near b"))
    world.patch(PersistentVolume, "pv", {"spec": {"nodeAffinity": to_document(affinity)}})
    world.watch()


def make_untranslatable(world: World) -> None:
    resource = world.cluster.resources.of_type(CSINode)
    csi_node = make_csi_node("n1", migrated="kubernetes.io/azure-disk")
    world.cluster.create(resource, to_document(csi_node))
    disk = to_document(AzureDisk(disk_uri="u", kind="Shared"))
    world.patch(PersistentVolume, "pv", {"spec": {"azureDisk": disk}})
    world.watch()


def remove_volume(world: World) -> None:
    world.stores.persistent_volumes.remove("pv")


NO_NODE = 'failed to get node "n1": node "n1" not found'
NO_POD = 'pod does not exist any more: pod "p" not found'


@pytest.mark.parametrize(
    ("act", "message"),
    [
        pytest.param(lambda world: world.stores.nodes.remove("n1"), NO_NODE, id="node-gone"),
        pytest.param(delete(Pod, "p"), NO_POD, id="pod-gone"),
        pytest.param(
            remove_volume,
            'failed to check binding: persistentvolumes "pv" not found',
            id="volume-gone",
        ),
        pytest.param(
            delete(PersistentVolumeClaim, "c"),
            'failed to check binding: persistentvolumeclaims "default/c" not found',
            id="claim-gone",
        ),
        pytest.param(reset_ref, 'ClaimRef got reset for pv "pv"', id="reference-gone"),
        pytest.param(reset_uid, 'ClaimRef got reset for pv "pv"', id="reference-without-uid"),
        pytest.param(
            move_volume,
            'pv "pv" node affinity doesn\'t match node "n1": no matching NodeSelectorTerms',
            id="volume-moved",
        ),
        pytest.param(
            spoil_volume,
            'pv "pv" node affinity doesn\'t match node "n1": '
            'nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: "Near": '
            'supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"',
            id="affinity-spoilt",
        ),
        pytest.param(
            make_untranslatable,
            "failed to translate pv to csi: kind(Shared) is not supported in csi migration",
            id="not-translatable",
        ),
    ],
)
def test_the_wait_for_a_chosen_volume_ends(act: Callable[[World], None], message: str) -> None:
    async def run() -> None:
        world = World(make_claim("c", class_name="static"), make_volume("pv", class_name="static"))
        world.at(0.1, lambda: None)
        asyncio.get_running_loop().call_later(1.5, act, world)
        assert await world.bind() == (f"binding volumes: {message}", 2.0)

    run_in_virtual_time(run())


def without_annotations(world: World) -> None:
    claim = world.stores.persistent_volume_claims.get("default", "c")
    assert claim is not None
    meta = msgspec.structs.replace(claim.metadata, annotations={})
    world.stores.put(msgspec.structs.replace(claim, metadata=meta))


def elsewhere(world: World) -> None:
    world.patch(PersistentVolumeClaim, "c", {"metadata": {"annotations": {SELECTED_NODE: "n2"}}})
    world.watch()


def taken_back(world: World) -> None:
    patch: JsonObject = {"metadata": {"annotations": {SELECTED_NODE: None, "other": "x"}}}
    world.patch(PersistentVolumeClaim, "c", patch)
    world.watch()


def made_far_away(world: World) -> None:
    world.complete("far")
    world.watch()
    world.stores.put(make_volume("far", terms=[make_term("topology.kubernetes.io/zone In b")]))


def made_untranslatable(world: World) -> None:
    world.complete("odd")
    world.watch()
    world.stores.put(make_csi_node("n1", migrated="kubernetes.io/azure-disk"))
    world.stores.put(make_volume("odd", azure_disk=AzureDisk(disk_uri="u", kind="Shared")))


@pytest.mark.parametrize(
    ("act", "message"),
    [
        pytest.param(
            delete(PersistentVolumeClaim, "c"),
            'failed to check provisioning pvc: persistentvolumeclaims "default/c" not found',
            id="claim-gone",
        ),
        pytest.param(
            without_annotations,
            'selectedNode annotation reset for PVC "c"',
            id="annotations-gone",
        ),
        pytest.param(elsewhere, 'provisioning failed for PVC "c"', id="other-node"),
        pytest.param(taken_back, 'provisioning failed for PVC "c"', id="taken-back"),
        pytest.param(
            made_far_away,
            'pv "far" node affinity doesn\'t match node "n1": no matching NodeSelectorTerms',
            id="out-of-reach",
        ),
        pytest.param(
            made_untranslatable,
            "kind(Shared) is not supported in csi migration",
            id="not-translatable",
        ),
    ],
)
def test_the_wait_for_a_provisioned_volume_ends(act: Callable[[World], None], message: str) -> None:
    async def run() -> None:
        world = World(make_claim("c"))
        world.at(0.1, lambda: None)
        asyncio.get_running_loop().call_later(1.5, act, world)
        assert await world.bind() == (f"binding volumes: {message}", 2.0)

    run_in_virtual_time(run())


@in_virtual_time
async def test_a_cancelled_wait_stops() -> None:
    world = World(make_claim("c"))
    task = asyncio.create_task(world.plugin.pre_bind(world.state, world.pod, "n1"))
    await asyncio.sleep(1.5)
    task.cancel("preempted")
    with pytest.raises(asyncio.CancelledError, match="preempted"):
        await task


@in_virtual_time
async def test_nothing_is_done_where_everything_is_bound() -> None:
    world = World(make_claim("c", volume="pv"), make_volume("pv"))
    assert world.plugin.pre_bind_pre_flight(world.state, world.pod, "n1").status == Status.skip()
    assert await world.bind() == ("", 0.0)


@in_virtual_time
async def test_a_node_without_reservation_fails() -> None:
    world = World(make_claim("c"))
    status = await world.plugin.pre_bind(world.state, world.pod, "n9")
    assert status is not None
    assert status.message == 'no pod volumes found for node "n9"'
