"""Lower a request of the pod to the largest value with which it fits.

The value comes from what is free on the nodes where this resource alone is short. Where one
container can give up the difference, it is the one that requests the most; otherwise all of them
give up the same share.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from kubestow.api.meta import ResourceList
from kubestow.api.pod import Container, Pod, ResourceRequirements
from kubestow.api.quantity import Quantity
from kubestow.api.requests import filter_request, is_sidecar
from kubestow.api.resources import amount, amount_of, is_extended, is_hugepage
from kubestow.explain.evidence.amounts import quantity_of
from kubestow.explain.suggestions.remedy import LOWER_REQUEST, Remedy, make_remedy
from kubestow.explain.suggestions.stuck_pod import StuckPod
from kubestow.index.nodes import nodes_of
from kubestow.plugins.node_resources_fit.plugin import NodeResourcesFit
from kubestow.plugins.node_resources_fit.shortage import Demand

FIT: Final = NodeResourcesFit.name


class Cut(NamedTuple):
    """A request that is lowered: whose it is, from what, to what."""

    owner: str
    before: Quantity
    after: Quantity


class Lowered(NamedTuple):
    pod: Pod
    cuts: list[Cut]


def lower_requests(stuck: StuckPod) -> Iterator[Remedy]:
    """A change for each resource that alone keeps the pod from some node."""
    plugin = stuck.attempt.profile.plugins.get(FIT)
    if not isinstance(plugin, NodeResourcesFit) or FIT not in stuck.blockers.codes:
        return
    uses_pod_level = stuck.cluster.gates.enabled("PodLevelResources")
    for demand in plugin.fit_request(stuck.attempt.state).demands:
        free = _most_free(stuck, demand)
        if free is None:
            continue
        found = _largest_that_fits(stuck, demand, free, uses_pod_level=uses_pod_level)
        if found is not None:
            target, lowered = found
            given_up = -(-100 * (demand.amount - target) // demand.amount)
            yield make_remedy(
                LOWER_REQUEST, _text(demand.name, lowered.cuts), lowered.pod, amount=given_up
            )


def _most_free(stuck: StuckPod, demand: Demand) -> int | None:
    """The most that is free on a node where nothing else is short; None without such a node."""
    rows = stuck.rows_short_of(demand)
    if len(rows) == 0:
        return None
    nodes = nodes_of(stuck.snapshot, rows)
    column = nodes.resource_column(demand.name)
    if column is None:
        return None
    return int((nodes.allocatable(column) - nodes.requested(column)).max())


def _largest_that_fits(
    stuck: StuckPod, demand: Demand, guess: int, *, uses_pod_level: bool
) -> tuple[int, Lowered] | None:
    """The largest total request with which the pod fits.

    Mostly it is the guess. Where pods are nominated to nodes it may be less, and is searched.
    """

    def lowered(total: int) -> Lowered | None:
        found = lowered_request(stuck.pod, demand.name, total, uses_pod_level=uses_pod_level)
        if found is None or not stuck.fits(found.pod):
            return None
        return found

    if guess <= 0:
        return None
    found = lowered(guess)
    if found is not None:
        return guess, found
    fitting, failing = 0, guess
    while failing - fitting > 1:
        middle = (fitting + failing) // 2
        tried = lowered(middle)
        if tried is None:
            failing = middle
        else:
            fitting, found = middle, tried
    return None if found is None else (fitting, found)


def lowered_request(
    pod: Pod, name: str, total: int, *, uses_pod_level: bool = True
) -> Lowered | None:
    """The pod with this total request of one resource; None if no positive requests give it."""
    overhead = pod.spec.overhead or {}
    budget = total - (amount(name, overhead[name]) if name in overhead else 0)
    if budget <= 0:
        return None
    spec, cuts = pod.spec, list[Cut]()
    if uses_pod_level and spec.resources is not None and name in (spec.resources.requests or {}):
        resources = _cut(spec.resources, name, budget, "the pod", cuts)
        spec = msgspec.structs.replace(spec, resources=resources)
    regular = [*spec.containers, *filter(is_sidecar, spec.init_containers)]
    shares = _shares([_amount(each, name) for each in regular], budget)
    by_name = dict(zip((each.name for each in regular), shares, strict=True))
    sidecars = 0
    changed: list[Container] = []
    for container in spec.init_containers:
        limit = by_name[container.name] if is_sidecar(container) else budget - sidecars
        if limit <= 0 < _amount(container, name):
            return None
        changed.append(_cut_container(container, name, limit, "init container", cuts))
        sidecars += _amount(changed[-1], name) if is_sidecar(container) else 0
    containers = [
        _cut_container(container, name, by_name[container.name], "container", cuts)
        for container in spec.containers
    ]
    spec = msgspec.structs.replace(
        spec, containers=tuple(containers), init_containers=tuple(changed)
    )
    found = msgspec.structs.replace(pod, spec=spec)
    # A fraction of a unit in several containers can add up.
    if amount_of(name, filter_request(found, use_pod_level=uses_pod_level)) > total:
        return None
    return Lowered(found, cuts)


def _shares(amounts: list[int], budget: int) -> list[int]:
    """The amounts, lowered to this sum: the largest alone if that suffices, else all of them."""
    excess = sum(amounts) - budget
    if excess <= 0:
        return amounts
    largest = max(range(len(amounts)), key=lambda index: amounts[index])
    left = amounts.copy()
    if amounts[largest] > excess:
        left[largest] -= excess
        return left
    left = [each * budget // sum(amounts) for each in amounts]
    left[largest] += budget - sum(left)
    return left


def _amount(container: Container, name: str) -> int:
    requests = container.resources.requests or {}
    return amount(name, requests[name]) if name in requests else 0


def _cut_container(
    container: Container, name: str, limit: int, role: str, cuts: list[Cut]
) -> Container:
    owner = f"{role} {container.name}"
    resources = _cut(container.resources, name, limit, owner, cuts)
    return msgspec.structs.replace(container, resources=resources)


def _cut(
    resources: ResourceRequirements, name: str, limit: int, owner: str, cuts: list[Cut]
) -> ResourceRequirements:
    requests: ResourceList = resources.requests or {}
    before = requests.get(name)
    if before is None or amount(name, before) <= limit:
        return resources
    after = quantity_of(name, limit)
    cuts.append(Cut(owner, before, after))
    limits = resources.limits
    # For these a limit must equal the request.
    if limits is not None and name in limits and (is_extended(name) or is_hugepage(name)):
        limits = {**limits, name: after}
    return msgspec.structs.replace(resources, requests={**requests, name: after}, limits=limits)


def _text(name: str, cuts: list[Cut]) -> str:
    parts = [f"{cut.owner} from {cut.before} to {cut.after}" for cut in cuts]
    noun = "request" if len(cuts) == 1 else "requests"
    return f"lower the {name} {noun} of {' and '.join(parts)}"
