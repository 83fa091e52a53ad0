"""Devices in recorded decisions: possible allocations, chosen ones, and the written claims."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from kubestow.api.decode import convert, to_document
from kubestow.api.device import AllocationResult, DeviceClaim, ResourceClaim
from kubestow.api.meta import JsonObject, object_ref
from kubestow.api.pod import ContainerExtendedResourceRequest
from kubestow.api.pod_info import PodInfo
from kubestow.api.quantity import parse_quantity
from kubestow.cluster.documents import is_list, is_object
from kubestow.engine.decision import Decision
from kubestow.framework.runner import run_unreserve
from kubestow.framework.status import Status
from kubestow.index.devices import KnownDevices
from kubestow.plugins.dynamic_resources import DynamicResources
from kubestow.plugins.dynamic_resources.attempt import DeviceAttempt
from kubestow.plugins.dynamic_resources.binding import as_allocated
from kubestow.plugins.dynamic_resources.extended_resources import is_in_memory, with_requests
from kubestow.plugins.dynamic_resources.plugin import deallocatable
from kubestow.simulator.conformance.compare import as_json
from kubestow.simulator.conformance.report import Comparer
from kubestow.simulator.conformance.world import World
from kubestow.simulator.recorded_parts import DEVICES

EXTENDED_RESOURCES: Final = "<extended-resources>"
_GENERATED: Final = "-extended-resources-"
FAMILY: Final = "dra"


def compare_devices(
    comparer: Comparer, expected: JsonObject, world: World, decision: Decision
) -> None:
    """What is known before the pod is placed: PreEnqueue, and the allocations on each node."""
    plugin = _plugin(world, decision)
    if plugin is None:
        return
    gate = plugin.pre_enqueue(decision.pod.pod)
    got_gate = None if gate is None else as_json(gate.with_plugin(plugin.name))
    comparer.equal(DEVICES, "preEnqueue", expected.get("preEnqueue"), got_gate)
    attempt = _attempt(decision)
    for node_name, claims in expected.get("allocations", {}).items():
        got = _allocations(attempt, node_name) if attempt is not None else None
        comparer.equal(DEVICES, f"allocations {node_name}", claims, got)


def compare_given_up(
    comparer: Comparer, expected: JsonObject, world: World, decision: Decision
) -> None:
    """Compare the claims that PostFilter could give up; then give up the recorded one.

    Upstream picks one at random, so ours has to be one of those recorded.
    """
    recorded: JsonObject = expected.get("postFilter") or {}
    attempt = _attempt(decision)
    candidates: list[str] = []
    deleted: str | None = None
    if attempt is not None and decision.post_filter_status is not None:
        found = deallocatable(attempt, decision.pod.uid)
        candidates = [object_ref(claim.metadata) for claim in found]
        special = attempt.special_claim
        if not candidates and special is not None and not is_in_memory(special):
            deleted = object_ref(special.metadata)
    allowed = recorded.get("deallocatable", [])
    comparer.equal(DEVICES, "deallocatable", sorted(allowed), sorted(candidates))
    if candidates:
        comparer.equal(DEVICES, "deallocated", True, candidates[0] in allowed)
    comparer.equal(DEVICES, "deletedClaim", recorded.get("deletedClaim"), deleted)
    world.drop_spawned()
    if "deallocated" in recorded:
        world.deallocate(_find_claim(world, recorded["deallocated"]))
    if "deletedClaim" in recorded:
        world.delete_claim(_find_claim(world, recorded["deletedClaim"]))


def take_recorded_devices(expected: JsonObject, world: World, decision: Decision) -> None:
    """Go on with the recorded allocations, whatever was chosen here."""
    attempt, known = _attempt(decision), KnownDevices.existing(world.objects)
    if "allocated" not in expected or attempt is None or known is None:
        return
    for index in attempt.reserved:
        uid = (
            attempt.special_uid if index == attempt.special else attempt.claims[index].metadata.uid
        )
        known.claims.end_allocation(uid, force=True)
    attempt.reserved.clear()
    by_name = {_claim_name(attempt, claim): index for index, claim in enumerate(attempt.claims)}
    for entry in expected["allocated"]:
        index = by_name.get(entry["claim"])
        allocation = convert(AllocationResult, entry["allocation"])
        if index is None:
            claim = _find_claim(world, entry["claim"])
        else:
            claim = attempt.claims[index]
            if index == attempt.special:
                requests = convert(DeviceClaim, {"requests": entry.get("requests", [])}).requests
                claim = attempt.claims[index] = with_requests(claim, requests)
                attempt.mappings = tuple(
                    convert(ContainerExtendedResourceRequest, mapping)
                    for mapping in entry.get("requestMappings", ())
                )
            attempt.reserved[index] = allocation
        if claim is not None:
            known.claims.start_allocation(as_allocated(claim, allocation))


def compare_reserved_devices(comparer: Comparer, expected: JsonObject, decision: Decision) -> None:
    """The allocations that Reserve chose for the claims of the pod."""
    attempt = _attempt(decision)
    if "result" not in expected or attempt is None:
        return
    got = [
        _reserved(attempt, index, claim)
        for index, claim in enumerate(attempt.claims)
        if index in attempt.reserved
    ]
    recorded = [_comparable(entry) for entry in expected.get("allocated", ())]
    comparer.equal(DEVICES, "allocated", recorded, [_comparable(entry) for entry in got])


def bind_devices(
    comparer: Comparer, expected: JsonObject, world: World, decision: Decision
) -> None:
    """Run PreBind where the recording did, and undo everything if it fails."""
    plugin, attempt = _plugin(world, decision), _attempt(decision)
    if plugin is None or attempt is None or "preBind" not in expected:
        return
    pod, node_name = decision.pod, str(expected["result"]["node"])
    status = asyncio.get_event_loop().run_until_complete(
        _pre_bind(plugin, decision, pod, node_name)
    )
    world.run_spawned()
    comparer.equal(DEVICES, "preBind", expected["preBind"], as_json(status))
    if status is not None:
        run_unreserve(world.profile_of(pod), decision.state, pod, node_name)
        world.forget(pod.assigned_to(node_name))
        world.run_spawned()
    _compare_bound(comparer, expected, world)


async def _pre_bind(
    plugin: DynamicResources, decision: Decision, pod: PodInfo, node_name: str
) -> Status | None:
    try:
        return await plugin.pre_bind(decision.state, pod, node_name)
    except Exception as error:
        return Status.from_error(error)


def _compare_bound(comparer: Comparer, expected: JsonObject, world: World) -> None:
    for recorded in expected.get("bound", ()):
        claim = _find_claim(world, recorded["claim"])
        got = None if claim is None else _written(claim)
        if got is not None and _GENERATED in recorded["claim"]:
            # The name and UID of a claim made for extended resources are drawn at random.
            got |= {key: recorded[key] for key in ("claim", "uid") if key in recorded}
        comparer.equal(DEVICES, f"bound {recorded['claim']}", _without_empty(recorded), got)


def _find_claim(world: World, key: str) -> ResourceClaim | None:
    namespace, _, name = key.partition("/")
    claims = world.objects.resource_claims
    if _GENERATED not in name:
        return claims.get(namespace, name)
    prefix = name.partition(_GENERATED)[0] + _GENERATED
    return next(
        (one for one in claims.list_namespace(namespace) if one.metadata.name.startswith(prefix)),
        None,
    )


def _written(claim: ResourceClaim) -> JsonObject:
    written: JsonObject = {"claim": object_ref(claim.metadata)}
    if claim.metadata.finalizers:
        written["finalizers"] = list(claim.metadata.finalizers)
    if claim.status.reserved_for:
        written["reservedFor"] = [consumer.name for consumer in claim.status.reserved_for]
    return written


def _allocations(attempt: DeviceAttempt, node_name: str) -> dict[str, list[str]] | None:
    found = attempt.allocations.get(node_name)
    if found is None:
        return None
    return {
        _claim_name(attempt, claim): [
            f"{result.request} {result.driver}/{result.pool}/{result.device}"
            for result in allocation.result.devices.results
        ]
        for claim, allocation in zip(found.claims, found.allocations, strict=True)
    }


def _reserved(attempt: DeviceAttempt, index: int, claim: ResourceClaim) -> JsonObject:
    entry: JsonObject = {
        "claim": _claim_name(attempt, claim),
        "allocation": to_document(attempt.reserved[index]),
    }
    if index == attempt.special:
        document = to_document(claim)
        entry["requests"] = document.get("spec", {}).get("devices", {}).get("requests", [])
        entry["requestMappings"] = [to_document(mapping) for mapping in attempt.mappings]
    return _without_empty(entry)


def _without_empty(document: JsonObject) -> JsonObject:
    return {key: value for key, value in document.items() if value != []}


def _comparable(value: Any) -> Any:  # of any JSON values
    """The value with quantities as numbers: `1Gi` and `1024Mi` are equal.

    Ids of shares are left out: each side generates its own.
    """
    if is_object(value):
        return {
            key: _amounts(part) if key == "consumedCapacity" else _comparable(part)
            for key, part in value.items()
            if key != "shareID"
        }
    if is_list(value):
        return [_comparable(part) for part in value]
    return value


def _amounts(capacity: Mapping[str, str]) -> dict[str, int]:
    return {name: parse_quantity(text).nano for name, text in capacity.items()}


def _claim_name(attempt: DeviceAttempt, claim: ResourceClaim) -> str:
    special = attempt.special_claim
    if special is not None and claim.metadata.name == special.metadata.name:
        return f"{claim.metadata.namespace}/{EXTENDED_RESOURCES}"
    return object_ref(claim.metadata)


def _attempt(decision: Decision) -> DeviceAttempt | None:
    attempt = decision.state.get(DynamicResources.name)
    return attempt if isinstance(attempt, DeviceAttempt) else None


def _plugin(world: World, decision: Decision) -> DynamicResources | None:
    plugin = world.profile_of(decision.pod).plugins.get(DynamicResources.name)
    return plugin if isinstance(plugin, DynamicResources) else None
