"""What a score of a node was made of, for the plugins that score by default."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import numpy as np

from kubestow.api.labels import SelectorError
from kubestow.api.node_selector import PreferredTerms
from kubestow.api.taints import PREFER_NO_SCHEDULE, TolerationTable, soft_tolerations, taint_text
from kubestow.arrays import IntArray
from kubestow.config.load_aware_args import RESOURCES
from kubestow.explain.evidence.amounts import amount_text
from kubestow.explain.evidence.context import EvidenceContext, NodeView
from kubestow.explain.evidence.score_facts import (
    DomainPods,
    Image,
    LoadShare,
    PreferredLabels,
    PreferredPods,
    ResourceShare,
    ScorePart,
    SoftTaint,
)
from kubestow.explain.evidence.selectors import requirements_text, selector_text
from kubestow.explain.evidence.spread import domain_counts
from kubestow.index.nodes import Nodes, nodes_of
from kubestow.plugins.image_locality import ImageLocality, pod_images
from kubestow.plugins.inter_pod_affinity import InterPodAffinity
from kubestow.plugins.load_aware import LoadAware
from kubestow.plugins.node_affinity import NodeAffinity
from kubestow.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from kubestow.plugins.node_resources_fit.plugin import NodeResourcesFit
from kubestow.plugins.pod_topology_spread.constraints import SOFT, topology_keys
from kubestow.plugins.pod_topology_spread.plugin import PodTopologySpread
from kubestow.plugins.taint_toleration import TaintToleration


def score_parts(context: EvidenceContext, row: int, plugin: str) -> tuple[ScorePart, ...]:
    """What a plugin's score of one node was made of; empty for plugins that are not known."""
    find = _FINDERS.get(plugin)
    return () if find is None else tuple(find(NodeView(context, row, ())))


def _fit(view: NodeView) -> Iterator[ScorePart]:
    plugin = view.context.plugin(NodeResourcesFit)
    if plugin is not None:
        names, loads = plugin.loads_of(view.pod, _only(view))
        yield from _shares(names, *loads)


def _balance(view: NodeView) -> Iterator[ScorePart]:
    plugin = view.context.plugin(NodeResourcesBalancedAllocation)
    found = None if plugin is None else plugin.loads_of(view.pod, _only(view))
    if found is not None:
        names, loads = found
        yield from _shares(names, *loads)


def _only(view: NodeView) -> Nodes:
    return nodes_of(view.context.snapshot, np.array([view.row], np.intp))


def _shares(
    names: tuple[str, ...],
    allocatable: IntArray,
    used: IntArray,
    request: IntArray,
    weight: IntArray,
) -> Iterator[ResourceShare]:
    """The shares of one node; int64[resource, 1] each."""
    for place, name in enumerate(names):
        offered, taken = int(allocatable[place][0]), int(used[place][0])
        wanted = int(request[place][0])
        if offered > 0:
            yield ResourceShare(
                resource=name,
                used=amount_text(name, taken),
                wanted=amount_text(name, wanted),
                allocatable=amount_text(name, offered),
                before=round(taken / offered, 4),
                after=round((taken + wanted) / offered, 4),
                weight=int(weight[place][0]),
            )


def _load(view: NodeView) -> Iterator[ScorePart]:
    """Nothing for a node without a usable measurement: it gets the mean of the others."""
    plugin = view.context.plugin(LoadAware)
    if plugin is None:
        return
    load, row = plugin.load, view.row
    load.refresh(view.context.snapshot)
    if not load.usable.item(row):
        return
    estimate = plugin.estimates.of(view.pod)
    for place, name in enumerate(RESOURCES):
        used, pending = load.measured.item(place, row), load.pending.item(place, row)
        offered = load.allocatable.item(place, row)
        yield LoadShare(
            resource=name,
            used=amount_text(name, used),
            pending=amount_text(name, pending),
            estimate=amount_text(name, estimate[place]),
            allocatable=amount_text(name, offered),
            before=round((used + pending) / offered, 4),
            after=round((used + pending + estimate[place]) / offered, 4),
        )


def _preferred_labels(view: NodeView) -> Iterator[ScorePart]:
    affinity = view.pod.pod.spec.affinity
    node_affinity = None if affinity is None else affinity.node_affinity
    preferred = None if node_affinity is None else node_affinity.preferred
    try:
        terms = PreferredTerms.of(preferred or ()).terms
    except SelectorError:
        return
    for entry in terms:
        yield PreferredLabels(
            term=requirements_text(entry.term.labels),
            weight=entry.weight,
            matches=entry.term.matches(view.node.metadata.labels, view.name),
        )


def _soft_taints(view: NodeView) -> Iterator[ScorePart]:
    tolerations = TolerationTable(soft_tolerations(view.pod.pod.spec.tolerations))
    compares = view.context.compares_taints
    for taint in view.node.spec.taints:
        is_soft = taint.effect == PREFER_NO_SCHEDULE
        if is_soft and not tolerations.accepts(taint, comparison_operators=compares):
            yield SoftTaint(taint=taint_text(taint))


def _images(view: NodeView) -> Iterator[ScorePart]:
    nodes = _only(view)
    for image in dict.fromkeys(pod_images(view.pod.pod)):
        column = nodes.image_column(image)
        place = 0 if column is None else int(column.ids[0])
        if column is not None and column.sizes[place]:
            yield Image(
                image=image,
                size=amount_text("memory", int(column.sizes[place])),
                nodes_with_it=int(column.node_counts[place]),
            )


def _domain_pods(view: NodeView) -> Iterator[ScorePart]:
    plugin, pod = view.context.plugin(PodTopologySpread), view.pod.pod
    constraints = [] if plugin is None else plugin.constraints.of(pod, SOFT)
    is_own = bool(pod.spec.topology_spread_constraints)
    keys = topology_keys(constraints) if is_own else ()
    for constraint in constraints:
        domain = view.node.metadata.labels.get(constraint.topology_key)
        counts = domain_counts(view.context, constraint, keys)
        yield DomainPods(
            topology_key=constraint.topology_key,
            domain=domain,
            selector=selector_text(constraint.selector),
            count=0 if domain is None else counts.get(domain, 0),
        )


def _preferred_pods(view: NodeView) -> Iterator[ScorePart]:
    """The pod's own preferred terms; terms of pods that are there count as well."""
    context, pod = view.context, view.pod
    weighted = [(each.term, each.weight) for each in pod.preferred_affinity_terms]
    weighted += [(each.term, -each.weight) for each in pod.preferred_anti_affinity_terms]
    for term, weight in weighted:
        domain = view.node.metadata.labels.get(term.topology_key)
        count = 0
        for node, info in zip(context.snapshot.nodes, context.snapshot.node_infos, strict=True):
            if domain is None or node.metadata.labels.get(term.topology_key) != domain:
                continue
            classes = info.class_counts.items()
            count += sum(number for each, number in classes if context.selects(term, each))
        yield PreferredPods(
            topology_key=term.topology_key,
            domain=domain,
            selector=selector_text(term.selector),
            weight=weight,
            count=count,
        )


_FINDERS: Final[Mapping[str, Callable[[NodeView], Iterator[ScorePart]]]] = {
    NodeResourcesFit.name: _fit,
    NodeResourcesBalancedAllocation.name: _balance,
    NodeAffinity.name: _preferred_labels,
    TaintToleration.name: _soft_taints,
    ImageLocality.name: _images,
    PodTopologySpread.name: _domain_pods,
    InterPodAffinity.name: _preferred_pods,
    LoadAware.name: _load,
}
