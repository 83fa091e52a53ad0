"""Which nodes the pod selects: its node selector and its required node affinity.

A rule is changed so that it accepts one more value, or dropped. What dropping it opens says which
values are worth trying.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from kubestow.api.owners import controller_of
from kubestow.api.pod import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod
from kubestow.arrays import IntpArray
from kubestow.explain.suggestions.pod_parts import with_affinity, with_spec
from kubestow.explain.suggestions.remedy import (
    CHANGE_NODE_AFFINITY,
    CHANGE_NODE_SELECTOR,
    DROP_NODE_AFFINITY,
    DROP_NODE_SELECTOR,
    WHOLE_RULE,
    Remedy,
    make_remedy,
)
from kubestow.explain.suggestions.stuck_pod import StuckPod
from kubestow.index.nodes import nodes_of

# How many values of a label are tried.
VALUES_TRIED: Final = 3


def change_selector(stuck: StuckPod) -> Iterator[Remedy]:
    """Another value for one entry of `nodeSelector`, or the selector without it."""
    selector = stuck.pod.spec.node_selector or {}
    if not selector or not stuck.is_blocked_by("NodeAffinity"):
        return
    for key, value in selector.items():
        others = {each: wanted for each, wanted in selector.items() if each != key}
        pod = with_spec(stuck.pod, node_selector=others or None)
        rows = stuck.feasible(pod)
        if len(rows) == 0:
            continue
        yield make_remedy(DROP_NODE_SELECTOR, f"drop {key}={value} from the node selector", pod)
        for other in _values_at(stuck, key, rows, without=(value,)):
            pod = with_spec(stuck.pod, node_selector={**selector, key: other})
            if stuck.fits(pod):
                text = f"select nodes with {key}={other} instead of {key}={value}"
                yield make_remedy(CHANGE_NODE_SELECTOR, text, pod)
                break


def change_node_affinity(stuck: StuckPod) -> Iterator[Remedy]:
    """One more value for an expression of the required node affinity, or less of it."""
    required = _required(stuck.pod)
    is_early = stuck.rejected_early == "NodeAffinity"
    if required is None or not (is_early or stuck.is_blocked_by("NodeAffinity")):
        return
    owner = controller_of(stuck.pod)
    if owner is not None and owner.kind == "DaemonSet":
        return  # It is made for one node.
    terms = required.node_selector_terms
    if sum(map(_length, terms)) > 1 or len(terms) != 1:
        pod = _with_required(stuck.pod, None)
        if stuck.fits(pod):
            text = "drop the required node affinity"
            yield make_remedy(DROP_NODE_AFFINITY, text, pod, amount=WHOLE_RULE)
    for number, term in enumerate(terms):
        for field in ("match_expressions", "match_fields"):
            for index in range(len(getattr(term, field))):
                yield from _change_expression(stuck, terms, number, field, index)


def _change_expression(
    stuck: StuckPod, terms: tuple[NodeSelectorTerm, ...], number: int, field: str, index: int
) -> Iterator[Remedy]:
    term = terms[number]
    expressions: tuple[NodeSelectorRequirement, ...] = getattr(term, field)
    expression = expressions[index]

    def with_expressions(*changed: NodeSelectorRequirement) -> Pod:
        kept = (*expressions[:index], *changed, *expressions[index + 1 :])
        other = msgspec.structs.replace(term, **{field: kept})
        if _length(other) == 0:
            # A term without expressions matches no node.
            return _with_required(stuck.pod, None)
        return _with_required(stuck.pod, (*terms[:number], other, *terms[number + 1 :]))

    if _length(term) == 1 and len(terms) > 1:
        return  # The same as dropping the whole affinity.
    pod = with_expressions()
    rows = stuck.feasible(pod)
    if len(rows) == 0:
        return
    name = f"{expression.key} {expression.operator} {','.join(expression.values or ())}".strip()
    yield make_remedy(DROP_NODE_AFFINITY, f"drop {name} from the required node affinity", pod)
    if expression.operator != "In" or field != "match_expressions":
        return
    values = expression.values or ()
    for other in _values_at(stuck, expression.key, rows, without=values):
        more = msgspec.structs.replace(expression, values=(*values, other))
        pod = with_expressions(more)
        if stuck.fits(pod):
            text = f"add the value {other} to {name} in the required node affinity"
            yield make_remedy(CHANGE_NODE_AFFINITY, text, pod)
            return


def _length(term: NodeSelectorTerm) -> int:
    return len(term.match_expressions) + len(term.match_fields)


def _required(pod: Pod) -> NodeSelector | None:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return None
    return affinity.node_affinity.required


def _with_required(pod: Pod, terms: tuple[NodeSelectorTerm, ...] | None) -> Pod:
    affinity = pod.spec.affinity
    assert affinity is not None
    assert affinity.node_affinity is not None
    required = None if terms is None else NodeSelector(node_selector_terms=terms)
    node_affinity = msgspec.structs.replace(affinity.node_affinity, required=required)
    if required is None and node_affinity.preferred is None:
        return with_affinity(pod, node_affinity=None)
    return with_affinity(pod, node_affinity=node_affinity)


def _values_at(
    stuck: StuckPod, key: str, rows: IntpArray, *, without: Sequence[str] = ()
) -> Iterator[str]:
    """The values that most of these nodes have for a label, the most frequent first."""
    nodes = nodes_of(stuck.snapshot, rows)
    values = nodes.label_values(key)
    numbers: list[int] = nodes.label_ids(key).tolist()
    found = Counter(values[number] for number in numbers)
    tried = [
        value for value, _ in found.most_common() if value is not None and value not in without
    ]
    yield from tried[:VALUES_TRIED]
