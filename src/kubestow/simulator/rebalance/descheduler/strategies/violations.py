"""Pods on nodes that their own rules no longer allow: node affinity, taints, anti-affinity."""

from collections.abc import Callable
from typing import Final

from kubestow.api.node import Taint
from kubestow.api.node_selector import PreferredTerms
from kubestow.api.pod_info import PodInfo
from kubestow.simulator.rebalance.descheduler.policy import (
    NodeAffinityRemovalArgs,
    NodeTaintsArgs,
    Selecting,
)
from kubestow.simulator.rebalance.descheduler.view import (
    Evict,
    SeenNode,
    View,
    chooser,
    is_apart,
    least_important_first,
    matches_node,
)

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_NO_SCHEDULE: Final = "NoSchedule"
_PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"

Passes = Callable[[PodInfo], bool]


def node_affinity(view: View, args: NodeAffinityRemovalArgs, passes: Passes, evict: Evict) -> None:
    """Evict pods whose node does not match, or is not the best of those they prefer."""
    is_chosen = chooser(args.namespaces, args.label_selector)
    for kind in args.node_affinity_type:
        is_violated = _is_outside if kind == _REQUIRED else _is_better_elsewhere
        for seen in view.nodes:
            for pod in view.pods_on(seen.name):
                if (
                    is_chosen(pod)
                    and passes(pod)
                    and is_violated(view, pod, seen)
                    and any(view.fits(pod, each) for each in view.nodes)
                ):
                    evict(pod)


def _is_outside(view: View, pod: PodInfo, seen: SeenNode) -> bool:
    affinity = pod.pod.spec.affinity
    rules = None if affinity is None else affinity.node_affinity
    return rules is not None and rules.required is not None and not matches_node(pod, seen)


def _is_better_elsewhere(view: View, pod: PodInfo, seen: SeenNode) -> bool:
    affinity = pod.pod.spec.affinity
    rules = None if affinity is None else affinity.node_affinity
    if rules is None or not rules.preferred:
        return False
    terms = PreferredTerms.of(rules.preferred)
    here = terms.score(seen.labels, seen.name)
    return any(terms.score(each.labels, each.name) > here for each in view.nodes)


def node_taints(view: View, args: NodeTaintsArgs, passes: Passes, evict: Evict) -> None:
    """Evict pods that do not tolerate a taint of their node."""
    is_chosen = chooser(args.namespaces, args.label_selector)
    for seen in view.nodes:
        taints = [taint for taint in seen.node.spec.taints if _counts(taint, args)]
        for pod in view.pods_on(seen.name) if taints else ():
            if (
                is_chosen(pod)
                and passes(pod)
                and not all(pod.tolerations.accepts(taint) for taint in taints)
            ):
                evict(pod)


def _counts(taint: Taint, args: NodeTaintsArgs) -> bool:
    effects = (_NO_SCHEDULE, _PREFER_NO_SCHEDULE)[: 2 if args.include_prefer_no_schedule else 1]
    names = {taint.key, f"{taint.key}={taint.value}"}
    return (
        taint.effect in effects
        and names.isdisjoint(args.excluded_taints)
        and (args.included_taints is None or not names.isdisjoint(args.included_taints))
    )


def anti_affinity(view: View, args: Selecting, passes: Passes, evict: Evict) -> None:
    """Evict pods with an anti-affinity term that selects another pod of their domain."""
    is_chosen = chooser(args.namespaces, args.label_selector)
    nodes = {seen.name: seen for seen in view.nodes}
    for seen in view.nodes:
        for pod in least_important_first(view.pods_on(seen.name)):
            if not (pod.has_required_anti_affinity and is_chosen(pod) and passes(pod)):
                continue
            others = [other for other in view.pods() if other.uid != pod.uid and is_chosen(other)]
            if any(is_apart(pod, seen, other, nodes[other.pod.spec.node_name]) for other in others):
                evict(pod)
