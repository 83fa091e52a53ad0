"""Selectors, affinity terms and spread constraints for tests, in short form.

    make_pod(affinity=make_affinity(apart=[make_pod_term("zone", "app=web")]))
    make_pod(spread=[make_spread("zone", "app=web", max_skew=2)])

A selector is written as requirements: `"app=web"`, `"env In a,b"`, `"env NotIn a"`, `"gpu Exists"`.
"""

from collections.abc import Iterable

from kubestow.api.meta import LabelSelector, LabelSelectorRequirement
from kubestow.api.pod import (
    Affinity,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)


def make_selector(*requirements: str) -> LabelSelector:
    """A label selector; without requirements the empty one, which matches everything."""
    equalities = [text.split("=", 1) for text in requirements if "=" in text]
    return LabelSelector(
        match_labels=dict(equalities),
        match_expressions=tuple(_expression(text) for text in requirements if "=" not in text),
    )


def make_pod_term(
    topology_key: str,
    *requirements: str,
    selector: LabelSelector | None = None,
    namespaces: Iterable[str] = (),
    namespace_selector: LabelSelector | None = None,
) -> PodAffinityTerm:
    """A term on pods that meet the requirements, or the selector; without either, on no pod."""
    if requirements:
        selector = make_selector(*requirements)
    return PodAffinityTerm(
        topology_key=topology_key,
        label_selector=selector,
        namespaces=tuple(namespaces),
        namespace_selector=namespace_selector,
    )


def make_affinity(
    *,
    near: Iterable[PodAffinityTerm] = (),
    apart: Iterable[PodAffinityTerm] = (),
    prefers: Iterable[tuple[int, PodAffinityTerm]] = (),
    avoids: Iterable[tuple[int, PodAffinityTerm]] = (),
) -> Affinity:
    """Required affinity (`near`) and anti-affinity (`apart`), and the weighted ones of each."""
    return Affinity(
        pod_affinity=_pod_affinity(near, prefers), pod_anti_affinity=_pod_affinity(apart, avoids)
    )


def make_spread(
    topology_key: str,
    *requirements: str,
    selector: LabelSelector | None = None,
    max_skew: int = 1,
    hard: bool = True,
    min_domains: int | None = None,
    affinity_policy: str | None = None,
    taints_policy: str | None = None,
    match_label_keys: Iterable[str] = (),
) -> TopologySpreadConstraint:
    """A spread constraint over pods that meet the requirements, or the selector."""
    if requirements:
        selector = make_selector(*requirements)
    return TopologySpreadConstraint(
        topology_key=topology_key,
        label_selector=selector,
        max_skew=max_skew,
        when_unsatisfiable="DoNotSchedule" if hard else "ScheduleAnyway",
        min_domains=min_domains,
        node_affinity_policy=affinity_policy,
        node_taints_policy=taints_policy,
        match_label_keys=tuple(match_label_keys),
    )


def _expression(text: str) -> LabelSelectorRequirement:
    key, operator, *values = text.split(" ", 2)
    return LabelSelectorRequirement(
        key=key, operator=operator, values=tuple(values[0].split(",")) if values else None
    )


def _pod_affinity(
    required: Iterable[PodAffinityTerm], preferred: Iterable[tuple[int, PodAffinityTerm]]
) -> PodAffinity | None:
    terms = PodAffinity(
        required=tuple(required),
        preferred=tuple(
            WeightedPodAffinityTerm(weight=weight, pod_affinity_term=term)
            for weight, term in preferred
        ),
    )
    return terms if terms.required or terms.preferred else None
