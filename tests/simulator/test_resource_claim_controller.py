"""Claims are made from templates, and taken back when their pods end (spec 08 B2)."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from kubestow.api.decode import to_document
from kubestow.api.device import ResourceClaim
from kubestow.api.meta import JsonObject
from kubestow.api.pod import Pod
from kubestow.api.pod_group import PodGroup
from kubestow.apiserver.memory import MemoryCluster
from kubestow.cluster.resources import (
    POD_GROUPS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
)
from kubestow.config.feature_gates import DEFAULT_GATES, FeatureGates
from kubestow.config.profile import ProfileConfig
from kubestow.config.scheduler import SchedulerConfig
from kubestow.errors import ApiError
from kubestow.simulator.resource_claim_controller import ResourceClaimController
from kubestow.simulator.results import RunResult
from kubestow.simulator.scenario.run import Simulation
from kubestow.simulator.scenario.stages import placing
from kubestow.simulator.simulation import SimulationResult, place
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time
from kubestow.testing import make_node
from kubestow.testing.devices import make_allocation, make_device_class, make_slice

FINALIZER = "resource.kubernetes.io/delete-protection"
TEMPLATE: JsonObject = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "one", "namespace": "default"},
    "spec": {
        "metadata": {"labels": {"app": "web"}, "annotations": {"note": "x"}},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "any"}}]}},
    },
}


def pod_document(name: str, *entries: JsonObject, **more: Any) -> JsonObject:
    entries = entries or ({"name": "gpu", "resourceClaimTemplateName": "one"},)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c"}], "resourceClaims": list(entries), **more},
    }


class Lab:
    """A cluster with the controller, and nothing else."""

    def __init__(self, gates: FeatureGates = DEFAULT_GATES) -> None:
        self.cluster = MemoryCluster(VirtualClock(asyncio.get_running_loop()), gates=gates)
        self.task = asyncio.create_task(ResourceClaimController(self.cluster).run())

    async def settle(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    def claims(self) -> list[ResourceClaim]:
        found = [stored.typed for stored in self.cluster.objects_of(RESOURCE_CLAIMS)]
        return [claim for claim in found if isinstance(claim, ResourceClaim)]

    def claim(self) -> ResourceClaim:
        (claim,) = self.claims()
        return claim

    def pod(self, name: str = "web") -> Pod:
        pod = self.cluster.get(PODS, "default", name).typed
        assert isinstance(pod, Pod)
        return pod

    def allocate(self, claim: ResourceClaim, *pods: Pod) -> None:
        """What the scheduler writes."""
        name = claim.metadata.name
        patch: JsonObject = {"metadata": {"finalizers": [FINALIZER]}}
        self.cluster.patch(RESOURCE_CLAIMS, "default", name, patch, "merge")
        consumers = [
            {"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid} for pod in pods
        ]
        patch = {
            "status": {
                "allocation": to_document(make_allocation("p/d1")),
                "reservedFor": consumers,
                "devices": [{"driver": "d.com", "pool": "p", "device": "d1"}],
            }
        }
        self.cluster.patch(RESOURCE_CLAIMS, "default", name, patch, "merge", subresource="status")


def run(main: Callable[[Lab], Awaitable[None]], gates: FeatureGates = DEFAULT_GATES) -> None:
    async def call() -> None:
        lab = Lab(gates)
        try:
            await main(lab)
        finally:
            lab.task.cancel()
            with suppress(asyncio.CancelledError):
                await lab.task

    run_in_virtual_time(call())


def test_a_claim_is_made_from_the_template() -> None:
    async def main(lab: Lab) -> None:
        lab.cluster.create(RESOURCE_CLAIM_TEMPLATES, TEMPLATE)
        lab.cluster.create(PODS, pod_document("web"))
        await lab.settle()
        claim, pod = lab.claim(), lab.pod()
        assert claim.metadata.name.startswith("web-gpu-")
        assert claim.metadata.labels == {"app": "web"}
        assert claim.metadata.annotations == {
            "note": "x",
            "resource.kubernetes.io/pod-claim-name": "gpu",
        }
        (owner,) = claim.metadata.owner_references
        assert (owner.kind, owner.name, owner.uid) == ("Pod", "web", pod.metadata.uid)
        assert owner.controller
        (request,) = claim.spec.devices.requests
        assert request.exactly is not None
        assert (request.exactly.allocation_mode, request.exactly.count) == ("ExactCount", 1)
        (status,) = pod.status.resource_claim_statuses
        assert (status.name, status.resource_claim_name) == ("gpu", claim.metadata.name)

    run(main)


def test_pods_wait_for_their_template() -> None:
    async def main(lab: Lab) -> None:
        lab.cluster.create(PODS, pod_document("web"))
        await lab.settle()
        assert lab.claims() == []
        lab.cluster.create(RESOURCE_CLAIM_TEMPLATES, TEMPLATE)
        await lab.settle()
        assert lab.claim().metadata.name.startswith("web-gpu-")

    run(main)


def test_a_claim_that_was_deleted_is_made_again() -> None:
    async def main(lab: Lab) -> None:
        lab.cluster.create(RESOURCE_CLAIM_TEMPLATES, TEMPLATE)
        lab.cluster.create(PODS, pod_document("web"))
        await lab.settle()
        first = lab.claim().metadata.name
        lab.cluster.delete(RESOURCE_CLAIMS, "default", first)
        await lab.settle()
        second = lab.claim().metadata.name
        assert second != first
        (status,) = lab.pod().status.resource_claim_statuses
        assert status.resource_claim_name == second

    run(main)


def test_long_names_are_cut_in_proportion() -> None:
    async def main(lab: Lab) -> None:
        lab.cluster.create(RESOURCE_CLAIM_TEMPLATES, TEMPLATE)
        entry = {"name": "b" * 30, "resourceClaimTemplateName": "one"}
        lab.cluster.create(PODS, pod_document("a" * 60, entry))
        await lab.settle()
        base = lab.claim().metadata.name[:-5]
        assert base == "a" * 37 + "-" + "b" * 18

    run(main)


def test_claims_of_deleted_pods_are_deleted() -> None:
    async def main(lab: Lab) -> None:
        lab.cluster.create(RESOURCE_CLAIM_TEMPLATES, TEMPLATE)
        lab.cluster.create(PODS, pod_document("web", nodeName="n1"))
        await lab.settle()
        lab.allocate(lab.claim(), lab.pod())
        await lab.settle()
        assert lab.claim().status.allocation is not None
        lab.cluster.delete(PODS, "default", "web", grace_period_s=0)
        await lab.settle()
        assert lab.claims() == []

    run(main)


def test_claims_of_finished_pods_are_deleted() -> None:
    async def main(lab: Lab) -> None:
        lab.cluster.create(RESOURCE_CLAIM_TEMPLATES, TEMPLATE)
        lab.cluster.create(PODS, pod_document("web", nodeName="n1"))
        await lab.settle()
        lab.allocate(lab.claim(), lab.pod())
        patch: JsonObject = {"status": {"phase": "Succeeded"}}
        lab.cluster.patch(PODS, "default", "web", patch, "merge", subresource="status")
        await lab.settle()
        assert lab.claims() == []

    run(main)


SHARED: JsonObject = {
    "metadata": {"name": "shared", "namespace": "default"},
    "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "any"}}]}},
}


def test_a_named_claim_is_deallocated_when_its_last_pod_has_ended() -> None:
    async def main(lab: Lab) -> None:
        entry = {"name": "gpu", "resourceClaimName": "shared"}
        lab.cluster.create(RESOURCE_CLAIMS, SHARED)
        for name in ("a", "b"):
            lab.cluster.create(PODS, pod_document(name, entry, nodeName="n1"))
        lab.allocate(lab.claim(), lab.pod("a"), lab.pod("b"))
        await lab.settle()
        patch: JsonObject = {"status": {"phase": "Failed"}}
        lab.cluster.patch(PODS, "default", "a", patch, "merge", subresource="status")
        await lab.settle()
        claim = lab.claim()
        assert [each.name for each in claim.status.reserved_for] == ["b"]
        assert claim.status.allocation is not None
        lab.cluster.delete(PODS, "default", "b", grace_period_s=0)
        await lab.settle()
        claim = lab.claim()
        assert claim.status.allocation is None
        assert claim.status.reserved_for == ()
        assert claim.status.devices == ()
        assert claim.metadata.finalizers == ()

    run(main)


def test_a_claim_that_no_pod_ever_used_stays_allocated() -> None:
    async def main(lab: Lab) -> None:
        lab.cluster.create(RESOURCE_CLAIMS, SHARED)
        lab.allocate(lab.claim())
        await lab.settle()
        assert lab.claim().status.allocation is not None
        lab.cluster.delete(RESOURCE_CLAIMS, "default", "shared")
        await lab.settle()
        assert lab.claims() == []

    run(main)


def test_a_claim_is_reserved_for_a_pod_that_was_placed_by_hand() -> None:
    async def main(lab: Lab) -> None:
        entry = {"name": "gpu", "resourceClaimName": "shared"}
        lab.cluster.create(RESOURCE_CLAIMS, SHARED)
        lab.allocate(lab.claim())
        lab.cluster.create(PODS, pod_document("web", entry, nodeName="n1"))
        await lab.settle()
        assert [each.uid for each in lab.claim().status.reserved_for] == [lab.pod().metadata.uid]

    run(main)


def test_a_fault_in_one_pod_does_not_end_the_controller() -> None:
    async def main(lab: Lab) -> None:
        create = lab.cluster.create

        def refuse_bad(resource: Any, document: JsonObject, **options: Any) -> Any:
            if document["metadata"].get("generateName", "").startswith("bad-"):
                raise ApiError("no")
            return create(resource, document, **options)

        lab.cluster.create = refuse_bad
        lab.cluster.create(RESOURCE_CLAIM_TEMPLATES, TEMPLATE)
        for name in ("bad", "web"):
            lab.cluster.create(PODS, pod_document(name))
        await lab.settle()
        assert lab.claim().metadata.name.startswith("web-gpu-")
        lab.cluster.create = create
        await asyncio.sleep(2)
        assert {each.metadata.name[:8] for each in lab.claims()} == {"web-gpu-", "bad-gpu-"}

    run(main)


# --- In a simulation ---------------------------------------------------------------------------


def simulated(*documents: JsonObject) -> SimulationResult:
    objects = (make_node("n1"), make_device_class(), make_slice("d1", "d2", node="n1", pool="p"))
    config = SchedulerConfig(profiles=(ProfileConfig(),))
    return place([*map(to_document, objects), *documents], config)


def test_a_simulation_makes_claims_with_defaults() -> None:
    result = simulated(TEMPLATE, *(pod_document(name) for name in ("a", "b", "c")))
    outcomes = {pod.name: pod.outcome for pod in result.pods}
    assert sorted(outcomes.values()) == ["Pending", "Scheduled", "Scheduled"]
    assert result.has_settled


def test_claims_read_from_another_cluster_stay_with_their_pods() -> None:
    """Their pods have other UIDs here."""
    running = pod_document("old", {"name": "gpu", "resourceClaimName": "shared"}, nodeName="n1")
    running["metadata"]["uid"] = "uid-there"
    claim: JsonObject = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        **SHARED,
        "status": {
            "allocation": to_document(make_allocation("p/d1")),
            "reservedFor": [{"resource": "pods", "name": "old", "uid": "uid-there"}],
        },
    }
    claim["metadata"] = {**claim["metadata"], "finalizers": [FINALIZER]}
    result = simulated(TEMPLATE, running, claim, pod_document("a"), pod_document("b"))
    assert len(result.scheduled) == 1
    assert len(result.pending) == 1


# --- groups ------------------------------------------------------------------------------------

WITH_GROUPS = FeatureGates(
    dict.fromkeys(("GenericWorkload", "GangScheduling", "DRAWorkloadResourceClaims"), True)
)
ENTRY: JsonObject = {"name": "gpu", "resourceClaimTemplateName": "one"}


def group_document(name: str = "g", min_count: int = 2) -> JsonObject:
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": min_count}},
            "resourceClaims": [ENTRY],
        },
    }


def member_document(name: str, *entries: JsonObject) -> JsonObject:
    return pod_document(name, *entries, schedulingGroup={"podGroupName": "g"})


def group_of(lab: Lab) -> PodGroup:
    group = lab.cluster.get(POD_GROUPS, "default", "g").typed
    assert isinstance(group, PodGroup)
    return group


def claim_names(owner: Pod | PodGroup) -> dict[str, str | None]:
    return {each.name: each.resource_claim_name for each in owner.status.resource_claim_statuses}


def test_a_group_has_one_claim_for_all_its_members() -> None:
    async def main(lab: Lab) -> None:
        lab.cluster.create(RESOURCE_CLAIM_TEMPLATES, TEMPLATE)
        lab.cluster.create(POD_GROUPS, group_document())
        lab.cluster.create(PODS, member_document("a"))
        lab.cluster.create(PODS, member_document("b"))
        await lab.settle()
        claim, group = lab.claim(), group_of(lab)
        assert claim.metadata.name.startswith("g-gpu-")
        (owner,) = claim.metadata.owner_references
        assert (owner.api_version, owner.kind) == ("scheduling.k8s.io/v1alpha2", "PodGroup")
        assert (owner.name, owner.uid, owner.controller) == ("g", group.metadata.uid, True)
        named = {"gpu": claim.metadata.name}
        assert claim_names(group) == named
        assert [claim_names(lab.pod(name)) for name in "ab"] == [named, named]

    run(main, WITH_GROUPS)


def test_a_claim_that_only_the_pod_names_is_the_pods_own() -> None:
    other: JsonObject = {"name": "disk", "resourceClaimTemplateName": "one"}

    async def main(lab: Lab) -> None:
        lab.cluster.create(RESOURCE_CLAIM_TEMPLATES, TEMPLATE)
        lab.cluster.create(PODS, member_document("a", ENTRY, other))
        await lab.settle()
        assert lab.claims() == [], "the group does not exist yet"
        lab.cluster.create(POD_GROUPS, group_document())
        await lab.settle()
        kinds = {
            claim.metadata.annotations["resource.kubernetes.io/pod-claim-name"]: owner.kind
            for claim in lab.claims()
            for owner in claim.metadata.owner_references
        }
        assert kinds == {"gpu": "PodGroup", "disk": "Pod"}

    run(main, WITH_GROUPS)


def test_groups_wait_for_their_template_and_lost_claims_are_made_again() -> None:
    async def main(lab: Lab) -> None:
        lab.cluster.create(POD_GROUPS, group_document())
        lab.cluster.create(PODS, member_document("a"))
        await lab.settle()
        assert lab.claims() == []
        lab.cluster.create(RESOURCE_CLAIM_TEMPLATES, TEMPLATE)
        await lab.settle()
        first = lab.claim().metadata.name
        lab.cluster.delete(RESOURCE_CLAIMS, "default", first)
        await lab.settle()
        again = lab.claim().metadata.name
        assert again != first
        assert claim_names(lab.pod("a")) == claim_names(group_of(lab)) == {"gpu": again}

    run(main, WITH_GROUPS)


def test_the_claim_of_a_group_goes_with_the_group() -> None:
    async def main(lab: Lab) -> None:
        lab.cluster.create(RESOURCE_CLAIM_TEMPLATES, TEMPLATE)
        lab.cluster.create(POD_GROUPS, group_document())
        await lab.settle()
        claim, group = lab.claim(), group_of(lab)
        lab.allocate(claim)
        consumer = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g"}
        patch: JsonObject = {"status": {"reservedFor": [{**consumer, "uid": group.metadata.uid}]}}
        name = claim.metadata.name
        lab.cluster.patch(RESOURCE_CLAIMS, "default", name, patch, "merge", subresource="status")
        await lab.settle()
        assert lab.claim().status.reserved_for, "the group may still have members"
        lab.cluster.delete(POD_GROUPS, "default", "g")
        finalizers: JsonObject = {"metadata": {"finalizers": None}}
        with suppress(ApiError):  # Without protection it is gone already.
            lab.cluster.patch(POD_GROUPS, "default", "g", finalizers, "merge")
        await lab.settle()
        assert lab.claims() == []

    run(main, WITH_GROUPS)


def test_without_the_gate_every_member_has_a_claim_of_its_own() -> None:
    async def main(lab: Lab) -> None:
        lab.cluster.create(RESOURCE_CLAIM_TEMPLATES, TEMPLATE)
        lab.cluster.create(POD_GROUPS, group_document())
        lab.cluster.create(PODS, member_document("a"))
        lab.cluster.create(PODS, member_document("b"))
        await lab.settle()
        owners = [owner.kind for claim in lab.claims() for owner in claim.metadata.owner_references]
        assert owners == ["Pod", "Pod"]

    run(main, FeatureGates({"GenericWorkload": True, "GangScheduling": True}))


def test_a_gang_that_shares_a_device_is_placed_in_a_simulation() -> None:
    documents = [
        *(
            {**to_document(each), "apiVersion": version, "kind": type(each).__name__}
            for each, version in (
                (make_node("n1", cpu="8"), "v1"),
                (make_node("n2", cpu="8"), "v1"),
                (make_device_class("any"), "resource.k8s.io/v1"),
                (make_slice("s", "d1", node="n2"), "resource.k8s.io/v1"),
            )
        ),
        TEMPLATE,
        group_document(),
        member_document("a"),
        member_document("b"),
    ]

    async def simulate() -> tuple[RunResult, list[Any]]:
        run = Simulation(placing(documents), SchedulerConfig(), gates=WITH_GROUPS)
        result = await run.run()
        claims = run.cluster.store.objects_of(RESOURCE_CLAIMS)
        return result, [claim.typed for claim in claims]

    result, claims = run_in_virtual_time(simulate())
    assert {pod.name: pod.node for pod in result.pods} == {"a": "n2", "b": "n2"}
    (claim,) = claims
    (consumer,) = claim.status.reserved_for
    assert (consumer.resource, consumer.name) == ("podgroups", "g")
