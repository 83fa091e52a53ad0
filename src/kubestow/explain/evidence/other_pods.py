"""Which pods are in the way, or missing, by pod affinity and anti-affinity (InterPodAffinity)."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple

from kubestow.api.node import Node
from kubestow.api.pod_info import AffinityTerm, PodClass, PodInfo
from kubestow.explain.evidence.context import EvidenceContext, NodeView
from kubestow.explain.evidence.facts import LISTED_MAX, PodRule, PodTerm
from kubestow.explain.evidence.selectors import selector_text


class _Found(NamedTuple):
    """A pod on a row, and the topology key of the term that concerns it."""

    pod: PodInfo
    row: int
    term: AffinityTerm


def far(view: NodeView, _: str) -> list[PodTerm]:
    """The terms of the pod's affinity without a matching pod in the node's domain."""
    terms = view.pod.required_affinity_terms
    matching = [
        *_matching_all(view.context),
        *(pod for pod in _counted_ahead(view) if _matches_all(view.context, pod.pod.pod_class)),
    ]
    found: list[PodTerm] = []
    for term in terms:
        domain = view.node.metadata.labels.get(term.topology_key)
        if domain is None or not any(_is_in(view, each, term, domain) for each in matching):
            found.append(_fact("Affinity", term, domain, [each.pod for each in matching]))
    return found


def near(view: NodeView, _: str) -> list[PodTerm]:
    """The terms of the pod's anti-affinity that select a pod in the node's domain."""
    found: list[PodTerm] = []
    for term in dict.fromkeys(view.pod.required_anti_affinity_terms):
        domain = view.node.metadata.labels.get(term.topology_key)
        if domain is None:
            continue
        pods = [
            *_matching(view.context, term),
            *(
                each
                for each in _counted_ahead(view)
                if view.context.selects(term, each.pod.pod_class)
            ),
        ]
        pods = [each.pod for each in pods if _is_in(view, each, term, domain)]
        if pods:
            found.append(_fact("AntiAffinity", term, domain, pods))
    return found


def forbidden(view: NodeView, _: str) -> list[PodTerm]:
    """The pods whose anti-affinity selects this one, by term, in the node's domain."""
    by_term: dict[AffinityTerm, list[PodInfo]] = {}
    own = view.pod.pod_class
    ahead = (
        _Found(pod, view.row, term)
        for pod in view.ahead
        for term in pod.required_anti_affinity_terms
        if view.context.selects(term, own)
    )
    for each in (*_forbidding(view.context), *ahead):
        domain = view.node.metadata.labels.get(each.term.topology_key)
        if domain is not None and _is_in(view, each, each.term, domain):
            by_term.setdefault(each.term, []).append(each.pod)
    return [
        _fact(
            "ExistingAntiAffinity",
            term,
            view.node.metadata.labels[term.topology_key],
            pods,
        )
        for term, pods in by_term.items()
    ]


def same_topology(context: EvidenceContext, node: Node) -> Hashable:
    """The node's values of the keys of all terms that matter to the pod."""

    def read() -> list[str]:
        terms = (*context.pod.required_affinity_terms, *context.pod.required_anti_affinity_terms)
        return sorted({each.topology_key for each in (*terms, *_forbidding_terms(context))})

    labels = node.metadata.labels
    return tuple(labels.get(key) for key in context.once("affinity keys", read))


def _forbidding_terms(context: EvidenceContext) -> Iterator[AffinityTerm]:
    return (each.term for each in _forbidding(context))


def _fact(
    rule: PodRule, term: AffinityTerm, domain: str | None, pods: Sequence[PodInfo]
) -> PodTerm:
    names = [pod.key for pod in pods]
    return PodTerm(
        rule=rule,
        topology_key=term.topology_key,
        domain=domain,
        selector=selector_text(term.selector),
        pods=tuple(names[:LISTED_MAX]),
        count=len(names),
    )


def _is_in(view: NodeView, found: _Found, term: AffinityTerm, domain: str) -> bool:
    node = view.context.snapshot.nodes[found.row]
    return node.metadata.labels.get(term.topology_key) == domain


def _counted_ahead(view: NodeView) -> list[_Found]:
    """The pods that are nominated to the node; the term does not matter."""
    terms = (*view.pod.required_affinity_terms, *view.pod.required_anti_affinity_terms)
    return [_Found(pod, view.row, terms[0]) for pod in view.ahead] if terms else []


def _matching_all(context: EvidenceContext) -> list[_Found]:
    """The pods that all terms of the pod's affinity select: only these count (spec 06 §6.2.5)."""
    terms = context.pod.required_affinity_terms

    def find() -> list[_Found]:
        is_matching: dict[PodClass, bool] = {}
        return [
            _Found(pod, row, terms[0])
            for row, pod in _pods(context)
            if _cached(is_matching, pod.pod_class, lambda each: _matches_all(context, each))
        ]

    return context.once("affinity pods", find) if terms else []


def _matches_all(context: EvidenceContext, pod_class: PodClass) -> bool:
    terms = context.pod.required_affinity_terms
    return all(context.selects(term, pod_class) for term in terms)


def _matching(context: EvidenceContext, term: AffinityTerm) -> list[_Found]:
    def find() -> list[_Found]:
        is_matching: dict[PodClass, bool] = {}
        return [
            _Found(pod, row, term)
            for row, pod in _pods(context)
            if _cached(is_matching, pod.pod_class, lambda each: context.selects(term, each))
        ]

    return context.once(("anti-affinity pods", term), find)


def _cached(
    known: dict[PodClass, bool], pod_class: PodClass, ask: Callable[[PodClass], bool]
) -> bool:
    answer = known.get(pod_class)
    if answer is None:
        answer = known[pod_class] = ask(pod_class)
    return answer


def _pods(context: EvidenceContext) -> Iterator[tuple[int, PodInfo]]:
    for row, info in enumerate(context.snapshot.node_infos):
        for pod in info.pods:
            yield row, pod


def _forbidding(context: EvidenceContext) -> list[_Found]:
    """The pods with a required anti-affinity that selects this one."""

    def find() -> list[_Found]:
        answers: dict[AffinityTerm, bool] = {}
        own = context.pod.pod_class
        found: list[_Found] = []
        for row, info in enumerate(context.snapshot.node_infos):
            for pod in info.pods_with_required_anti_affinity:
                for term in pod.required_anti_affinity_terms:
                    if term not in answers:
                        answers[term] = context.selects(term, own)
                    if answers[term]:
                        found.append(_Found(pod, row, term))
        return found

    return context.once("forbidding pods", find)
