"""Names in the pod that match nothing, and are close to one that exists: typing mistakes.

Said before anything else: a selector with a wrong letter is mended by that letter, not by a label
on a node.
"""

from collections.abc import Iterable, Iterator

from kubestow.api.labels import Requirement
from kubestow.api.pod import Toleration
from kubestow.api.pod_info import AffinityTerm
from kubestow.api.resources import amount_of, is_scalar
from kubestow.api.taints import HARD_EFFECTS, taint_text
from kubestow.close_names import close_names
from kubestow.explain.evidence.context import EvidenceContext
from kubestow.explain.evidence.facts import Mistake
from kubestow.explain.evidence.resources import demands_of
from kubestow.explain.evidence.selectors import selector_text


def find_mistakes(context: EvidenceContext) -> tuple[Mistake, ...]:
    """The mistakes of a pod that fits nowhere, each once."""
    found = [
        *_in_selection(context),
        *_in_tolerations(context),
        *_in_topology_keys(context),
        *_in_pod_terms(context),
        *_in_resources(context),
    ]
    return tuple(dict.fromkeys(found))


def _labels(context: EvidenceContext) -> dict[str, dict[str, str]]:
    def read() -> dict[str, dict[str, str]]:
        found: dict[str, dict[str, str]] = {}
        for node in context.snapshot.nodes:
            for key, value in node.metadata.labels.items():
                found.setdefault(key, {}).setdefault(value, node.metadata.name)
        return found

    return context.once("labels of nodes", read)


# --- node labels ---


def _in_selection(context: EvidenceContext) -> Iterator[Mistake]:
    required = context.pod.required_node_affinity
    for requirement in required.equalities:
        yield from _requirement(context, requirement, "nodeSelector")
    for term in () if required.selector is None else required.selector.terms:
        for requirement in term.labels:
            yield from _requirement(context, requirement, "nodeAffinity")


def _requirement(
    context: EvidenceContext, requirement: Requirement, where: str
) -> Iterator[Mistake]:
    if requirement.operator not in ("In", "Exists", "Gt", "Lt"):
        return
    labels, key = _labels(context), requirement.key
    if key not in labels:
        yield from _key(labels, requirement, where)
        return
    values = labels[key]
    if requirement.operator != "In" or any(value in values for value in requirement.values):
        return
    for value in sorted(requirement.values):
        for meant in close_names(value, values)[:1]:
            yield Mistake(
                kind="LabelValue",
                where=where,
                key=key,
                given=value,
                meant=meant,
                text=f"no node has {key}={value}; {values[meant]} has {key}={meant}",
            )


def _key(
    labels: dict[str, dict[str, str]], requirement: Requirement, where: str
) -> Iterator[Mistake]:
    close = close_names(requirement.key, labels)
    # One that has the value, first.
    close = sorted(close, key=lambda each: not any(v in labels[each] for v in requirement.values))
    for meant in close[:1]:
        values = labels[meant]
        value = next((each for each in sorted(requirement.values) if each in values), None)
        example = next(iter(values)) if value is None else value
        yield Mistake(
            kind="LabelKey",
            where=where,
            given=requirement.key,
            meant=meant,
            text=f"{requirement.key} is no label of any node; {meant} is: {values[example]} has "
            f"{meant}={example}",
        )


def _in_topology_keys(context: EvidenceContext) -> Iterator[Mistake]:
    spec = context.pod.pod.spec
    keys = [
        (each.topology_key, "topologySpreadConstraints")
        for each in spec.topology_spread_constraints
    ]
    keys += [(term.topology_key, "podAffinity") for term in _terms(context)]
    for key, where in dict.fromkeys(keys):
        labels = _labels(context)
        for meant in () if key in labels else close_names(key, labels)[:1]:
            yield Mistake(
                kind="TopologyKey",
                where=where,
                given=key,
                meant=meant,
                text=f"{key} is no label of any node, so it is no topology; {meant} is one",
            )


# --- taints ---


def _in_tolerations(context: EvidenceContext) -> Iterator[Mistake]:
    taints = {
        (taint.key, taint.value): taint
        for node in context.snapshot.nodes
        for taint in node.spec.taints
        if taint.effect in HARD_EFFECTS
        and not context.pod.tolerations.accepts(taint, comparison_operators=context.compares_taints)
    }
    keys = {key for key, _ in taints}
    for toleration in context.pod.pod.spec.tolerations:
        meant = _meant_taint(toleration, keys, taints)
        if meant is not None:
            given = f"{toleration.key}={toleration.value}" if toleration.value else toleration.key
            taint = taint_text(taints[meant])
            yield Mistake(
                kind="Toleration",
                where="tolerations",
                given=given,
                meant=taint,
                text=f"the toleration of {given} accepts no taint of any node; there is {taint}",
            )


def _meant_taint(
    toleration: Toleration, keys: set[str], taints: Iterable[tuple[str, str]]
) -> tuple[str, str] | None:
    """The key and value of the taint that was meant."""
    if not toleration.key or toleration.key.startswith("node.kubernetes.io/"):
        return None
    if toleration.key in keys:
        values = [value for key, value in taints if key == toleration.key]
        close = close_names(toleration.value, values)
        return (toleration.key, close[0]) if close else None
    close = close_names(toleration.key, keys)
    return next((each for each in taints if close and each[0] == close[0]), None)


# --- other pods ---


def _terms(context: EvidenceContext) -> tuple[AffinityTerm, ...]:
    return (*context.pod.required_affinity_terms, *context.pod.required_anti_affinity_terms)


def _in_pod_terms(context: EvidenceContext) -> Iterator[Mistake]:
    """Labels of affinity terms that no pod has; an anti-affinity that selects nothing is fine."""
    for term in context.pod.required_affinity_terms:
        for requirement in term.selector.requirements:
            if requirement.operator != "In":
                continue
            values = _pod_values(context, term, requirement.key)
            if any(value in values for value in requirement.values):
                continue
            for value in sorted(requirement.values):
                for meant in close_names(value, values)[:1]:
                    yield Mistake(
                        kind="PodLabel",
                        where="podAffinity",
                        key=requirement.key,
                        given=value,
                        meant=meant,
                        text=f"no pod matches {selector_text(term.selector)}; {values[meant]} has "
                        f"{requirement.key}={meant}",
                    )


def _pod_values(context: EvidenceContext, term: AffinityTerm, key: str) -> dict[str, str]:
    """The values of a label in the namespaces of a term, each with a pod that has it."""
    found: dict[str, str] = {}
    for info in context.snapshot.node_infos:
        for pod in info.pods:
            value = pod.pod.metadata.labels.get(key)
            if value is not None and pod.namespace in term.namespaces:
                found.setdefault(value, pod.key)
    return found


# --- resources ---


def _in_resources(context: EvidenceContext) -> Iterator[Mistake]:
    for demand in demands_of(context):
        if not is_scalar(demand.name) or demand.by_devices:
            continue
        infos = context.snapshot.node_infos
        if any(amount_of(demand.name, info.allocatable) for info in infos):
            continue
        known = {name for info in infos for name in info.allocatable.scalar}
        for meant in close_names(demand.name, known)[:1]:
            yield Mistake(
                kind="Resource",
                where="resources",
                given=demand.name,
                meant=meant,
                text=f"no node has the resource {demand.name}; there is {meant}",
            )
