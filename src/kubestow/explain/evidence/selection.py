"""Which label, name or feature of the node is not as the pod requires (NodeAffinity, NodeName,
NodeDeclaredFeatures, and what PreFilter left out)."""

from collections.abc import Hashable, Iterator

from kubestow.api.declared_features import KNOWN_FEATURES, known_features, required_features
from kubestow.api.labels import Requirement
from kubestow.api.node import Node
from kubestow.api.node_selector import CompiledNodeSelector, CompiledTerm
from kubestow.explain.evidence.context import EvidenceContext, NodeView
from kubestow.explain.evidence.facts import (
    LISTED_MAX,
    Features,
    Label,
    LabelRule,
    NodeName,
    Restricted,
)
from kubestow.framework.cycle_state import CycleState
from kubestow.framework.plugin import PreFilterPlugin, Restriction
from kubestow.framework.profile import plugin_name
from kubestow.index.nodes import nodes_of
from kubestow.plugins.node_affinity import NodeAffinity


def unmatched_labels(view: NodeView, _: str) -> list[Label]:
    """The entries of the node selector, and the expressions of each term, that do not match."""
    required = view.pod.required_node_affinity
    labels = view.node.metadata.labels
    found = [
        _label(view.node, each, "NodeSelector", 0)
        for each in required.equalities
        if not each.matches(labels)
    ]
    if required.selector is not None and not required.selector.matches(labels, view.name):
        found += unmatched_terms(required.selector, view.node, "NodeAffinity")
    return found


def unmatched_added(view: NodeView, _: str) -> list[Label]:
    """What does not match of the affinity that the profile adds."""
    plugin = view.context.plugin(NodeAffinity)
    added = None if plugin is None else plugin.added_required
    return [] if added is None else list(unmatched_terms(added, view.node, "AddedAffinity"))


def unmatched_terms(selector: CompiledNodeSelector, node: Node, rule: LabelRule) -> Iterator[Label]:
    """What does not match in each term of a selector that does not match as a whole."""
    for number, term in enumerate(selector.terms):
        yield from _unmatched(term, node, rule, number)
    if not selector.terms:
        yield Label(rule=rule, key="", operator="no valid term", wanted=(), actual=None)


def same_labels(context: EvidenceContext, node: Node) -> Hashable:
    """The node's values of all labels that the pod's own rules read."""
    labels = node.metadata.labels
    named = node.metadata.name if _keys(context)[1] else ""
    return named, *[labels.get(key) for key in _keys(context)[0]]


def other_node(view: NodeView, _: str) -> list[NodeName]:
    wanted = view.pod.pod.spec.node_name
    return [NodeName(wanted=wanted, exists=view.context.snapshot.row_of(wanted) is not None)]


def lacking_features(view: NodeView, _: str) -> list[Features]:
    lacking = required_features(view.pod.pod) & ~known_features(view.node.status.declared_features)
    names = [name for bit, name in enumerate(KNOWN_FEATURES) if lacking >> bit & 1]
    return [Features(missing=tuple(names))] if names else []


def restricted(view: NodeView, reason: str) -> list[Restricted]:
    """The only nodes that the PreFilter plugins leave which the reason names."""
    context = view.context
    plugins = reason.partition("[")[2].rstrip("]").split()

    def find() -> list[Restricted]:
        names: frozenset[str] | None = None
        for plugin in context.profile.pre_filter:
            left = _left_by(plugin, context) if plugin_name(plugin) in plugins else None
            if left is not None:
                names = left if names is None else names & left
        if names is None:
            return []
        return [
            Restricted(
                plugins=tuple(plugins),
                nodes=tuple(sorted(names)[:LISTED_MAX]),
                count=len(names),
            )
        ]

    return context.once(("restricted", reason), find)


def conflicting_names(view: NodeView, _: str) -> list[Label]:
    """The field expressions of each term, of which none can hold.

    As they are written: PreFilter also reads terms that match nothing for another reason.
    """
    affinity = view.pod.pod.spec.affinity
    node_affinity = None if affinity is None else affinity.node_affinity
    required = None if node_affinity is None else node_affinity.required
    return [
        Label(
            rule="NodeField",
            key=field.key,
            operator=field.operator,
            wanted=field.values or (),
            actual=None,
            term=number,
        )
        for number, term in enumerate(() if required is None else required.node_selector_terms)
        for field in term.match_fields
    ]


def _left_by(plugin: PreFilterPlugin, context: EvidenceContext) -> frozenset[str] | None:
    try:
        answer = plugin.pre_filter(CycleState(), context.pod, nodes_of(context.snapshot))
    except Exception:  # A plugin of a user may raise anything; then it names no nodes.
        return None
    return frozenset(answer.node_names) if isinstance(answer, Restriction) else None


def _unmatched(term: CompiledTerm, node: Node, rule: LabelRule, number: int) -> Iterator[Label]:
    for requirement in term.labels:
        if not requirement.matches(node.metadata.labels):
            yield _label(node, requirement, rule, number)
    for field in term.fields:
        if not field.matches_name(node.metadata.name):
            yield Label(
                rule="NodeField",
                key=field.key,
                operator=field.operator,
                wanted=(field.value,),
                actual=node.metadata.name,
                term=number,
            )


def _label(node: Node, requirement: Requirement, rule: LabelRule, term: int) -> Label:
    return Label(
        rule=rule,
        key=requirement.key,
        operator=requirement.operator,
        wanted=wanted_values(requirement),
        actual=node.metadata.labels.get(requirement.key),
        term=term,
    )


def wanted_values(requirement: Requirement) -> tuple[str, ...]:
    if requirement.operator in ("Gt", "Lt"):
        return (str(requirement.threshold),)
    return tuple(sorted(requirement.values))


def _keys(context: EvidenceContext) -> tuple[list[str], bool]:
    """The labels that rules read, and whether they read the name."""

    def read() -> tuple[list[str], bool]:
        required = context.pod.required_node_affinity
        keys = {each.key for each in required.equalities}
        plugin = context.plugin(NodeAffinity)
        added = None if plugin is None else plugin.added_required
        reads_name = False
        for selector in (required.selector, added):
            for term in () if selector is None else selector.terms:
                keys |= {each.key for each in term.labels}
                reads_name |= bool(term.fields)
        return sorted(keys), reads_name

    return context.once("selection keys", read)
