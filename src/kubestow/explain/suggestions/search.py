"""Finds the changes that make a pod fit, and verifies each by running the cycle with it made.

    gates ─► single changes ─► only a new node would help? ─► pairs of changes
                    └──────────────── sorted, verified, written as patches ────────────────┘

The search is limited by numbers, never by time, so that the same cluster gives the same result.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

import msgspec
from msgspec import UNSET

from kubestow.api.device import ResourceClaim
from kubestow.api.group import group_key_of
from kubestow.api.meta import ApiObject, JsonObject
from kubestow.api.pod import Pod
from kubestow.cluster.resources import default_resources
from kubestow.explain.cluster import Origin, StillCluster, claim_template, key_of
from kubestow.explain.explanation import Explanation, ObjectPatch, PodReference, Suggestion
from kubestow.explain.group import explain_group
from kubestow.explain.suggestions.commands import (
    commands_of,
    effect_of,
    move_commands,
    template_operations,
)
from kubestow.explain.suggestions.corrections import correct_names
from kubestow.explain.suggestions.devices import (
    change_devices,
    pairs_of_device_changes,
    template_of,
)
from kubestow.explain.suggestions.evictions import delete_pods, move_or_delete_pods, replacements
from kubestow.explain.suggestions.first_steps import HalfWay, half_way
from kubestow.explain.suggestions.missing_objects import create_missing
from kubestow.explain.suggestions.new_node import OfferedNode, add_node, computed_node, offer_text
from kubestow.explain.suggestions.node_changes import change_nodes
from kubestow.explain.suggestions.owners import origin_of
from kubestow.explain.suggestions.patches import patch_of
from kubestow.explain.suggestions.pod_rules import relax_rules, remove_gates
from kubestow.explain.suggestions.remedy import (
    ADD_NODE,
    LOWER_REQUEST,
    MOVE_POD,
    WAIT,
    Remedy,
    joined,
    rank,
)
from kubestow.explain.suggestions.requests import lower_requests
from kubestow.explain.suggestions.stuck_pod import StuckPod
from kubestow.explain.suggestions.volumes import change_volumes
from kubestow.explain.suggestions.waiting import wait_for_ends

SUGGESTIONS_MAX: Final = 8
# How many suggestions of one kind there are among them.
OF_KIND_MAX: Final = 3
# How many first changes are tried when no single one helps, and how many with a new node.
FIRST_STEPS_MAX: Final = 12
STEPS_WITH_NODE_MAX: Final = 3

# Where nothing else helps, the pod gives up what it needs; a node that has it is worth knowing.
_OF_REQUESTS: Final = (LOWER_REQUEST,)
# What is tried, for people.
TRIED: Final = (
    "names that may be misspelt",
    "missing claims and classes",
    "pods that are ending",
    "tolerations, selectors, affinity, spread and ports of the pod",
    "lower requests",
    "changes of nodes: cordons, taints, labels, limits",
    "other volumes and classes",
    "fewer devices, or fewer selectors of devices",
    "moving a pod, or deleting pods",
    "one more node like those that there are, or of the smallest shape that fits",
    "two of these together",
)

_RESOURCES: Final = default_resources()
_ITSELF: Final = Origin("", "", "", "", "")


class Verified(NamedTuple):
    """A change, and the node on which the pod is placed with it made."""

    change: Remedy
    node: str


def find_suggestions(
    cluster: StillCluster,
    pod: Pod,
    *,
    shape: OfferedNode | None = None,
    limit: int = SUGGESTIONS_MAX,
    of_kind: int = OF_KIND_MAX,
) -> tuple[Suggestion, ...]:
    """What would make a waiting pod of a known profile fit, the smallest change first.

    `shape` is a node that could be added, `of_kind` the limit for one kind of change. The cluster
    is as before afterwards; nothing is found for a pod that fits.
    """
    found = find_remedies(cluster, pod, shape=shape, limit=limit, of_kind=of_kind)
    return tuple(suggestion_of(cluster, *each) for each in found)


def with_suggestions(
    cluster: StillCluster, pod: Pod, explanation: Explanation, *, shape: OfferedNode | None = None
) -> Explanation:
    """The explanation of a waiting pod with what would make it fit, or else what was tried."""
    found = find_suggestions(cluster, pod, shape=shape)
    tried = () if found else TRIED
    if shape is not None and not any(ADD_NODE in each.kind for each in found):
        tried = (*tried, f"a node with {offer_text(shape)}")
    return msgspec.structs.replace(explanation, suggestions=found, tried=tried)


def find_remedies(
    cluster: StillCluster,
    pod: Pod,
    *,
    shape: OfferedNode | None = None,
    limit: int = SUGGESTIONS_MAX,
    of_kind: int = OF_KIND_MAX,
) -> list[Verified]:
    """What would make a waiting pod fit, the smallest change first, as objects."""
    found: list[Verified] = []
    counts: Counter[str] = Counter()
    for change in sorted(_changes(cluster, pod, shape), key=rank):
        if len(found) == limit:
            break
        if counts[change.kind] == of_kind or not _can_be_written(cluster, change):
            continue
        node = _verified(cluster, change)
        if node:
            counts[change.kind] += 1
            found.append(Verified(change, node))
    return found


def find_new_node(cluster: StillCluster, pod: Pod) -> Verified | None:
    """One more node like those that there are, if the pod fits then and not before."""
    stuck = StuckPod(cluster, pod)
    if pod.spec.scheduling_gates or stuck.fits(pod):
        return None
    found = (Verified(each, _verified(cluster, each)) for each in add_node(stuck, None))
    return next((each for each in found if each.node), None)


def _changes(cluster: StillCluster, pod: Pod, shape: OfferedNode | None) -> list[Remedy]:
    if not pod.spec.scheduling_gates:
        return _changes_of_ungated(cluster, pod, shape)
    ungated = remove_gates(pod)
    with cluster.changed(ungated.pod):
        if StuckPod(cluster, ungated.pod).fits(ungated.pod):
            return [ungated]
        others = _changes_of_ungated(cluster, ungated.pod, shape)
    return [joined(ungated, change) for change in others]


def _changes_of_ungated(cluster: StillCluster, pod: Pod, shape: OfferedNode | None) -> list[Remedy]:
    stuck = StuckPod(cluster, pod)
    if stuck.fits(pod):
        return []
    found = [
        *correct_names(stuck),
        *create_missing(stuck),
        *wait_for_ends(stuck),
        *_changes_of_objects(stuck),
        *move_or_delete_pods(stuck),
        *add_node(stuck, shape),
    ]
    if all(change.kind == ADD_NODE for change in found):
        partial = half_way(stuck)
        steps = sorted(_changes_of_objects(partial), key=rank)[:FIRST_STEPS_MAX]
        found += pairs_of_device_changes(stuck)
        found += _pairs(partial, steps)
        if not found:
            found += _pairs_with_node(stuck, steps, shape)
    if all("+" in change.kind or change.kind in _OF_REQUESTS for change in found):
        found += computed_node(stuck)
    return found


def _changes_of_objects(stuck: StuckPod) -> Iterator[Remedy]:
    return chain(
        relax_rules(stuck),
        lower_requests(stuck),
        change_nodes(stuck),
        change_volumes(stuck),
        change_devices(stuck),
    )


def _second_changes(stuck: StuckPod) -> Iterator[Remedy]:
    """What may follow a first change: no new node, and pods are deleted, not moved."""
    return chain(_changes_of_objects(stuck), delete_pods(stuck))


def _pairs(partial: HalfWay, steps: Iterable[Remedy]) -> Iterator[Remedy]:
    """Each of the first steps with a single change that then helps, on a part of the nodes."""
    cluster, seen = partial.cluster, set[frozenset[str]]()
    for first in steps:
        with cluster.changed(*first.put()):
            seconds = list(_second_changes(StuckPod(cluster, first.pod, partial.rows)))
        for second in seconds:
            # The same two are found in both orders.
            both = frozenset((first.text, second.text))
            if both not in seen:
                seen.add(both)
                yield joined(first, second)


def _pairs_with_node(
    stuck: StuckPod, steps: Sequence[Remedy], shape: OfferedNode | None
) -> Iterator[Remedy]:
    for first in steps[:STEPS_WITH_NODE_MAX]:
        with stuck.cluster.changed(*first.put()):
            seconds = list(add_node(StuckPod(stuck.cluster, first.pod), shape))
        yield from (joined(first, second) for second in seconds)


def _verified(cluster: StillCluster, change: Remedy) -> str:
    """The node on which the pod is placed with the change made; "" if it is not.

    A member of a group is tried with its group.
    """
    pod = change.pod
    with cluster.changed(*change.put(), removed=change.removed):
        key, groups, profile = group_key_of(pod), cluster.scheduler.groups, cluster.profile_of(pod)
        if key is None or groups is None or profile is None:
            return cluster.decide(pod).node_name
        member = explain_group(cluster, groups, profile, key, pod).member
        return member.node if member.outcome == "Scheduled" else ""


# --- Output -------------------------------------------------------------------------------------


def suggestion_of(cluster: StillCluster, change: Remedy, node: str) -> Suggestion:
    """A change that was tried, with which the pod is placed on the node."""
    noun = "one other" if change.others == 1 else f"one of {change.others} others"
    others = f" (or {noun})" if change.others else ""
    origin = origin_of(cluster, change.pod)
    # Pods that end by themselves need no deletion; a move is several steps.
    is_done, is_move = change.kind != WAIT, change.kind == MOVE_POD
    # Claims that were made from one template are changed alike, in the template.
    is_patched = is_done and not is_move
    patches = tuple(_distinct(_patches(cluster, change, origin))) if is_patched else ()
    own = patch_of(cluster.find(change.pod), change.pod) if origin is not None else []
    is_known = origin is None or bool(origin.path) or not own
    return Suggestion(
        kind=change.kind,
        text=f"{change.text}{others}: the pod then fits on {node}",
        patches=patches,
        node=node,
        verified=True,
        commands=(
            move_commands(cluster, change)
            if is_move
            else commands_of(cluster, change, patches)
            if is_done and is_known
            else ()
        ),
        effect=_effect(cluster, change, origin, node) if is_done else "",
        pod_patch=_patch(change.pod, own) if own else UNSET,
        moved=_reference(change.removed[0]) if is_move else UNSET,
    )


def _reference(of: ApiObject) -> PodReference:
    metadata = of.metadata
    return PodReference(namespace=metadata.namespace, name=metadata.name, uid=metadata.uid)


def _effect(cluster: StillCluster, change: Remedy, origin: Origin | None, node: str) -> str:
    parts = (effect_of(cluster, change, origin), replacements(cluster, change, node))
    return "; ".join(filter(None, parts))


def _can_be_written(cluster: StillCluster, change: Remedy) -> bool:
    """Whether each object that is changed has a manifest, or was made from one."""
    if change.kind == MOVE_POD:
        return True
    changed = (new for new in change.objects if cluster.find(new) is not None)
    return all(cluster.origins.get(key_of(each), _ITSELF) is not None for each in changed)


def _patches(
    cluster: StillCluster, change: Remedy, pod_origin: Origin | None
) -> Iterator[ObjectPatch]:
    for new in change.put():
        operations = patch_of(cluster.find(new), new)
        if not operations:
            continue
        origin = pod_origin if new is change.pod else cluster.origins.get(key_of(new))
        if origin is not None and (origin.path or new is not change.pod):
            yield _patch_of_template(origin, operations)
            continue
        if isinstance(new, ResourceClaim) and (template := template_of(change.pod, new)):
            yield _patch_of_template(claim_template(new.metadata.namespace, template), operations)
        yield _patch(new, operations)
    for old in change.removed:
        yield _patch(old, patch_of(old, None))


def _distinct(patches: Iterable[ObjectPatch]) -> list[ObjectPatch]:
    found: list[ObjectPatch] = []
    for patch in patches:
        if patch not in found:
            found.append(patch)
    return found


def _patch(of: ApiObject, operations: list[JsonObject]) -> ObjectPatch:
    resource = _RESOURCES.of_type(type(of))
    return ObjectPatch(
        api_version=resource.api_version,
        kind=resource.kind,
        namespace=of.metadata.namespace,
        name=of.metadata.name,
        patch=tuple(operations),
    )


def _patch_of_template(origin: Origin, operations: list[JsonObject]) -> ObjectPatch:
    """The change of an object, made in the template that it was made from."""
    return ObjectPatch(
        api_version=origin.api_version,
        kind=origin.kind,
        namespace=origin.namespace,
        name=origin.name,
        patch=tuple(template_operations(origin, operations)),
    )
