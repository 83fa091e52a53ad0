"""What is written into a claim that gets devices (spec 08 B7.8)."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from kubestow.api.device import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceClaimConfiguration,
    DeviceClass,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from kubestow.api.node_selector import NAME_FIELD
from kubestow.api.pod import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubestow.errors import PluginError
from kubestow.plugins.dynamic_resources.draft import Pick
from kubestow.plugins.dynamic_resources.features import Features
from kubestow.plugins.dynamic_resources.requests import ClaimPlan, RequestPlan
from kubestow.plugins.dynamic_resources.walk import Choice

FROM_CLASS: Final = "FromClass"
FROM_CLAIM: Final = "FromClaim"
ALTERNATIVES_MAX: Final = 8
_ALL_FEATURES: Final = Features()


class ClaimAllocation(NamedTuple):
    """The devices chosen for one claim on one node.

    shared   which of the results are shares of a device; they get their ids when they are taken
    """

    result: AllocationResult
    shared: tuple[int, ...] = ()


class AllocationMaker:
    """Makes allocations of what was chosen. An edition that writes others derives from this."""

    def __init__(self, features: Features = _ALL_FEATURES) -> None:
        self._features = features

    def make(self, plan: ClaimPlan, choice: Choice, node_name: str) -> ClaimAllocation:
        """The devices of a claim; raises PluginError if their node selector is unsupported."""
        devices = DeviceAllocationResult(
            results=tuple(map(self._result, choice.picks)),
            config=tuple(self._configs(plan, choice.plans)),
        )
        binds = not self._features.is_basic
        selector = _node_selector(plan, choice.picks, node_name, binds=binds)
        allocation = AllocationResult(devices=devices, node_selector=selector)
        shared = tuple([index for index, pick in enumerate(choice.picks) if pick.taken is not None])
        return ClaimAllocation(allocation, shared)

    def _result(self, pick: Pick) -> DeviceRequestAllocationResult:
        plan, published, taken = pick
        driver, pool, name = published.id
        return DeviceRequestAllocationResult(
            request=plan.full_name,
            driver=driver,
            pool=pool,
            device=name,
            admin_access=True if plan.admin_access else None,
            tolerations=plan.tolerations.entries,
            binding_conditions=published.device.binding_conditions,
            binding_failure_conditions=published.device.binding_failure_conditions,
            consumed_capacity=taken or {},
        )

    def _configs(
        self, plan: ClaimPlan, chosen: Sequence[RequestPlan]
    ) -> list[DeviceAllocationConfiguration]:
        """The configuration of the classes, then that of the claim."""
        by_class: dict[str, tuple[DeviceClass, list[str]]] = {}
        for request_plan in chosen:
            device_class = request_plan.device_class
            assert device_class is not None, request_plan.full_name
            _, requests = by_class.setdefault(device_class.metadata.name, (device_class, []))
            requests.append(request_plan.full_name)
        configs = [
            DeviceAllocationConfiguration(
                source=FROM_CLASS, requests=tuple(requests), opaque=config.opaque
            )
            for device_class, requests in by_class.values()
            for config in device_class.spec.config
        ]
        for config in plan.claim.spec.devices.config:
            configs += self._claim_configs(config, chosen)
        return configs

    def _claim_configs(
        self, config: DeviceClaimConfiguration, chosen: Sequence[RequestPlan]
    ) -> list[DeviceAllocationConfiguration]:
        """Once if it is for all requests; otherwise once for each request it names."""
        entry = DeviceAllocationConfiguration(
            source=FROM_CLAIM, requests=config.requests, opaque=config.opaque
        )
        if not config.requests:
            return [entry]
        return [entry for each in chosen if is_named(each, config.requests)]


def is_named(plan: RequestPlan, requests: Sequence[str]) -> bool:
    """Whether the request or its chosen alternative is among these."""
    return plan.parent_name in requests or plan.full_name in requests


def with_share_ids(allocation: ClaimAllocation, share_ids: Sequence[str]) -> AllocationResult:
    """The allocation with an id for each share, in their order."""
    if not allocation.shared:
        return allocation.result
    results = list(allocation.result.devices.results)
    for index, share_id in zip(allocation.shared, share_ids, strict=True):
        results[index] = msgspec.structs.replace(results[index], share_id=share_id)
    devices = msgspec.structs.replace(allocation.result.devices, results=tuple(results))
    return msgspec.structs.replace(allocation.result, devices=devices)


def preference_score(claim: ResourceClaim, allocation: AllocationResult) -> int:
    """The sum over the alternatives a claim got: 8 for a first choice, 7 for a second (B9)."""
    if not any([request.first_available for request in claim.spec.devices.requests]):
        return 0
    given = {result.request for result in allocation.devices.results}
    return sum(
        ALTERNATIVES_MAX - index
        for request in claim.spec.devices.requests
        for index, alternative in enumerate(request.first_available)
        if f"{request.name}/{alternative.name}" in given
    )


# --- Nodes ------------------------------------------------------------------------------------


def _node_selector(
    plan: ClaimPlan, picks: Sequence[Pick], node_name: str, *, binds: bool
) -> NodeSelector | None:
    """The nodes that can use the devices; None if all can. `binds`: bindsToNode is known."""
    expressions: dict[_RequirementKey, NodeSelectorRequirement] = {}
    fields: dict[_RequirementKey, NodeSelectorRequirement] = {}
    for _, published, _ in picks:
        reach = published.reach if published.of.per_device else published.of.reach
        if reach.node_name or (binds and published.device.binds_to_node):
            return _only(node_name)
        if reach.selector is None:
            continue
        terms = reach.selector.node_selector_terms
        if len(terms) != 1:
            raise PluginError(
                f"create NodeSelector for claim {plan.claim.metadata.name}: "
                f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
            )
        _merge(expressions, terms[0].match_expressions)
        _merge(fields, terms[0].match_fields)
    if not expressions and not fields:
        return None
    term = NodeSelectorTerm(
        match_expressions=tuple(expressions.values()), match_fields=tuple(fields.values())
    )
    return NodeSelector(node_selector_terms=(term,))


_RequirementKey = tuple[str, str, frozenset[str]]


def _merge(
    merged: dict[_RequirementKey, NodeSelectorRequirement],
    requirements: Sequence[NodeSelectorRequirement],
) -> None:
    for each in requirements:
        merged.setdefault((each.key, each.operator, frozenset(each.values or ())), each)


def _only(node_name: str) -> NodeSelector:
    requirement = NodeSelectorRequirement(key=NAME_FIELD, operator="In", values=(node_name,))
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(requirement,)),))
