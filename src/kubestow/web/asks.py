"""What a pod asks for besides amounts, as short texts: selector, tolerations, affinity, spread,
volumes, claims and labels. For people; the rules themselves are those of the plugins.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from kubestow.api.group import GroupKey
from kubestow.api.labels import SelectorError, parse_label_selector
from kubestow.api.meta import LabelSelector
from kubestow.api.pod import (
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    Toleration,
    TopologySpreadConstraint,
    Volume,
)
from kubestow.explain.evidence.selectors import selector_text

# Texts of one kind; a hostile pod has thousands.
TEXTS_MAX: Final = 50

_COMPARED: Final = {"Gt": ">", "Lt": "<"}


class Ask(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One kind of what a pod asks for; `more` texts are left out."""

    name: str
    texts: tuple[str, ...]
    more: int = 0


def asks_of(pod: Pod, group: GroupKey | None = None) -> tuple[Ask, ...]:
    """What the pod asks for, in the order in which it is shown; what it does not is left out."""
    spec = pod.spec
    node_affinity = None if spec.affinity is None else spec.affinity.node_affinity
    required = () if node_affinity is None else _required(node_affinity.required)
    preferred = () if node_affinity is None else node_affinity.preferred or ()
    kinds: list[tuple[str, Iterable[str]]] = [
        ("Scheduling gates", (gate.name for gate in spec.scheduling_gates)),
        ("Node selector", _pairs(spec.node_selector or {})),
        ("Node affinity", required),
        (
            "Preferred nodes",
            (f"{_term(each.preference)} (weight {each.weight})" for each in preferred),
        ),
        ("Tolerations", map(_toleration, spec.tolerations)),
        ("Pod affinity", _pod_terms(spec.affinity and spec.affinity.pod_affinity)),
        ("Pod anti-affinity", _pod_terms(spec.affinity and spec.affinity.pod_anti_affinity)),
        ("Spread", map(_spread, spec.topology_spread_constraints)),
        ("Host ports", _ports(pod)),
        ("Volumes", map(_volume, spec.volumes)),
        (
            "Device claims",
            (
                f"{each.name}: {each.resource_claim_name or each.resource_claim_template_name}"
                for each in spec.resource_claims
            ),
        ),
        ("Group", () if group is None else (group.name,)),
        ("Labels", _pairs(pod.metadata.labels)),
    ]
    found = (_ask(name, [*texts]) for name, texts in kinds)
    return tuple(each for each in found if each.texts)


def _ask(name: str, texts: list[str]) -> Ask:
    return Ask(name=name, texts=tuple(texts[:TEXTS_MAX]), more=max(0, len(texts) - TEXTS_MAX))


def _pairs(labels: Mapping[str, str]) -> Iterator[str]:
    return (f"{key}={value}" for key, value in sorted(labels.items()))


def _required(selector: msgspec.Struct | None) -> Iterator[str]:
    terms: tuple[NodeSelectorTerm, ...] = getattr(selector, "node_selector_terms", ())
    return map(_term, terms)


def _term(term: NodeSelectorTerm) -> str:
    rules = [*term.match_expressions, *term.match_fields]
    return ", ".join(map(_requirement, rules)) or "matches no node"


def _requirement(rule: NodeSelectorRequirement) -> str:
    values = ", ".join(rule.values or ())
    match rule.operator:
        case "Exists":
            return rule.key
        case "DoesNotExist":
            return f"no {rule.key}"
        case "In":
            return (
                f"{rule.key}={values}" if len(rule.values or ()) == 1 else f"{rule.key} in {values}"
            )
        case "NotIn":
            return f"{rule.key} not in {values}"
        case _:
            return f"{rule.key} {_COMPARED.get(rule.operator, rule.operator)} {values}"


def _toleration(toleration: Toleration) -> str:
    if not toleration.key:
        text = "any taint"
    elif toleration.operator == "Exists":
        text = toleration.key
    elif toleration.operator in _COMPARED:
        text = f"{toleration.key} {_COMPARED[toleration.operator]} {toleration.value}"
    else:
        text = f"{toleration.key}={toleration.value}"
    if toleration.effect:
        text = f"{text}:{toleration.effect}"
    if toleration.toleration_seconds is not None:
        text = f"{text} for {toleration.toleration_seconds} s"
    return text


def _pod_terms(affinity: PodAffinity | None) -> Iterator[str]:
    if affinity is None:
        return
    yield from map(_pod_term, affinity.required)
    for each in affinity.preferred:
        yield f"{_pod_term(each.pod_affinity_term)} (preferred, weight {each.weight})"


def _pod_term(term: PodAffinityTerm) -> str:
    text = f"{_selector(term.label_selector)} by {term.topology_key}"
    if term.namespaces:
        text = f"{text}, in {', '.join(term.namespaces)}"
    if term.namespace_selector is not None:
        text = f"{text}, in namespaces with {_selector(term.namespace_selector)}"
    keys = [*term.match_label_keys, *(f"other {key}" for key in term.mismatch_label_keys)]
    return f"{text}, same {', '.join(keys)}" if keys else text


def _spread(rule: TopologySpreadConstraint) -> str:
    kind = "required" if rule.when_unsatisfiable == "DoNotSchedule" else "preferred"
    text = (
        f"{_selector(rule.label_selector)} by {rule.topology_key}, at most {rule.max_skew} apart "
        f"({kind})"
    )
    return text if rule.min_domains is None else f"{text}, in {rule.min_domains} domains or more"


def _selector(selector: LabelSelector | None) -> str:
    try:
        return selector_text(parse_label_selector(selector))
    except SelectorError:
        return "a selector that is not valid"


def _ports(pod: Pod) -> Iterator[str]:
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        for port in container.ports:
            if port.host_port:
                yield f"{port.host_port}/{port.protocol or 'TCP'}"


def _volume(volume: Volume) -> str:
    if volume.persistent_volume_claim is not None:
        return f"{volume.name}: claim {volume.persistent_volume_claim.claim_name}"
    if volume.ephemeral is not None:
        return f"{volume.name}: a claim of its own"
    if volume.csi is not None:
        return f"{volume.name}: CSI {volume.csi.driver}"
    sources = (name for name in volume.__struct_fields__ if name != "name")
    kind = next((name for name in sources if getattr(volume, name) is not None), "")
    return f"{volume.name}: {kind.replace('_', ' ')}" if kind else volume.name
