"""Which spread constraint one more pod would break, with the counts (PodTopologySpread)."""

from collections.abc import Hashable, Sequence

from kubestow.api.node import Node
from kubestow.api.taints import HARD_EFFECTS
from kubestow.explain.evidence.context import EvidenceContext, NodeView
from kubestow.explain.evidence.facts import LISTED_MAX, Domain, Label, Spread
from kubestow.explain.evidence.selectors import selector_text
from kubestow.plugins.pod_topology_spread.constraints import HARD, Constraint, topology_keys
from kubestow.plugins.pod_topology_spread.plugin import PodTopologySpread


def uneven(view: NodeView, _: str) -> list[Spread]:
    """The constraints that are broken on the node, up to the first label that it lacks."""
    found: list[Spread] = []
    for constraint in _constraints(view.context):
        domain = view.node.metadata.labels.get(constraint.topology_key)
        if domain is None:
            break
        broken = _broken(view, constraint, domain)
        if broken is not None:
            found.append(broken)
    return found


def unlabelled(view: NodeView, _: str) -> list[Label]:
    """The first topology key that the node lacks."""
    for constraint in _constraints(view.context):
        key = constraint.topology_key
        if key not in view.node.metadata.labels:
            return [Label(rule="TopologyKey", key=key, operator="Exists", wanted=(), actual=None)]
    return []


def same_domains(context: EvidenceContext, node: Node) -> Hashable:
    labels = node.metadata.labels
    return tuple(labels.get(each.topology_key) for each in _constraints(context))


def _broken(view: NodeView, constraint: Constraint, domain: str) -> Spread | None:
    context = view.context
    keys = topology_keys(_constraints(context))
    counts = dict(domain_counts(context, constraint, keys))
    if view.ahead and _is_eligible(context, constraint, view.node, keys):
        for pod in view.ahead:
            is_counted = pod.namespace == view.pod.namespace
            if is_counted and constraint.selector.matches(pod.pod.metadata.labels):
                counts[domain] = counts.get(domain, 0) + 1
    is_short = len(counts) < constraint.min_domains or not counts
    lowest = 0 if is_short else min(counts.values())
    count = counts.get(domain, 0)
    skew = count + constraint.selector.matches(view.pod.pod.metadata.labels) - lowest
    if skew <= constraint.max_skew:
        return None
    fewest = sorted(counts.items(), key=lambda entry: (entry[1], entry[0]))[:LISTED_MAX]
    return Spread(
        topology_key=constraint.topology_key,
        selector=selector_text(constraint.selector),
        domain=domain,
        count=count,
        lowest=lowest,
        skew=skew,
        max_skew=constraint.max_skew,
        min_domains=constraint.min_domains,
        domain_count=len(counts),
        domains=tuple(Domain(name=name, count=number) for name, number in fewest),
    )


def _constraints(context: EvidenceContext) -> Sequence[Constraint]:
    def read() -> Sequence[Constraint]:
        plugin = context.plugin(PodTopologySpread)
        return () if plugin is None else plugin.constraints.of(context.pod.pod, HARD)

    return context.once("hard constraints", read)


def domain_counts(
    context: EvidenceContext, constraint: Constraint, keys: tuple[str, ...]
) -> dict[str, int]:
    """Matching pods by domain, over the nodes that count; these need labels of all the keys."""

    def count() -> dict[str, int]:
        counts: dict[str, int] = {}
        namespace, selector = context.pod.namespace, constraint.selector
        for node, info in zip(context.snapshot.nodes, context.snapshot.node_infos, strict=True):
            domain = node.metadata.labels.get(constraint.topology_key)
            if domain is None or not _is_eligible(context, constraint, node, keys):
                continue
            found = 0
            # A selector that matches everything counts no pods (spec 06 §6.3.4).
            for pod_class, number in () if selector.is_empty else info.live_class_counts.items():
                if pod_class.namespace == namespace and selector.matches(pod_class.labels):
                    found += number
            counts[domain] = counts.get(domain, 0) + found
        return counts

    return context.once(("spread", constraint, keys), count)


def _is_eligible(
    context: EvidenceContext, constraint: Constraint, node: Node, keys: tuple[str, ...]
) -> bool:
    """Whether pods of a node are counted for a constraint (spec 06 §6.3.4)."""
    labels, pod = node.metadata.labels, context.pod
    if any(key not in labels for key in keys):
        return False
    if constraint.honors_affinity and not pod.required_node_affinity.matches(
        labels, node.metadata.name
    ):
        return False
    return not constraint.honors_taints or all(
        pod.tolerations.accepts(taint, comparison_operators=context.compares_taints)
        for taint in node.spec.taints
        if taint.effect in HARD_EFFECTS
    )
