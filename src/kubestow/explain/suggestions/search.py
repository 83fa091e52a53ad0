"""Finds the changes that make a pod fit, and verifies each by running the cycle with it made.

    gates ─► single changes ─► only a new node would help? ─► pairs of changes
                    └──────────────── sorted, verified, written as patches ────────────────┘

The search is limited by numbers, never by time, so that the same cluster gives the same result.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Final, NamedTuple

from kubestow.api.device import ResourceClaim
from kubestow.api.meta import ApiObject, JsonObject
from kubestow.api.pod import Pod
from kubestow.cluster.resources import RESOURCE_CLAIM_TEMPLATES, default_resources
from kubestow.explain.cluster import StillCluster
from kubestow.explain.explanation import ObjectPatch, Suggestion
from kubestow.explain.suggestions.case import Case
from kubestow.explain.suggestions.change import Change, joined, rank
from kubestow.explain.suggestions.devices import change_devices, template_of
from kubestow.explain.suggestions.evictions import delete_pods
from kubestow.explain.suggestions.first_steps import half_way
from kubestow.explain.suggestions.new_node import Shape, add_node
from kubestow.explain.suggestions.node_changes import change_nodes
from kubestow.explain.suggestions.patches import patch_of
from kubestow.explain.suggestions.pod_rules import relax_rules, remove_gates
from kubestow.explain.suggestions.requests import lower_requests
from kubestow.explain.suggestions.volumes import change_volumes

SUGGESTIONS_MAX: Final = 8
# How many first changes are tried when no single one helps.
FIRST_STEPS_MAX: Final = 12

_RESOURCES: Final = default_resources()


class Verified(NamedTuple):
    """A change, and the node on which the pod is placed with it made."""

    change: Change
    node: str


def find_suggestions(
    cluster: StillCluster, pod: Pod, *, shape: Shape | None = None, limit: int = SUGGESTIONS_MAX
) -> tuple[Suggestion, ...]:
    """What would make a waiting pod of a known profile fit, the smallest change first.

    `shape` is a node that could be added. The cluster is as before afterwards; nothing is found for
    a pod that fits.
    """
    found = find_changes(cluster, pod, shape=shape, limit=limit)
    return tuple(_suggestion(cluster, *each) for each in found)


def find_changes(
    cluster: StillCluster, pod: Pod, *, shape: Shape | None = None, limit: int = SUGGESTIONS_MAX
) -> list[Verified]:
    """The same as objects."""
    found: list[Verified] = []
    for change in sorted(_changes(cluster, pod, shape), key=rank):
        if len(found) == limit:
            break
        node = _verified(cluster, change)
        if node:
            found.append(Verified(change, node))
    return found


def _changes(cluster: StillCluster, pod: Pod, shape: Shape | None) -> list[Change]:
    if not pod.spec.scheduling_gates:
        return _changes_of_ungated(cluster, pod, shape)
    ungated = remove_gates(pod)
    with cluster.changed(ungated.pod):
        if Case(cluster, ungated.pod).fits(ungated.pod):
            return [ungated]
        others = _changes_of_ungated(cluster, ungated.pod, shape)
    return [joined(ungated, change) for change in others]


def _changes_of_ungated(cluster: StillCluster, pod: Pod, shape: Shape | None) -> list[Change]:
    case = Case(cluster, pod)
    if case.fits(pod):
        return []
    found = list(_single_changes(case))
    if not found:
        found = list(_pairs(case))
    return [*found, *add_node(case, shape)]


def _single_changes(case: Case) -> Iterator[Change]:
    """All changes but a new node."""
    return chain(
        relax_rules(case),
        lower_requests(case),
        change_nodes(case),
        change_volumes(case),
        change_devices(case),
        delete_pods(case),
    )


def _pairs(case: Case) -> Iterator[Change]:
    """Two changes that help together, on a part of the nodes."""
    partial = half_way(case)
    steps = chain(
        relax_rules(partial),
        lower_requests(partial),
        change_nodes(partial),
        change_volumes(partial),
        change_devices(partial),
    )
    seen = set[frozenset[str]]()
    for first in sorted(steps, key=rank)[:FIRST_STEPS_MAX]:
        with case.cluster.changed(*first.put(), removed=first.removed):
            second_case = Case(case.cluster, first.pod, partial.rows)
            seconds = list(_single_changes(second_case))
        for second in seconds:
            # The same two are found in both orders.
            both = frozenset((first.text, second.text))
            if both not in seen:
                seen.add(both)
                yield joined(first, second)


def _verified(cluster: StillCluster, change: Change) -> str:
    """The node on which the pod is placed with the change made; "" if it is not."""
    with cluster.changed(*change.put(), removed=change.removed):
        return cluster.decide(change.pod).node_name


# --- Output -------------------------------------------------------------------------------------


def _suggestion(cluster: StillCluster, change: Change, node: str) -> Suggestion:
    noun = "one other" if change.others == 1 else f"one of {change.others} others"
    others = f" (or {noun})" if change.others else ""
    return Suggestion(
        kind=change.kind,
        text=f"{change.text}{others}: the pod then fits on {node}",
        patches=tuple(_patches(cluster, change)),
        node=node,
        verified=True,
    )


def _patches(cluster: StillCluster, change: Change) -> Iterator[ObjectPatch]:
    for new in change.put():
        operations = patch_of(cluster.find(new), new)
        if operations:
            if isinstance(new, ResourceClaim) and (template := template_of(change.pod, new)):
                yield _patch_of_template(new, template, operations)
            yield _patch(new, operations)
    for old in change.removed:
        yield _patch(old, patch_of(old, None))


def _patch(of: ApiObject, operations: list[JsonObject]) -> ObjectPatch:
    resource = _RESOURCES.of_type(type(of))
    return ObjectPatch(
        api_version=resource.api_version,
        kind=resource.kind,
        namespace=of.metadata.namespace,
        name=of.metadata.name,
        patch=tuple(operations),
    )


def _patch_of_template(
    claim: ResourceClaim, name: str, operations: list[JsonObject]
) -> ObjectPatch:
    """The same change of the template that the claim was made from."""
    return ObjectPatch(
        api_version=RESOURCE_CLAIM_TEMPLATES.api_version,
        kind=RESOURCE_CLAIM_TEMPLATES.kind,
        namespace=claim.metadata.namespace,
        name=name,
        patch=tuple({**each, "path": f"/spec{each['path']}"} for each in operations),
    )
