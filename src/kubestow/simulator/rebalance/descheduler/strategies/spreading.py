"""RemovePodsViolatingTopologySpreadConstraint, RemoveDuplicates: too many equals in one place."""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final

from kubestow.api.labels import Selector, equality, parse_label_selector
from kubestow.api.pod import TopologySpreadConstraint, is_terminating, priority_of
from kubestow.api.pod_info import PodInfo
from kubestow.simulator.rebalance.descheduler.policy import DuplicatesArgs, SpreadArgs
from kubestow.simulator.rebalance.descheduler.view import (
    Evict,
    SeenNode,
    View,
    chooser,
    matches_node,
    tolerates,
)

_HONOR: Final = "Honor"
_IGNORE: Final = "Ignore"

Passes = Callable[[PodInfo], bool]


def topology_spread(view: View, args: SpreadArgs, passes: Passes, evict: Evict) -> None:
    """Evict from the domains of a constraint that have too many pods, down to the mean."""
    is_chosen = chooser(args.namespaces, args.label_selector)
    by_namespace: defaultdict[str, list[PodInfo]] = defaultdict(list)
    for pod in view.pods():
        if is_chosen(pod) and passes(pod):
            by_namespace[pod.namespace].append(pod)
    chosen: dict[str, PodInfo] = {}
    for pods in by_namespace.values():
        for owner, constraint in _constraints(pods, args.constraints):
            for pod in _excess(view, owner, constraint, pods, args):
                chosen[pod.uid] = pod
    for pod in chosen.values():
        evict(pod)


def _constraints(
    pods: Iterable[PodInfo], kinds: Sequence[str]
) -> list[tuple[PodInfo, TopologySpreadConstraint]]:
    """The different constraints of pods, each with the first pod that has it."""
    found: dict[Hashable, tuple[PodInfo, TopologySpreadConstraint]] = {}
    for pod in pods:
        for constraint in pod.pod.spec.topology_spread_constraints:
            if constraint.when_unsatisfiable in kinds:
                key = (
                    constraint.max_skew,
                    constraint.topology_key,
                    constraint.node_affinity_policy,
                    constraint.node_taints_policy,
                    _selector(pod, constraint),
                    pod.required_node_affinity,
                    pod.pod.spec.tolerations,
                )
                found.setdefault(key, (pod, constraint))
    return list(found.values())


def _selector(pod: PodInfo, constraint: TopologySpreadConstraint) -> Selector:
    labels = pod.pod.metadata.labels
    keys = [key for key in constraint.match_label_keys if key in labels]
    own = [equality(key, labels[key]) for key in keys]
    return parse_label_selector(constraint.label_selector).narrowed(own)


def _excess(
    view: View,
    owner: PodInfo,
    constraint: TopologySpreadConstraint,
    pods: Iterable[PodInfo],
    args: SpreadArgs,
) -> list[PodInfo]:
    """The pods that are too many in their domain, and fit where too few are."""
    key, selector = constraint.topology_key, _selector(owner, constraint)
    nodes = {seen.name: seen for seen in view.nodes if key in seen.labels}
    counted = [seen for seen in nodes.values() if _is_included(owner, constraint, seen)]
    domains: dict[str, list[PodInfo]] = {seen.labels[key]: [] for seen in counted}
    for pod in pods:
        seen = nodes.get(pod.pod.spec.node_name)
        if seen is None or is_terminating(pod.pod):
            continue
        if selector.matches(pod.pod.metadata.labels):
            domains.setdefault(seen.labels[key], []).append(pod)
    sizes = [len(found) for found in domains.values()]
    if not sizes or max(sizes) - min(sizes) <= constraint.max_skew:
        return []
    mean = sum(sizes) / len(sizes)
    few = {domain for domain, found in domains.items() if len(found) < mean}
    targets = [seen for seen in counted if seen.labels[key] in few]

    def fits(pod: PodInfo) -> bool:
        return view.fits_elsewhere(pod, targets)

    ordered = sorted((_in_order(found) for found in domains.values()), key=len)
    moved = _moved(ordered, mean, constraint.max_skew, fits)
    return [pod for pod in moved if fits(pod)] if args.topology_balance_node_fit else moved


def _is_included(owner: PodInfo, constraint: TopologySpreadConstraint, seen: SeenNode) -> bool:
    """Whether the policies of a constraint count a node."""
    by_affinity = (constraint.node_affinity_policy or _HONOR) == _HONOR
    by_taints = (constraint.node_taints_policy or _IGNORE) == _HONOR
    return (not by_affinity or matches_node(owner, seen)) and (
        not by_taints or tolerates(owner, seen)
    )


def _in_order(pods: list[PodInfo]) -> list[PodInfo]:
    """The pods, those that are evicted first at the end: without a selector, of low priority."""

    def key(pod: PodInfo) -> tuple[bool, int]:
        affinity = pod.pod.spec.affinity
        is_bound = bool(pod.pod.spec.node_selector) or (
            affinity is not None and affinity.node_affinity is not None
        )
        return not is_bound, -priority_of(pod.pod)

    return sorted(pods, key=key)


def _moved(
    domains: list[list[PodInfo]], mean: float, max_skew: int, fits: Callable[[PodInfo], bool]
) -> list[PodInfo]:
    """Pods that go from the largest domains to the smallest, until the skew is allowed."""
    moved: list[PodInfo] = []
    low, high = 0, len(domains) - 1
    while low < high:
        if len(domains[high]) <= mean:
            high -= 1
        skew = len(domains[high]) - len(domains[low])
        count = min(
            math.ceil(len(domains[high]) - mean),
            math.ceil(mean - len(domains[low])),
            math.ceil((skew - max_skew) / 2),
        )
        if skew <= max_skew or count <= 0:
            low += 1
            continue
        # Those that fit elsewhere are taken first.
        domains[high].sort(key=fits)
        gone = domains[high][-count:]
        del domains[high][-count:]
        domains[low] += gone
        moved += gone
    return moved


def duplicates(view: View, args: DuplicatesArgs, passes: Passes, evict: Evict) -> None:
    """Evict pods of one owner that share a node, beyond their even share of the nodes."""
    groups: defaultdict[Hashable, dict[str, list[PodInfo]]] = defaultdict(dict)
    for seen in view.nodes:
        for pod in view.pods_on(seen.name):
            owners = pod.pod.metadata.owner_references
            if not owners or not args.namespaces.has(pod.namespace) or not passes(pod):
                continue
            if any(owner.kind in args.exclude_owner_kinds for owner in owners):
                continue
            images = sorted(container.image for container in pod.pod.spec.containers)
            names = sorted((owner.kind, owner.name) for owner in owners)
            key = pod.namespace, tuple(names), tuple(images)
            groups[key].setdefault(seen.name, []).append(pod)
    for by_node in groups.values():
        if all(len(pods) == 1 for pods in by_node.values()):
            continue
        targets = _targets(view, by_node.values())
        if len(targets) < 2:
            continue
        share = math.ceil(sum(map(len, by_node.values())) / len(targets))
        for pods in by_node.values():
            for pod in pods[share:]:
                evict(pod)


def _targets(view: View, groups: Iterable[Sequence[PodInfo]]) -> set[str]:
    """Nodes that pods may go to by selector and taints, if there are two for a pod."""
    found: set[str] = set()
    kinds = {
        (pod.required_node_affinity, pod.pod.spec.tolerations): pod
        for pods in groups
        for pod in pods[1:]
    }
    for pod in kinds.values():
        names = {
            seen.name for seen in view.nodes if tolerates(pod, seen) and matches_node(pod, seen)
        }
        if len(names) > 1:
            found |= names
    return found
