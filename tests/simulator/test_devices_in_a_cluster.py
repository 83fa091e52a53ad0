"""A scheduler allocates devices, writes the claims, and retries pods when devices become free."""

import asyncio
from collections.abc import Awaitable, Callable

from kubestow.api.decode import to_document
from kubestow.api.device import ResourceClaim
from kubestow.api.meta import ApiObject
from kubestow.api.pod import Pod, PodResourceClaim
from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.resources import PODS, RESOURCE_CLAIMS
from kubestow.config.profile import ProfileConfig
from kubestow.config.scheduler import SchedulerConfig
from kubestow.simulator.embedded import EmbeddedCluster
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time
from kubestow.testing import make_node, make_pod
from kubestow.testing.devices import make_claim, make_device_class, make_request, make_slice

GPU = "example.com/gpu"


class Lab:
    def __init__(self, *objects: ApiObject) -> None:
        self.clock = VirtualClock(asyncio.get_running_loop())
        self.store = MemoryCluster(self.clock)
        self.store.load(
            [
                to_document(each)
                for each in (
                    make_node("n1"),
                    make_node("n2"),
                    make_device_class(extended_resource=GPU),
                    make_slice("d1", node="n1", pool="p1"),
                    make_slice("d2", node="n2", pool="p2"),
                    *objects,
                )
            ]
        )
        config = SchedulerConfig(profiles=(ProfileConfig(),))
        self.cluster = EmbeddedCluster(self.store, config, self.clock)

    async def settle(self) -> None:
        assert await self.cluster.settle(limit_s=60)

    def node_of(self, name: str) -> str:
        pod = self.store.get(PODS, "default", name).typed
        assert isinstance(pod, Pod)
        return pod.spec.node_name

    def claims(self) -> dict[str, ResourceClaim]:
        found = (each.typed for each in self.store.objects_of(RESOURCE_CLAIMS))
        return {each.metadata.name: each for each in found if isinstance(each, ResourceClaim)}


def devices_of(claim: ResourceClaim) -> list[str]:
    allocation = claim.status.allocation
    return [] if allocation is None else [each.device for each in allocation.devices.results]


def claiming(name: str, claim: str) -> Pod:
    return make_pod(name, resource_claims=[PodResourceClaim(name="c", resource_claim_name=claim)])


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def call() -> None:
        await main()

    run_in_virtual_time(call())


def test_pods_get_devices_and_wait_for_those_that_are_taken() -> None:
    async def main() -> None:
        lab = Lab(
            *(make_claim(f"c{n}", make_request()) for n in range(3)),
            *(claiming(f"w{n}", f"c{n}") for n in range(3)),
        )
        async with lab.cluster.running():
            await lab.settle()
            placed = [name for name in ("w0", "w1", "w2") if lab.node_of(name)]
            assert len(placed) == 2
            (waiting,) = {"w0", "w1", "w2"} - set(placed)
            # Its devices become free when a claim is deleted.
            freed = f"c{placed[0][1:]}"
            claim = lab.claims()[freed]
            document = to_document(claim)
            del document["metadata"]["finalizers"]
            lab.store.update(RESOURCE_CLAIMS, document)
            lab.store.delete(RESOURCE_CLAIMS, "default", freed)
            await lab.settle()
            assert not lab.node_of(waiting)  # Deletion is not among the events that wake pods.
            lab.store.create(RESOURCE_CLAIMS, to_document(make_claim("other")))
            lab.store.load([to_document(make_node("n3"))])
            await lab.settle()
            assert lab.node_of(waiting)
            given = [device for each in lab.claims().values() for device in devices_of(each)]
            assert sorted(given) == ["d1", "d2"]

    run(main)


def test_pods_share_a_claim_on_the_node_it_is_bound_to() -> None:
    async def main() -> None:
        lab = Lab(
            make_claim("shared", make_request()), *(claiming(f"w{n}", "shared") for n in range(3))
        )
        async with lab.cluster.running():
            await lab.settle()
            nodes = {lab.node_of(f"w{n}") for n in range(3)}
            assert len(nodes) == 1
            assert nodes != {""}
            claim = lab.claims()["shared"]
            assert {each.name for each in claim.status.reserved_for} == {"w0", "w1", "w2"}

    run(main)


def test_a_pod_waits_for_its_claim() -> None:
    async def main() -> None:
        lab = Lab(claiming("w", "late"))
        async with lab.cluster.running():
            await lab.settle()
            assert not lab.node_of("w")
            lab.store.create(RESOURCE_CLAIMS, to_document(make_claim("late", make_request())))
            await lab.settle()
            assert lab.node_of("w")

    run(main)


def test_extended_resources_come_from_devices() -> None:
    async def main() -> None:
        lab = Lab(*(make_pod(f"w{n}", requests={GPU: 1}) for n in range(2)))
        async with lab.cluster.running():
            await lab.settle()
            assert {lab.node_of("w0"), lab.node_of("w1")} == {"n1", "n2"}
            claims = lab.claims()
            assert sorted(name.rpartition("-")[0] for name in claims) == [
                "w0-extended-resources",
                "w1-extended-resources",
            ]
            pod = lab.store.get(PODS, "default", "w0").typed
            assert isinstance(pod, Pod)
            status = pod.status.extended_resource_claim_status
            assert status is not None
            assert status.resource_claim_name in claims

    run(main)


def test_a_claim_bound_to_a_deleted_node_is_released() -> None:
    async def main() -> None:
        lab = Lab(make_claim("c", make_request()), claiming("first", "c"))
        async with lab.cluster.running():
            await lab.settle()
            node_name = lab.node_of("first")
            document = to_document(lab.claims()["c"])
            document["status"].pop("reservedFor")
            lab.store.update(RESOURCE_CLAIMS, document, subresource="status")
            lab.store.delete(PODS, "default", "first", grace_period_s=0)
            nodes = lab.store.resources.named("nodes")
            lab.store.delete(nodes, "", node_name)
            lab.store.load([to_document(claiming("second", "c"))])
            await lab.settle()
            assert lab.node_of("second") not in ("", node_name)
            assert len(devices_of(lab.claims()["c"])) == 1

    run(main)
