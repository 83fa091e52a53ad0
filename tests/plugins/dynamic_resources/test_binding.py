"""What PreBind, Unreserve and PostFilter write (spec 08 B9, B10, B11; 09 W9 to W13)."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from kubestow.api.decode import to_document
from kubestow.api.device import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceAllocationResult,
    DeviceClass,
    ResourceClaim,
    ResourceSlice,
)
from kubestow.api.meta import Condition
from kubestow.api.node import Node
from kubestow.api.pod import Pod, PodResourceClaim
from kubestow.api.pod_info import PodInfo
from kubestow.apiserver.memory import MemoryCluster
from kubestow.apiserver.memory_client import MemoryClient
from kubestow.cache.objects import ClusterObjects
from kubestow.config.plugin_args import DynamicResourcesArgs
from kubestow.errors import ApiError, ConflictError, PluginError
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.metrics import NoPluginMetrics
from kubestow.framework.status import Status
from kubestow.index.devices import KnownDevices
from kubestow.plugins.dynamic_resources import DynamicResources
from kubestow.plugins.dynamic_resources.attempt import DeviceAttempt
from kubestow.plugins.dynamic_resources.binding_conditions import Readiness, binding_state
from kubestow.plugins.dynamic_resources.writes import FINALIZER
from kubestow.testing import (
    ManualClock,
    RecordedEvents,
    make_handle,
    make_node,
    make_pod,
    make_snapshot,
    run_filter,
)
from kubestow.testing.devices import (
    make_allocation,
    make_claim,
    make_device,
    make_device_class,
    make_request,
    make_slice,
)

GPU = "example.com/gpu"
NOW = datetime.fromtimestamp(1_000_000, UTC)


class Cluster:
    """An API server in memory, and a plugin that gets its claims with `deliver`."""

    def __init__(
        self,
        *claims: ResourceClaim,
        pod: Pod,
        slices: tuple[ResourceSlice, ...] | None = None,
        classes: tuple[DeviceClass, ...] = (),
        node: Node | None = None,
    ) -> None:
        self.clock = ManualClock(1_000_000)
        self.server = MemoryCluster(self.clock, admission=False)
        self.client = FlakyClient(self.server)
        self.objects = ClusterObjects()
        slices = (make_slice("d1", node="n1", pool="p"),) if slices is None else slices
        self.objects.put(make_device_class(), *classes, *slices)
        self.resource = self.server.resources.of_type(ResourceClaim)
        for each in (*claims, pod):
            resource = self.server.resources.of_type(type(each))
            self.server.create(resource, to_document(each))
        self.deliver()
        self.pod = PodInfo(pod)
        self.beside: list[Coroutine[Any, Any, None]] = []
        self.events = RecordedEvents()
        snapshot = make_snapshot([node or make_node("n1")])
        handle = make_handle(
            snapshot,
            objects=self.objects,
            clock=self.clock,
            client=self.client,
            events=self.events,
        )
        handle.spawn = self.beside.append
        handle.metrics = self.counted = Counted()
        self.plugin = DynamicResources(DynamicResourcesArgs(), handle)
        self.state = CycleState()
        assert run_filter(self.plugin, pod, snapshot, state=self.state) == {}

    @property
    def known(self) -> KnownDevices:
        return KnownDevices.of(self.objects, make_handle().feature_gates)

    def deliver(self) -> None:
        """The informer catches up."""
        store = self.objects.resource_claims
        current = {each.key: each.typed for each in self.server.objects_of(self.resource)}
        for claim in store.list():
            if (claim.metadata.namespace, claim.metadata.name) not in current:
                store.remove(claim.metadata.namespace, claim.metadata.name)
        for claim in current.values():
            assert isinstance(claim, ResourceClaim)
            store.put(claim)

    def claim(self, name: str = "c") -> ResourceClaim:
        found = self.server.get(self.resource, "default", name).typed
        assert isinstance(found, ResourceClaim)
        return found

    def claims(self) -> list[ResourceClaim]:
        found = [each.typed for each in self.server.objects_of(self.resource)]
        return [claim for claim in found if isinstance(claim, ResourceClaim)]

    def reserve(self) -> None:
        assert self.plugin.reserve(self.state, self.pod, "n1") is None

    async def pre_bind(self) -> Status | None:
        flight = self.plugin.pre_bind_pre_flight(self.state, self.pod, "n1")
        assert flight.allow_parallel
        assert flight.status is None
        return await self.plugin.pre_bind(self.state, self.pod, "n1")

    async def unreserve(self) -> None:
        self.plugin.unreserve(self.state, self.pod, "n1")
        while self.beside:
            await self.beside.pop(0)


class Counted(NoPluginMetrics):
    """Remembers what the plugin reports."""

    def __init__(self) -> None:
        self.waits: list[tuple[str, str, float]] = []
        self.totals: list[tuple[str, str]] = []
        self.creations: list[bool] = []

    def device_wait_ended(
        self, profile_name: str, driver: str, status: str, duration_s: float
    ) -> None:
        self.waits.append((driver, status, duration_s))

    def device_conditions_ended(self, profile_name: str, driver: str, status: str) -> None:
        self.totals.append((driver, status))

    def claim_created(self, *, is_success: bool) -> None:
        self.creations.append(is_success)


class FlakyClient(MemoryClient):
    """Lets another client write first, or fails, at the next update; fails to create or patch."""

    def __init__(self, server: MemoryCluster) -> None:
        super().__init__(server)
        self.before_update: Callable[[], None] | None = None
        self.error: ApiError | None = None
        self.create_error: ApiError | None = None
        self.pod_patch_error: ApiError | None = None

    async def create(self, obj: Any) -> Any:
        if self.create_error is not None:
            raise self.create_error
        return await super().create(obj)

    async def patch(self, cls: Any, *args: Any, **options: Any) -> Any:
        if cls is Pod and self.pod_patch_error is not None:
            raise self.pod_patch_error
        return await super().patch(cls, *args, **options)

    async def update(self, old: Any, new: Any, *, subresource: Any = "") -> Any:
        if self.error is not None:
            raise self.error
        if self.before_update is not None:
            act, self.before_update = self.before_update, None
            act()
        return await super().update(old, new, subresource=subresource)


def claiming(*names: str) -> Pod:
    return make_pod(
        "web",
        resource_claims=[PodResourceClaim(name=name, resource_claim_name=name) for name in names],
    )


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def call() -> None:
        await main()

    asyncio.run(call())


def consumers(claim: ResourceClaim) -> list[str]:
    return [consumer.name for consumer in claim.status.reserved_for]


# --- PreBind ----------------------------------------------------------------------------------


def test_the_allocation_and_the_reservation_are_written() -> None:
    cluster = Cluster(make_claim("c", make_request()), pod=claiming("c"))

    async def main() -> None:
        cluster.reserve()
        assert await cluster.pre_bind() is None
        claim = cluster.claim()
        allocation = claim.status.allocation
        assert allocation is not None
        assert [result.device for result in allocation.devices.results] == ["d1"]
        assert allocation.allocation_timestamp == NOW
        assert claim.metadata.finalizers == (FINALIZER,)
        assert consumers(claim) == ["web"]
        assert to_document(claim)["status"]["reservedFor"] == [
            {"resource": "pods", "name": "web", "uid": cluster.pod.uid}
        ]
        known = cluster.known.claims
        assert known.get("default", "c") == claim
        assert known.in_flight(claim.metadata.uid) is None
        assert ("d.com", "p", "d1") in known.allocated.dedicated

    run(main)


def test_an_allocated_claim_is_only_reserved() -> None:
    cluster = Cluster(make_claim("c", make_request()), pod=claiming("c"))

    async def main() -> None:
        cluster.reserve()
        await cluster.pre_bind()
        cluster.deliver()
        second = make_pod(
            "db", resource_claims=[PodResourceClaim(name="c", resource_claim_name="c")]
        )
        state, pod = CycleState(), PodInfo(second)
        snapshot = make_snapshot([make_node("n1")])
        assert run_filter(cluster.plugin, second, snapshot, state=state) == {}
        assert cluster.plugin.reserve(state, pod, "n1") is None
        before = cluster.claim().metadata.resource_version
        assert await cluster.plugin.pre_bind(state, pod, "n1") is None
        assert consumers(cluster.claim()) == ["web", "db"]
        assert cluster.claim().metadata.resource_version != before

    run(main)


def test_a_claim_reserved_already_is_left_alone() -> None:
    pod = claiming("c")
    claim = make_claim("c", make_request(), reserved_for=[pod])
    cluster = Cluster(claim, pod=pod)

    async def main() -> None:
        cluster.reserve()
        before = cluster.claim()
        assert await cluster.pre_bind() is None
        assert cluster.claim() == before

    run(main)


def test_after_a_conflict_the_fresh_claim_is_used() -> None:
    cluster = Cluster(make_claim("c", make_request()), pod=claiming("c"))

    def somebody_labels_it() -> None:
        claim = cluster.claim()
        metadata = msgspec.structs.replace(claim.metadata, labels={"a": "b"})
        document = to_document(msgspec.structs.replace(claim, metadata=metadata))
        cluster.server.update(cluster.resource, document)

    async def main() -> None:
        cluster.reserve()
        cluster.client.before_update = somebody_labels_it
        assert await cluster.pre_bind() is None
        assert cluster.claim().metadata.labels == {"a": "b"}
        assert consumers(cluster.claim()) == ["web"]

    run(main)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        pytest.param("delete", "claim default/c got deleted in the meantime", id="deleted"),
        pytest.param(
            "allocate", "claim default/c got allocated elsewhere in the meantime", id="allocated"
        ),
    ],
)
def test_what_happened_in_the_meantime_fails(change: str, text: str) -> None:
    cluster = Cluster(make_claim("c", make_request(), finalizers=["x"]), pod=claiming("c"))

    def act() -> None:
        if change == "delete":
            cluster.server.delete(cluster.resource, "default", "c")
            return
        document = to_document(cluster.claim())
        document["status"] = {"allocation": {}}
        cluster.server.update(cluster.resource, document, subresource="status")

    async def main() -> None:
        cluster.reserve()
        cluster.client.before_update = act
        with pytest.raises(PluginError, match=f"^{text}$"):
            await cluster.pre_bind()

    run(main)


@pytest.mark.parametrize(
    ("finalizers", "text"),
    [
        ([], "add finalizer to claim default/c: no"),
        ([FINALIZER], "add allocation and reservation to claim default/c: no"),
    ],
)
def test_failed_writes_report_what_was_attempted(finalizers: list[str], text: str) -> None:
    cluster = Cluster(make_claim("c", make_request(), finalizers=finalizers), pod=claiming("c"))

    async def main() -> None:
        cluster.reserve()
        cluster.client.error = ApiError("no")
        with pytest.raises(PluginError, match=f"^{text}$"):
            await cluster.pre_bind()

    run(main)


def test_endless_conflicts_end() -> None:
    cluster = Cluster(make_claim("c", make_request()), pod=claiming("c"))

    async def main() -> None:
        cluster.reserve()
        cluster.client.error = ConflictError("changed")
        with pytest.raises(PluginError, match=r"^add finalizer to claim default/c: changed$"):
            await cluster.pre_bind()

    run(main)


def test_pods_without_claims_have_nothing_to_bind() -> None:
    cluster = Cluster(pod=make_pod("web"))
    flight = cluster.plugin.pre_bind_pre_flight(cluster.state, cluster.pod, "n1")
    assert flight.status == Status.skip()


# --- Unreserve --------------------------------------------------------------------------------


def test_unreserve_before_anything_was_written_frees_the_devices() -> None:
    cluster = Cluster(make_claim("c", make_request()), pod=claiming("c"))

    async def main() -> None:
        cluster.reserve()
        assert ("d.com", "p", "d1") in cluster.known.claims.allocated.dedicated
        await cluster.unreserve()
        assert not cluster.known.claims.allocated.is_in_use(("d.com", "p", "d1"))
        assert cluster.claim().status.allocation is None

    run(main)


def test_unreserve_after_the_write_drops_the_reservation_only() -> None:
    cluster = Cluster(make_claim("c", make_request()), pod=claiming("c"))

    async def main() -> None:
        cluster.reserve()
        await cluster.pre_bind()
        await cluster.unreserve()
        assert consumers(cluster.claim()) == []
        assert cluster.claim().status.allocation is not None
        assert ("d.com", "p", "d1") in cluster.known.claims.allocated.dedicated

    run(main)


# --- Extended resources -----------------------------------------------------------------------

SERVES_GPU = make_device_class("gpu", extended_resource=GPU)


def test_the_special_claim_is_made_bound_and_mapped() -> None:
    cluster = Cluster(pod=make_pod("web", requests={GPU: 1}), classes=(SERVES_GPU,))

    async def main() -> None:
        cluster.reserve()
        assert await cluster.pre_bind() is None
        (claim,) = cluster.claims()
        assert claim.metadata.name.startswith("web-extended-resources-")
        assert cluster.counted.creations == [True]
        assert claim.metadata.annotations == {
            "resource.kubernetes.io/extended-resource-claim": "true"
        }
        assert [request.name for request in claim.spec.devices.requests] == [
            "container-0-request-0"
        ]
        assert consumers(claim) == ["web"]
        pods = cluster.server.resources.of_type(Pod)
        document = cluster.server.get(pods, "default", "web").document
        assert document["status"]["extendedResourceClaimStatus"] == {
            "requestMappings": [
                {
                    "containerName": "c",
                    "resourceName": GPU,
                    "requestName": "container-0-request-0",
                }
            ],
            "resourceClaimName": claim.metadata.name,
        }
        assert cluster.known.claims.get("default", claim.metadata.name) is not None
        cluster.deliver()
        assert ("d.com", "p", "d1") in cluster.known.claims.allocated.dedicated

    run(main)


def test_a_special_claim_without_mappings_fails_and_is_deleted() -> None:
    pod = make_pod(
        "web",
        requests={GPU: 1},
        resource_claims=[PodResourceClaim(name="c", resource_claim_name="c")],
    )
    cluster = Cluster(
        make_claim("c", make_request()),
        pod=pod,
        classes=(SERVES_GPU,),
        node=make_node("n1", allocatable={GPU: 1}),
    )

    async def main() -> None:
        cluster.reserve()
        with pytest.raises(PluginError) as caught:
            await cluster.pre_bind()
        assert str(caught.value) == (
            "nil or empty request mappings, no update of pod default/web "
            "ExtendedResourceClaimStatus"
        )
        assert len(cluster.claims()) == 2
        await cluster.unreserve()
        (claim,) = cluster.claims()
        assert claim.metadata.name == "c"
        assert claim.status.allocation is not None
        assert consumers(claim) == []

    run(main)


@pytest.mark.parametrize(
    ("failing", "text"),
    [
        ("create_error", "create claim for extended resources default/: no"),
        ("pod_patch_error", "update pod default/web ExtendedResourceClaimStatus: no"),
    ],
)
def test_failed_writes_for_the_special_claim(failing: str, text: str) -> None:
    cluster = Cluster(pod=make_pod("web", requests={GPU: 1}), classes=(SERVES_GPU,))

    async def main() -> None:
        cluster.reserve()
        setattr(cluster.client, failing, ApiError("no"))
        with pytest.raises(PluginError, match=f"^{text}$"):
            await cluster.pre_bind()
        await cluster.unreserve()
        assert cluster.claims() == []

    run(main)


def test_the_special_claim_is_deleted_though_its_finalizer_was_added_meanwhile() -> None:
    cluster = Cluster(pod=make_pod("web", requests={GPU: 1}), classes=(SERVES_GPU,))

    class FailsSecondUpdate(FlakyClient):
        async def update(self, old: Any, new: Any, *, subresource: Any = "") -> Any:
            if subresource == "status":
                raise ApiError("no")
            return await super().update(old, new, subresource=subresource)

    cluster.client.__class__ = FailsSecondUpdate

    async def main() -> None:
        cluster.reserve()
        with pytest.raises(PluginError, match="add allocation and reservation to claim"):
            await cluster.pre_bind()
        (claim,) = cluster.claims()
        assert claim.metadata.finalizers == (FINALIZER,)
        await cluster.unreserve()
        assert cluster.claims() == []

    run(main)


# --- Binding conditions (B10) -----------------------------------------------------------------

SLOW = make_slice(
    make_device("d1", binding_conditions=["Ready"], binding_failure_conditions=["Broken"]),
    node="n1",
    pool="p",
)


class Waiting(Cluster):
    """A cluster whose one device has to be prepared; time passes only during waits."""

    def __init__(self, answers: dict[float, Condition]) -> None:
        super().__init__(make_claim("c", make_request()), pod=claiming("c"), slices=(SLOW,))
        self._answers = answers
        self.plugin._binder._sleep = self._sleep  # pyright: ignore[reportPrivateUsage]
        self.waited_s = 0.0

    async def _sleep(self, seconds: float) -> None:
        self.waited_s += seconds
        self.clock.advance_s(seconds)
        condition = self._answers.get(self.waited_s)
        if condition is not None:
            self._report(condition)

    def _report(self, condition: Condition) -> None:
        claim = self.claim()
        device = AllocatedDeviceStatus(
            driver="d.com", pool="p", device="d1", conditions=(condition,)
        )
        status = msgspec.structs.replace(claim.status, devices=(device,))
        changed = msgspec.structs.replace(claim, status=status)
        self.server.update(self.resource, to_document(changed), subresource="status")
        self.deliver()


def test_binding_waits_until_devices_are_ready() -> None:
    cluster = Waiting({10.0: Condition(type="Ready", status="True")})

    async def main() -> None:
        cluster.reserve()
        assert await cluster.pre_bind() is None
        assert cluster.waited_s == 10
        assert cluster.counted.waits == [("d.com", "success", 10)]
        (event,) = cluster.events.events
        assert (event.type, event.reason, event.action, event.note) == (
            "Normal",
            "BindingConditionsPending",
            "Scheduling",
            "waiting for binding conditions for device on node n1",
        )

    run(main)


def test_a_device_that_fails_ends_the_wait() -> None:
    broken = Condition(type="Broken", status="True", reason="Burnt", message='smoke\tand "fire"')
    cluster = Waiting({5.0: broken})

    async def main() -> None:
        cluster.reserve()
        with pytest.raises(PluginError) as caught:
            await cluster.pre_bind()
        assert str(caught.value) == (
            'device binding failed: claim=c, reason=Burnt, message="smoke\\tand \\"fire\\""'
        )
        assert cluster.counted.waits == [("d.com", "failure", 5)]

    run(main)


def test_the_wait_ends_when_its_time_is_over() -> None:
    cluster = Waiting({})

    async def main() -> None:
        cluster.reserve()
        with pytest.raises(PluginError) as caught:
            await cluster.pre_bind()
        assert str(caught.value) == "device binding timeout: context deadline exceeded"
        assert cluster.waited_s == 600
        assert cluster.counted.waits == [("d.com", "timeout", 600)]

    run(main)


def test_devices_that_are_ready_at_once_are_not_waited_for() -> None:
    cluster = Cluster(make_claim("c", make_request()), pod=claiming("c"))

    async def main() -> None:
        cluster.reserve()
        await cluster.pre_bind()
        assert cluster.events.events == []
        assert cluster.counted.waits == []

    run(main)


READY = Condition(type="Ready", status="True")
BROKEN = Condition(type="Broken", status="True", reason="Burnt", message="smoke")


def prepared(name: str, *devices: tuple[str, Condition | None]) -> ResourceClaim:
    """A claim to devices that have to be prepared, with what is reported on each of them."""
    allocation = make_allocation(*(f"p/{device}" for device, _ in devices))
    results = tuple(
        msgspec.structs.replace(
            result, binding_conditions=("Ready",), binding_failure_conditions=("Broken",)
        )
        for result in allocation.devices.results
    )
    claim = make_claim(
        name, allocation=AllocationResult(devices=DeviceAllocationResult(results=results))
    )
    reported = tuple(
        AllocatedDeviceStatus(driver="d.com", pool="p", device=device, conditions=(condition,))
        for device, condition in devices
        if condition is not None
    )
    status = msgspec.structs.replace(claim.status, devices=reported)
    return msgspec.structs.replace(claim, status=status)


@pytest.mark.parametrize(
    ("devices", "readiness"),
    [
        pytest.param([("a", READY), ("b", READY)], Readiness.READY, id="all"),
        pytest.param([("a", READY), ("b", BROKEN)], Readiness.FAILED, id="the-second-failed"),
        pytest.param([("a", None), ("b", BROKEN)], Readiness.PENDING, id="B15-no-status-first"),
        pytest.param(
            [("a", Condition(type="Ready", status="False")), ("b", BROKEN)],
            Readiness.PENDING,
            id="B15-not-ready-first",
        ),
        pytest.param([("a", BROKEN), ("b", None)], Readiness.FAILED, id="failed-first"),
    ],
)
def test_the_first_device_that_is_not_ready_decides(
    devices: list[tuple[str, Condition | None]], readiness: Readiness
) -> None:
    assert binding_state(prepared("c", *devices)).readiness is readiness


def test_a_claim_without_allocation_is_not_ready() -> None:
    assert binding_state(make_claim("c")).readiness is Readiness.PENDING


def test_the_first_claim_that_is_not_ready_decides() -> None:
    """The failure of the second claim is not seen while the first is waited for."""
    pod = make_pod("web")
    reserved = [
        msgspec.structs.replace(
            claim,
            status=msgspec.structs.replace(
                claim.status, reserved_for=make_claim(reserved_for=[pod]).status.reserved_for
            ),
        )
        for claim in (prepared("c", ("a", None), ("x", None)), prepared("e", ("b", BROKEN)))
    ]
    cluster = Cluster(*reserved, pod=pod)
    attempt = DeviceAttempt()
    attempt.claims = reserved

    async def main() -> None:
        binder = cluster.plugin._binder  # pyright: ignore[reportPrivateUsage]

        async def sleep(seconds: float) -> None:
            cluster.clock.advance_s(seconds)

        binder._sleep = sleep  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(PluginError, match="context deadline exceeded"):
            await binder.bind(attempt, pod, "n1")
        assert cluster.counted.waits == [("d.com", "timeout", 600)] * 3
        assert cluster.counted.totals == [("d.com", "timeout")] * 3

    run(main)
