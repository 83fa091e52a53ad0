"""LowNodeUtilization and HighNodeUtilization: nodes by how much of them is requested."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from kubestow.api.pod_info import PodInfo
from kubestow.api.resources import Resources, amount_of
from kubestow.api.taints import first_untolerated
from kubestow.simulator.rebalance.descheduler.policy import (
    HighUtilizationArgs,
    LowUtilizationArgs,
    Namespaces,
    Thresholds,
)
from kubestow.simulator.rebalance.descheduler.view import (
    Evict,
    SeenNode,
    View,
    least_important_first,
    requested,
)

_BASIC: Final = ("cpu", "memory", "pods")
_ONLY_THRESHOLDS: Final = "OnlyThresholdingResources"

Passes = Callable[[PodInfo], bool]
# Amounts, or percentages, by resource.
_Amounts = dict[str, float]


def low_utilization(view: View, args: LowUtilizationArgs, passes: Passes, evict: Evict) -> None:
    """Evict from nodes above a target, as long as nodes below the threshold have room for it."""
    names = _names(args.thresholds)
    shares = {seen.name: _shares(view, seen, names) for seen in view.nodes}
    low, high = _limits(args, shares)
    under = [
        seen
        for seen in view.nodes
        if not seen.node.spec.unschedulable and _is_below(shares[seen.name], low)
    ]
    over = [seen for seen in view.nodes if seen not in under and _is_above(shares[seen.name], high)]
    if not over or not args.number_of_nodes < len(under) < len(view.nodes):
        return
    free = _free(view, under, names, high)
    for seen in sorted(over, key=lambda seen: -sum(_used(view, seen, names).values())):
        used, most = _used(view, seen, names), _share_of(seen, names, high)
        left = args.eviction_limits.node
        for pod in least_important_first(filter(passes, view.pods_on(seen.name))):
            is_over = any(used[name] > most[name] for name in names)
            if not is_over or left == 0 or any(amount < 1 for amount in free.values()):
                break
            if _may_go(pod, args.evictable_namespaces, under) and evict(pod):
                left = None if left is None else left - 1
                _subtract(pod, used, free)


def high_utilization(view: View, args: HighUtilizationArgs, passes: Passes, evict: Evict) -> None:
    """Evict from nodes below the threshold, as long as the others have room for it."""
    names = _names(args.thresholds)
    under = [seen for seen in view.nodes if _is_below(_shares(view, seen, names), args.thresholds)]
    others = [seen for seen in view.nodes if seen not in under and not seen.node.spec.unschedulable]
    if not others or not args.number_of_nodes < len(under) < len(view.nodes):
        return
    free = _free(view, others, names, {})
    for seen in sorted(under, key=lambda seen: sum(_used(view, seen, names).values())):
        used = _used(view, seen, names)
        for pod in least_important_first(filter(passes, view.pods_on(seen.name))):
            if any(amount < 1 for amount in free.values()):
                break
            if _ONLY_THRESHOLDS in args.eviction_modes and not _requests_any(pod, args.thresholds):
                continue
            if _may_go(pod, args.evictable_namespaces, others) and evict(pod):
                _subtract(pod, used, free)


def _names(thresholds: Thresholds) -> Sequence[str]:
    return tuple(dict.fromkeys((*thresholds, *_BASIC)))


def _limits(
    args: LowUtilizationArgs, shares: Mapping[str, _Amounts]
) -> tuple[Thresholds, Thresholds]:
    """The percentages below and above which nodes are."""
    if not args.use_deviation_thresholds:
        return args.thresholds, args.target_thresholds
    means = {
        name: sum(share[name] for share in shares.values()) / len(shares)
        for name in args.thresholds
    }
    low = {name: _clamped(means[name] - span) for name, span in args.thresholds.items()}
    high = {
        name: _clamped(means[name] + span)
        for name, span in args.target_thresholds.items()
        if name in means
    }
    return low, high


def _clamped(percentage: float) -> float:
    return min(max(percentage, 0.0), 100.0)


def _amount(name: str, resources: Resources) -> int:
    return resources.allowed_pods if name == "pods" else amount_of(name, resources)


def _used(view: View, seen: SeenNode, names: Iterable[str]) -> _Amounts:
    total = requested(view.pods_on(seen.name))
    return {name: _amount(name, total) for name in names}


def _shares(view: View, seen: SeenNode, names: Iterable[str]) -> _Amounts:
    used = _used(view, seen, names)
    # A node that lacks a resource has nothing of it in use.
    has = {name: max(_amount(name, seen.info.allocatable), 1) for name in names}
    return {name: 100.0 * used[name] / has[name] for name in names}


def _share_of(seen: SeenNode, names: Iterable[str], percentages: Thresholds) -> _Amounts:
    """The part of a node below the percentages; all of it where there is none."""
    return {
        name: _amount(name, seen.info.allocatable) * percentages.get(name, 100.0) / 100.0
        for name in names
    }


def _free(
    view: View, nodes: Iterable[SeenNode], names: Sequence[str], percentages: Thresholds
) -> _Amounts:
    """What can still be placed on nodes until they reach the percentages."""
    free = dict.fromkeys(names, 0.0)
    for seen in nodes:
        most, used = _share_of(seen, names, percentages), _used(view, seen, names)
        for name in names:
            free[name] += most[name] - used[name]
    return free


def _is_below(shares: Mapping[str, float], thresholds: Thresholds) -> bool:
    return all(shares[name] <= limit for name, limit in thresholds.items())


def _is_above(shares: Mapping[str, float], thresholds: Thresholds) -> bool:
    return any(shares.get(name, 0.0) > limit for name, limit in thresholds.items())


def _may_go(pod: PodInfo, namespaces: Namespaces, targets: Iterable[SeenNode]) -> bool:
    return pod.namespace not in namespaces.exclude and any(
        first_untolerated(seen.node.spec.taints, pod.tolerations) is None for seen in targets
    )


def _requests_any(pod: PodInfo, thresholds: Thresholds) -> bool:
    return any(_amount(name, pod.accounted.requested) for name in thresholds)


def _subtract(pod: PodInfo, *amounts: _Amounts) -> None:
    for each in amounts:
        for name in each:
            each[name] -= 1 if name == "pods" else _amount(name, pod.accounted.requested)
