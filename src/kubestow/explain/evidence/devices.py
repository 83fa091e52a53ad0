"""Which request finds too few devices, and how many match each selector (DynamicResources)."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from kubestow.api.device import ALL, DeviceSubRequest, ExactDeviceRequest, ResourceClaim
from kubestow.api.pod import resource_claim_names
from kubestow.close_names import close_names
from kubestow.errors import PluginError
from kubestow.explain.evidence.context import EvidenceContext, NodeView
from kubestow.explain.evidence.facts import (
    LISTED_MAX,
    Claim,
    DevicePool,
    Devices,
    DeviceSelection,
    DevicesElsewhere,
    DevicesTogether,
    Fact,
    Missing,
)
from kubestow.index.devices import KnownDevices
from kubestow.index.devices.inventory import PublishedDevice
from kubestow.index.devices.selectors import SelectorFailure, selects
from kubestow.plugins.dynamic_resources import DynamicResources
from kubestow.plugins.dynamic_resources.pools import NodePools

_CLAIM: Final = "ResourceClaim"
_QUOTED: Final = re.compile(r'"([^"]*)"')
_CLASS: Final = re.compile(r"device class (\S+) does not exist")


class _Ask(NamedTuple):
    """A request, or an alternative of one, of a claim."""

    claim: str
    name: str
    details: ExactDeviceRequest | DeviceSubRequest


def too_few_devices(view: NodeView, _: str) -> Sequence[Fact]:
    """The requests that find too few devices; if each finds enough, that they compete."""
    devices = [device for device, _ in _pools(view).devices]
    known = _known(view.context)
    lacking = [
        fact for ask in _asks(view.context) if (fact := _fact(known, ask, devices)).missing > 0
    ]
    unusable = unusable_pools(view, "")
    return [*lacking, *unusable] if lacking or unusable else _together(view.context, devices)


def unusable_pools(view: NodeView, _: str) -> list[DevicePool]:
    return [
        DevicePool(driver=pool.key[0], pool=pool.key[1], is_complete=pool.is_complete)
        for pool in _pools(view).pools
        if not pool.is_usable
    ]


def devices_elsewhere(view: NodeView, _: str) -> list[DevicesElsewhere]:
    """The claims that have devices which are not for this node."""
    found: list[DevicesElsewhere] = []
    for claim in _claims(view.context):
        allocation = claim.status.allocation
        if allocation is None:
            continue
        devices = [f"{each.pool}/{each.device}" for each in allocation.devices.results]
        selector = allocation.node_selector
        terms = () if selector is None else selector.node_selector_terms
        nodes = [
            f"{each.key} {each.operator} {','.join(each.values or ())}"
            for term in terms
            for each in (*term.match_expressions, *term.match_fields)
        ]
        found.append(
            DevicesElsewhere(
                claim=claim.metadata.name,
                devices=tuple(devices[:LISTED_MAX]),
                nodes="; ".join(nodes[:LISTED_MAX]),
            )
        )
    return found


def missing_device_class(view: NodeView, reason: str) -> list[Missing]:
    named = _CLASS.search(reason)
    names = [named.group(1).strip('"')] if named is not None else []
    names = names or [
        ask.details.device_class_name
        for ask in _asks(view.context)
        if view.context.objects.device_classes.get(ask.details.device_class_name) is None
    ]
    known = [each.metadata.name for each in view.context.objects.device_classes]
    return [
        Missing(kind="DeviceClass", namespace="", name=name, similar=close_names(name, known))
        for name in dict.fromkeys(names)
    ]


def missing_resource_claim(view: NodeView, _: str) -> list[Missing]:
    context, namespace = view.context, view.pod.namespace
    claims = context.objects.resource_claims
    known = [each.metadata.name for each in claims.list_namespace(namespace)]
    return [
        Missing(kind=_CLAIM, namespace=namespace, name=name, similar=close_names(name, known))
        for name in dict.fromkeys(resource_claim_names(view.pod.pod).values())
        if _known(context).claims.get(namespace, name) is None
    ]


def resource_claim_problem(view: NodeView, reason: str) -> list[Claim]:
    names = list(resource_claim_names(view.pod.pod).values())
    named = [name for name in names if name in reason]
    entries = [each.name for each in view.pod.pod.spec.resource_claims]
    shown = named or names or _QUOTED.findall(reason)[:1] or entries
    return [
        Claim(kind=_CLAIM, claim=name, problem="Unusable", detail=reason)
        for name in shown[:LISTED_MAX]
    ]


def _known(context: EvidenceContext) -> KnownDevices:
    return KnownDevices.of(context.objects, context.gates)


def _claims(context: EvidenceContext) -> list[ResourceClaim]:
    known, pod = _known(context), context.pod
    names = resource_claim_names(pod.pod).values()
    found = (known.claims.get(pod.namespace, name) for name in dict.fromkeys(names))
    return [*(each for each in found if each is not None), *known.claims.made_for(pod.uid)]


def _asks(context: EvidenceContext) -> list[_Ask]:
    """The requests of claims without devices, and those that extended resources stand for."""
    return context.once("device requests", lambda: list(_find_asks(context)))


def _find_asks(context: EvidenceContext) -> Iterator[_Ask]:
    for claim in _claims(context):
        if claim.status.allocation is not None:
            continue
        for request in claim.spec.devices.requests:
            if request.exactly is not None:
                yield _Ask(claim.metadata.name, request.name, request.exactly)
            for alternative in request.first_available:
                name = f"{request.name}/{alternative.name}"
                yield _Ask(claim.metadata.name, name, alternative)
    classes = _known(context).class_map
    for name, amount in context.pod.accounted.requested.scalar.items():
        device_class = classes.class_of(name)
        if device_class is not None:
            exactly = ExactDeviceRequest(device_class_name=device_class.metadata.name, count=amount)
            yield _Ask("(extended resource)", name, exactly)


def _pools(view: NodeView) -> NodePools:
    """The pools that drivers publish for the node; none if a selector does not parse."""
    plugin = view.context.plugin(DynamicResources)
    try:
        return NodePools(()) if plugin is None else plugin.pools_of(view.node)
    except PluginError:
        return NodePools(())


def _fact(known: KnownDevices, ask: _Ask, devices: Sequence[PublishedDevice]) -> Devices:
    details = ask.details
    device_class = known.classes.get(details.device_class_name)
    of_class = () if device_class is None else device_class.spec.selectors
    expressions = [
        selector.cel.expression
        for selector in (*of_class, *details.selectors)
        if selector.cel is not None
    ]
    matching = _matching(devices, expressions)
    in_use = known.claims.allocated
    is_all = details.allocation_mode == ALL
    free = [
        each
        for each in matching
        if each.device.allow_multiple_allocations or not in_use.is_in_use(each.id)
    ]
    # A request for all devices needs every one of them, and at least one.
    wanted = max(len(matching), 1) if is_all else max(details.count, 1)
    return Devices(
        claim=ask.claim,
        request=ask.name,
        device_class=details.device_class_name,
        wanted=wanted,
        on_node=len(devices),
        matching=len(matching),
        free=len(free),
        missing=max(wanted - len(free), 0),
        selectors=tuple(
            DeviceSelection(expression=each, matching=len(_matching(devices, [each])))
            for each in expressions[:LISTED_MAX]
        ),
    )


def _matching(
    devices: Iterable[PublishedDevice], expressions: Sequence[str]
) -> list[PublishedDevice]:
    return [each for each in devices if all(_selects(one, each) for one in expressions)]


def _selects(expression: str, device: PublishedDevice) -> bool:
    try:
        return selects(expression, device)
    except SelectorFailure:
        return False


def _together(context: EvidenceContext, devices: Sequence[PublishedDevice]) -> list[Fact]:
    claims = [each for each in _claims(context) if each.status.allocation is None]
    constraints = [
        f"{'same' if rule.match_attribute else 'distinct'} "
        f"{rule.match_attribute or rule.distinct_attribute}"
        for claim in claims
        for rule in claim.spec.devices.constraints
    ]
    names = list(dict.fromkeys(ask.claim for ask in _asks(context)))
    tainted = sum(bool(each.taints) for each in devices)
    return [
        DevicesTogether(
            claims=tuple(names[:LISTED_MAX]),
            constraints=tuple(constraints[:LISTED_MAX]),
            tainted=tainted,
        )
    ]
