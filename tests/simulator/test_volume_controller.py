"""Claims get their volumes after changes, without any timer."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress

import msgspec
import pytest

from kubestow.api.decode import to_document
from kubestow.api.meta import ApiObject, JsonObject
from kubestow.api.storage import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from kubestow.apiserver.memory import MemoryCluster
from kubestow.plugins.volume_binding.binding import claimed_volume
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time
from kubestow.simulator.volume_controller import VolumeController
from kubestow.testing import make_node, make_term
from kubestow.testing.storage import (
    make_claim,
    make_csi_node,
    make_storage_class,
    make_volume,
    make_volume_affinity,
)
from kubestow.testing.topology import make_selector

SELECTED_NODE = "volume.kubernetes.io/selected-node"
ZONE = "topology.kubernetes.io/zone"

NOW = make_storage_class("now", mode="Immediate", policy="Retain")
STATIC = make_storage_class("static", provisioner="kubernetes.io/no-provisioner", mode="Immediate")
LATER = make_storage_class("later")


class World:
    """An API server with a volume controller."""

    def __init__(self) -> None:
        self.cluster = MemoryCluster(VirtualClock(asyncio.get_running_loop()), admission=False)

    def put(self, *objects: ApiObject) -> None:
        for each in objects:
            resource = self.cluster.resources.of_type(type(each))
            self.cluster.create(resource, to_document(each))

    def patch(self, cls: type[ApiObject], name: str, patch: JsonObject) -> None:
        namespace = "default" if cls is PersistentVolumeClaim else ""
        resource = self.cluster.resources.of_type(cls)
        self.cluster.patch(resource, namespace, name, patch, "merge")

    def delete(self, cls: type[ApiObject], name: str) -> None:
        namespace = "default" if cls is PersistentVolumeClaim else ""
        self.cluster.delete(self.cluster.resources.of_type(cls), namespace, name)

    def claim(self, name: str = "c") -> PersistentVolumeClaim:
        resource = self.cluster.resources.of_type(PersistentVolumeClaim)
        typed = self.cluster.get(resource, "default", name).typed
        assert isinstance(typed, PersistentVolumeClaim)
        return typed

    def volume(self, name: str = "pv") -> PersistentVolume:
        typed = self.cluster.get(self.cluster.resources.of_type(PersistentVolume), "", name).typed
        assert isinstance(typed, PersistentVolume)
        return typed

    def volume_names(self) -> list[str]:
        page = self.cluster.list(self.cluster.resources.of_type(PersistentVolume))
        return [stored.name for stored in page.items]

    def bound_to(self, name: str = "c") -> str:
        """The volume both sides agree on; empty if there is none."""
        claim = self.claim(name)
        if claim.status.phase != "Bound":
            assert "pv.kubernetes.io/bind-completed" not in claim.metadata.annotations
            return ""
        volume = self.volume(claim.spec.volume_name)
        assert volume.spec.claim_ref is not None
        assert volume.spec.claim_ref.uid == claim.metadata.uid
        assert volume.status.phase == "Bound"
        assert "pv.kubernetes.io/bind-completed" in claim.metadata.annotations
        return volume.metadata.name

    @asynccontextmanager
    async def controlled(self) -> AsyncIterator[None]:
        task = asyncio.create_task(VolumeController(self.cluster).run())
        await settle()
        yield
        await settle()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert asyncio.get_running_loop().time() == 0


async def settle() -> None:
    """Run the other tasks a few times; time does not advance."""
    for _ in range(10):
        await asyncio.sleep(0)


def in_virtual_time(test: Callable[[], Coroutine[None, None, None]]) -> Callable[[], None]:
    def run() -> None:
        run_in_virtual_time(test())

    run.__name__ = test.__name__
    return run


@in_virtual_time
async def test_an_immediate_claim_gets_the_smallest_volume_that_fits() -> None:
    world = World()
    world.put(STATIC, make_claim("c", class_name="static", size="3Gi"))
    world.put(
        *(make_volume(f"v{size}", class_name="static", size=f"{size}Gi") for size in (9, 4, 2))
    )
    async with world.controlled():
        assert world.bound_to() == "v4"
        claim = world.claim()
        assert claim.status.capacity == world.volume("v4").spec.capacity
        assert world.volume("v9").status.phase == "Available"


@in_virtual_time
async def test_a_claim_waits_for_a_volume() -> None:
    world = World()
    async with world.controlled():
        world.put(
            STATIC, make_claim("c", class_name="static"), make_claim("d", class_name="static")
        )
        await settle()
        assert world.bound_to() == ""
        world.put(make_volume("pv", class_name="static", phase=""))
        await settle()
        assert world.bound_to("c") == "pv"
        assert world.bound_to("d") == ""
        world.put(make_volume("pw", class_name="static", phase=""))
        await settle()
        assert world.bound_to("d") == "pw"


@in_virtual_time
async def test_a_claim_without_class_gets_a_volume_without_class() -> None:
    world = World()
    world.put(
        make_claim("c", class_name=""), make_volume("with"), make_volume("without", class_name="")
    )
    async with world.controlled():
        assert world.bound_to() == "without"


@in_virtual_time
async def test_a_claim_may_name_its_volume() -> None:
    world = World()
    world.put(STATIC, make_volume("pv", class_name="static"), make_volume("a", class_name="static"))
    async with world.controlled():
        world.put(make_claim("c", class_name="static", volume="pv", is_bound=False))
        await settle()
        assert world.bound_to() == "pv"


@in_virtual_time
async def test_a_claim_does_not_get_a_volume_of_another() -> None:
    world = World()
    world.put(STATIC, make_volume("pv", class_name="static", claim="default/other"))
    async with world.controlled():
        world.put(make_claim("c", class_name="static", volume="pv", is_bound=False))
        await settle()
        assert world.bound_to() == ""
        # It is reserved for a claim that does not exist yet, so it stays available.
        assert world.volume().status.phase == "Available"
        world.put(make_claim("other", class_name="static"))
        await settle()
        assert world.bound_to("other") == "pv"


@in_virtual_time
async def test_an_immediate_claim_is_provisioned_where_no_volume_fits() -> None:
    world = World()
    async with world.controlled():
        world.put(NOW, make_volume("small", class_name="now", size="1Gi"))
        world.put(make_claim("c", class_name="now", size="5Gi", modes=["ReadWriteMany"]))
        await settle()
        claim = world.claim()
        volume = world.volume(world.bound_to())
        assert volume.metadata.name == f"pvc-{claim.metadata.uid}"
        assert volume.spec.storage_class_name == "now"
        assert volume.spec.capacity["storage"].value() == 5 * 2**30
        assert volume.spec.access_modes == ("ReadWriteMany",)
        assert volume.spec.persistent_volume_reclaim_policy == "Retain"
        assert volume.spec.csi is not None
        assert volume.spec.csi.driver == NOW.provisioner
        assert volume.spec.node_affinity is None


@in_virtual_time
async def test_a_claim_waits_for_its_class() -> None:
    world = World()
    async with world.controlled():
        world.put(make_claim("c", class_name="now"))
        await settle()
        assert world.bound_to() == ""
        world.put(NOW)
        await settle()
        assert world.bound_to() != ""


@in_virtual_time
async def test_a_claim_that_waits_for_its_consumer_is_not_bound() -> None:
    world = World()
    world.put(LATER, make_claim("c", class_name="later"), make_volume("pv", class_name="later"))
    async with world.controlled():
        assert world.bound_to() == ""


@in_virtual_time
async def test_the_volume_a_scheduler_chose_is_bound() -> None:
    world = World()
    world.put(LATER, make_claim("c", class_name="later"), make_volume("pv", class_name="later"))
    async with world.controlled():
        chosen = claimed_volume(world.volume(), world.claim())
        world.patch(PersistentVolume, "pv", {"spec": to_document(chosen.spec)})
        await settle()
        assert world.bound_to() == "pv"


@pytest.mark.parametrize(
    ("objects", "storage_class", "term"),
    [
        pytest.param(
            [make_csi_node("n1", {LATER.provisioner: None}, topology_keys=["rack", "missing"])],
            LATER,
            make_term("rack In 7"),
            id="driver-has-rack-key",
        ),
        pytest.param(
            [make_csi_node("n1", {"other.csi": None}, topology_keys=["rack"])],
            LATER,
            make_term(f"{ZONE} In a"),
            id="other-driver",
        ),
        pytest.param(
            [],
            msgspec.structs.replace(
                LATER,
                allowed_topologies=make_storage_class(
                    topologies=[{"rack": ["7", "8"]}]
                ).allowed_topologies,
            ),
            make_term("rack In 7"),
            id="class-has-rack-key",
        ),
        pytest.param([], LATER, make_term(f"{ZONE} In a"), id="zone-otherwise"),
    ],
)
def test_a_volume_is_made_near_the_selected_node(
    objects: list[CSINode], storage_class: StorageClass, term: object
) -> None:
    async def run() -> None:
        world = World()
        world.put(storage_class, make_claim("c", class_name="later"), *objects)
        world.put(make_node("n1", zone="a", labels={"rack": "7"}))
        async with world.controlled():
            patch: JsonObject = {"metadata": {"annotations": {SELECTED_NODE: "n1"}}}
            world.patch(PersistentVolumeClaim, "c", patch)
            await settle()
            volume = world.volume(world.bound_to())
            assert volume.spec.node_affinity == make_volume_affinity(term)  # pyright: ignore[reportArgumentType] -- a term

    run_in_virtual_time(run())


@in_virtual_time
async def test_the_annotation_of_a_deleted_node_is_removed() -> None:
    world = World()
    world.put(LATER, make_claim("c", class_name="later", selected_node="gone"))
    async with world.controlled():
        assert world.bound_to() == ""
        assert SELECTED_NODE not in world.claim().metadata.annotations


@in_virtual_time
async def test_nothing_is_made_without_a_provisioner() -> None:
    world = World()
    idle = make_storage_class("later", provisioner="kubernetes.io/no-provisioner")
    world.put(idle, make_node("n1"), make_claim("c", class_name="later", selected_node="n1"))
    async with world.controlled():
        assert world.volume_names() == []


@in_virtual_time
async def test_in_tree_provisioners_make_csi_volumes() -> None:
    world = World()
    world.put(make_storage_class("old", provisioner="kubernetes.io/aws-ebs", mode="Immediate"))
    async with world.controlled():
        world.put(make_claim("c", class_name="old"))
        await settle()
        volume = world.volume(world.bound_to())
        assert volume.spec.csi is not None
        assert volume.spec.csi.driver == "ebs.csi.aws.com"


@pytest.mark.parametrize(
    ("policy", "is_kept"),
    [pytest.param("Retain", True, id="retain"), pytest.param("Delete", False, id="delete")],
)
def test_a_volume_outlives_its_claim_or_not(policy: str, is_kept: bool) -> None:
    async def run() -> None:
        world = World()
        world.put(STATIC, make_claim("c", class_name="static"))
        world.put(make_volume("pv", class_name="static", policy=policy))
        async with world.controlled():
            assert world.bound_to() == "pv"
            world.delete(PersistentVolumeClaim, "c")
            await settle()
            assert world.volume_names() == (["pv"] if is_kept else [])
            if is_kept:
                assert world.volume().status.phase == "Released"
                world.put(make_claim("d", class_name="static"))
                await settle()
                assert world.bound_to("d") == ""

    run_in_virtual_time(run())


@in_virtual_time
async def test_a_claim_whose_volume_is_gone_is_lost() -> None:
    world = World()
    world.put(STATIC, make_claim("c", class_name="static"), make_volume("pv", class_name="static"))
    async with world.controlled():
        assert world.bound_to() == "pv"
        world.delete(PersistentVolume, "pv")
        await settle()
        assert world.claim().status.phase == "Lost"


@in_virtual_time
async def test_recorded_bindings_are_completed_not_changed() -> None:
    world = World()
    world.put(make_claim("c", volume="pv", phase="Bound"), make_volume("pv"))
    async with world.controlled():
        assert world.bound_to() == "pv"
        version = world.cluster.version
        world.put(make_node("unrelated"))
        await settle()
        assert world.cluster.version == version + 1


@in_virtual_time
async def test_a_claim_with_a_bad_selector_gets_nothing() -> None:
    world = World()
    bad = make_claim("c", class_name="static", selector=make_selector("k Near v"))
    world.put(STATIC, bad, make_volume("pv", class_name="static"))
    async with world.controlled():
        assert world.bound_to() == ""


@in_virtual_time
async def test_many_claims_get_a_volume_each() -> None:
    world = World()
    async with world.controlled():
        for number in range(20):
            world.put(make_claim(f"c{number}", class_name="static"))
            world.put(make_volume(f"v{number}", class_name="static", phase=""))
        await settle()
        names = {world.bound_to(f"c{number}") for number in range(20)}
        assert names == {f"v{number}" for number in range(20)}


def test_a_volume_needs_no_node_to_be_made() -> None:
    async def run() -> None:
        world = World()
        world.put(make_storage_class("now", mode="Immediate", topologies=[{ZONE: ["b", "c"]}]))
        async with world.controlled():
            world.put(make_claim("c", class_name="now"))
            await settle()
            volume = world.volume(world.bound_to())
            assert volume.spec.node_affinity == make_volume_affinity(make_term(f"{ZONE} In b"))

    run_in_virtual_time(run())
