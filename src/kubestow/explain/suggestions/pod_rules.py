"""Rules of the pod that can be relaxed: tolerations, selectors, affinity, spread, ports, gates.

Each function yields changes with which the pod fits, as far as filters say; the search verifies
them. A pod has few rules, so every one that may matter is tried.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from kubestow.api.meta import LabelSelector
from kubestow.api.node import Taint
from kubestow.api.pod import (
    Affinity,
    Container,
    ContainerPort,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodSpec,
    Toleration,
    TopologySpreadConstraint,
)
from kubestow.arrays import IntpArray
from kubestow.explain.suggestions.case import Case
from kubestow.explain.suggestions.change import (
    ADD_TOLERATION,
    CHANGE_HOST_PORT,
    CHANGE_NODE_AFFINITY,
    CHANGE_NODE_SELECTOR,
    DROP_HOST_PORT,
    DROP_NODE_AFFINITY,
    DROP_NODE_SELECTOR,
    DROP_POD_AFFINITY,
    DROP_POD_ANTI_AFFINITY,
    RAISE_MAX_SKEW,
    REMOVE_GATES,
    SCHEDULE_ANYWAY,
    SKEW_STEP,
    SYSTEM_TAINT,
    WHOLE_RULE,
    Change,
    make_change,
)
from kubestow.index.nodes import nodes_of

# Taints with this prefix are set by the control plane.
SYSTEM_PREFIX: Final = "node.kubernetes.io/"
HARD: Final = "DoNotSchedule"
SOFT: Final = "ScheduleAnyway"

# How many tolerations, values of a label, and ports are tried.
TOLERATIONS_TRIED: Final = 12
VALUES_TRIED: Final = 3
PORTS_TRIED: Final = 8
PORT_MAX: Final = 65_535


def relax_rules(case: Case) -> Iterator[Change]:
    """All of the below."""
    yield from tolerate(case)
    yield from change_selector(case)
    yield from change_node_affinity(case)
    yield from drop_pod_affinity(case)
    yield from relax_spread(case)
    yield from change_ports(case)


def with_spec(pod: Pod, **fields: object) -> Pod:
    """The pod with other fields in its spec."""
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, **fields))


# --- Gates ------------------------------------------------------------------------------------


def remove_gates(pod: Pod) -> Change:
    gates = [gate.name for gate in pod.spec.scheduling_gates]
    noun = "gate" if len(gates) == 1 else "gates"
    return make_change(
        REMOVE_GATES,
        f"remove the scheduling {noun} {', '.join(gates)}",
        with_spec(pod, scheduling_gates=()),
    )


# --- Taints -----------------------------------------------------------------------------------


def tolerate(case: Case) -> Iterator[Change]:
    """One more toleration. Of very many, those that open the most nodes are tried."""
    if not case.is_blocked_by("TaintToleration", "NodeUnschedulable"):
        return
    opened: Counter[Toleration] = Counter()
    for row in _rows_of_interest(case, "TaintToleration", "NodeUnschedulable"):
        opened.update(_tolerations(case.untolerated(row), case.slack))
    for toleration, _ in opened.most_common(TOLERATIONS_TRIED):
        pod = with_spec(case.pod, tolerations=(*case.pod.spec.tolerations, toleration))
        if case.fits(pod):
            is_system = toleration.key.startswith(SYSTEM_PREFIX)
            yield make_change(
                ADD_TOLERATION,
                f"tolerate the taint {_toleration_text(toleration)}",
                pod,
                amount=SYSTEM_TAINT if is_system else 0,
            )


def _tolerations(taints: Sequence[Taint], key_count_max: int) -> list[Toleration]:
    """The narrowest toleration for each key; none if there are too many."""
    by_key: dict[str, list[Taint]] = {}
    for taint in taints:
        by_key.setdefault(taint.key, []).append(taint)
    if len(by_key) > key_count_max:
        return []
    return [toleration_of(each) for each in by_key.values()]


def toleration_of(taints: Sequence[Taint]) -> Toleration:
    """The narrowest toleration that accepts these taints, which have the same key."""
    key = taints[0].key
    effects, values = {taint.effect for taint in taints}, {taint.value for taint in taints}
    effect = effects.pop() if len(effects) == 1 else ""
    if len(values) == 1 and (value := values.pop()):
        return Toleration(key=key, operator="Equal", value=value, effect=effect)
    return Toleration(key=key, operator="Exists", effect=effect)


def _toleration_text(toleration: Toleration) -> str:
    value = f"={toleration.value}" if toleration.value else ""
    effect = f":{toleration.effect}" if toleration.effect else ""
    return f"{toleration.key}{value}{effect}"


def _rows_of_interest(case: Case, *plugins: str) -> list[int]:
    """Rows on which these filters alone reject; all they reject, if other filters follow them.

    Where a constraint on spread counts only nodes that the pod may use, a rule about nodes also
    changes what the constraint allows.
    """
    if not _has_hard_spread(case.pod):
        return case.rows_blocked_by(*plugins).tolist()
    blockers = case.blockers
    rejected = blockers.rejected(plugins[0])
    for plugin in plugins[1:]:
        rejected = rejected | blockers.rejected(plugin)
    return rejected.nonzero()[0].tolist()


def _has_hard_spread(pod: Pod) -> bool:
    return any(
        constraint.when_unsatisfiable == HARD for constraint in pod.spec.topology_spread_constraints
    )


# --- Node selector and node affinity -------------------------------------------------------------


def change_selector(case: Case) -> Iterator[Change]:
    """Another value for one entry of `nodeSelector`, or the selector without it."""
    selector = case.pod.spec.node_selector or {}
    if not selector or not case.is_blocked_by("NodeAffinity"):
        return
    for key, value in selector.items():
        others = {each: wanted for each, wanted in selector.items() if each != key}
        pod = with_spec(case.pod, node_selector=others or None)
        rows = case.feasible(pod)
        if len(rows) == 0:
            continue
        yield make_change(DROP_NODE_SELECTOR, f"drop {key}={value} from the node selector", pod)
        for other in _values_at(case, key, rows, without=(value,)):
            pod = with_spec(case.pod, node_selector={**selector, key: other})
            if case.fits(pod):
                text = f"select nodes with {key}={other} instead of {key}={value}"
                yield make_change(CHANGE_NODE_SELECTOR, text, pod)
                break


def change_node_affinity(case: Case) -> Iterator[Change]:
    """One more value for an expression of the required node affinity, or less of it."""
    required = _required(case.pod)
    is_early = case.rejected_early == "NodeAffinity"
    if required is None or not (is_early or case.is_blocked_by("NodeAffinity")):
        return
    terms = required.node_selector_terms
    if sum(map(_length, terms)) > 1 or len(terms) != 1:
        pod = _with_required(case.pod, None)
        if case.fits(pod):
            text = "drop the required node affinity"
            yield make_change(DROP_NODE_AFFINITY, text, pod, amount=WHOLE_RULE)
    for number, term in enumerate(terms):
        for field in ("match_expressions", "match_fields"):
            for index in range(len(getattr(term, field))):
                yield from _change_expression(case, terms, number, field, index)


def _change_expression(
    case: Case, terms: tuple[NodeSelectorTerm, ...], number: int, field: str, index: int
) -> Iterator[Change]:
    term = terms[number]
    expressions: tuple[NodeSelectorRequirement, ...] = getattr(term, field)
    expression = expressions[index]

    def with_expressions(*changed: NodeSelectorRequirement) -> Pod:
        kept = (*expressions[:index], *changed, *expressions[index + 1 :])
        other = msgspec.structs.replace(term, **{field: kept})
        if _length(other) == 0:
            # A term without expressions matches no node.
            return _with_required(case.pod, None)
        return _with_required(case.pod, (*terms[:number], other, *terms[number + 1 :]))

    if _length(term) == 1 and len(terms) > 1:
        return  # The same as dropping the whole affinity.
    pod = with_expressions()
    rows = case.feasible(pod)
    if len(rows) == 0:
        return
    name = f"{expression.key} {expression.operator} {','.join(expression.values or ())}".strip()
    yield make_change(DROP_NODE_AFFINITY, f"drop {name} from the required node affinity", pod)
    if expression.operator != "In" or field != "match_expressions":
        return
    values = expression.values or ()
    for other in _values_at(case, expression.key, rows, without=values):
        more = msgspec.structs.replace(expression, values=(*values, other))
        pod = with_expressions(more)
        if case.fits(pod):
            text = f"add the value {other} to {name} in the required node affinity"
            yield make_change(CHANGE_NODE_AFFINITY, text, pod)
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
        return _with_affinity(pod, node_affinity=None)
    return _with_affinity(pod, node_affinity=node_affinity)


def _with_affinity(pod: Pod, **fields: object) -> Pod:
    affinity = msgspec.structs.replace(pod.spec.affinity or Affinity(), **fields)
    return with_spec(pod, affinity=None if affinity == Affinity() else affinity)


def _values_at(
    case: Case, key: str, rows: IntpArray, *, without: Sequence[str] = ()
) -> Iterator[str]:
    """The values that most of these nodes have for a label, the most frequent first."""
    nodes = nodes_of(case.snapshot, rows)
    values = nodes.label_values(key)
    found = Counter(values[number] for number in nodes.label_ids(key).tolist())
    tried = [
        value for value, _ in found.most_common() if value is not None and value not in without
    ]
    yield from tried[:VALUES_TRIED]


# --- Pod affinity -------------------------------------------------------------------------------


def drop_pod_affinity(case: Case) -> Iterator[Change]:
    """The pod without one required term of affinity or anti-affinity."""
    affinity = case.pod.spec.affinity
    if affinity is None or not case.is_blocked_by("InterPodAffinity"):
        return
    for field, kind, noun in (
        ("pod_affinity", DROP_POD_AFFINITY, "pod affinity"),
        ("pod_anti_affinity", DROP_POD_ANTI_AFFINITY, "pod anti-affinity"),
    ):
        rules = getattr(affinity, field)
        if rules is None:
            continue
        for index, term in enumerate(rules.required):
            others = (*rules.required[:index], *rules.required[index + 1 :])
            kept = msgspec.structs.replace(rules, required=others)
            pod = _with_affinity(case.pod, **{field: kept if others or rules.preferred else None})
            if case.fits(pod):
                others_text = f"pods with {_selector_text(term.label_selector)}"
                text = f"drop the required {noun} to {others_text} on {term.topology_key}"
                yield make_change(kind, text, pod)


def _selector_text(selector: LabelSelector | None) -> str:
    if selector is None:
        return "no labels at all"
    parts = [f"{key}={value}" for key, value in selector.match_labels.items()]
    parts += [
        " ".join(filter(None, (each.key, each.operator, ",".join(each.values or ()))))
        for each in selector.match_expressions
    ]
    return ", ".join(parts) or "any labels"


# --- Spread -------------------------------------------------------------------------------------


def relax_spread(case: Case) -> Iterator[Change]:
    """A larger `maxSkew` for one constraint, or the constraint as a preference."""
    if not case.is_blocked_by("PodTopologySpread"):
        return
    for index, constraint in enumerate(case.pod.spec.topology_spread_constraints):
        if constraint.when_unsatisfiable != HARD:
            continue
        # `minDomains` is for hard constraints only.
        soft = _with_constraint(case.pod, index, when_unsatisfiable=SOFT, min_domains=None)
        if not case.fits(soft):
            continue
        name = f"the spread constraint on {constraint.topology_key}"
        yield make_change(SCHEDULE_ANYWAY, f"make {name} {SOFT}", soft)
        skew = _smallest_skew(case, index, constraint)
        if skew is not None:
            yield make_change(
                RAISE_MAX_SKEW,
                f"raise maxSkew of {name} from {constraint.max_skew} to {skew}",
                _with_constraint(case.pod, index, max_skew=skew),
                amount=min(SKEW_STEP * (skew - constraint.max_skew), 100),
            )


def _with_constraint(pod: Pod, index: int, **fields: object) -> Pod:
    constraints = list(pod.spec.topology_spread_constraints)
    constraints[index] = msgspec.structs.replace(constraints[index], **fields)
    return with_spec(pod, topology_spread_constraints=tuple(constraints))


def _smallest_skew(case: Case, index: int, constraint: TopologySpreadConstraint) -> int | None:
    """The smallest `maxSkew` with which the pod fits; None if none helps."""

    def fits(skew: int) -> bool:
        return case.fits(_with_constraint(case.pod, index, max_skew=skew))

    failing, step = constraint.max_skew, 1
    highest = constraint.max_skew + len(case.cluster.objects.pods) + 1
    if not fits(highest):
        return None
    while not fits(failing + step):
        failing += step
        step *= 2
    fitting = failing + step
    while fitting - failing > 1:
        middle = (fitting + failing) // 2
        if fits(middle):
            fitting = middle
        else:
            failing = middle
    return fitting


# --- Ports --------------------------------------------------------------------------------------


def change_ports(case: Case) -> Iterator[Change]:
    """Another host port, or none, for one port of the pod."""
    if not case.is_blocked_by("NodePorts"):
        return
    spec = case.pod.spec
    for field, containers in (
        ("containers", spec.containers),
        ("init_containers", spec.init_containers),
    ):
        for index, container in enumerate(containers):
            for number, port in enumerate(container.ports):
                if port.host_port > 0:
                    yield from _change_port(case, field, index, number)


def _change_port(case: Case, field: str, index: int, number: int) -> Iterator[Change]:
    spec = case.pod.spec
    container: Container = getattr(spec, field)[index]
    port = container.ports[number].host_port
    taken = {each.host_port for each in _all_ports(spec)}
    free = [each for each in range(port + 1, PORT_MAX) if each not in taken][:PORTS_TRIED]
    if not spec.host_network:
        pod = _with_port(case.pod, field, index, number, host_port=0)
        if not case.fits(pod):
            return
        yield make_change(DROP_HOST_PORT, f"drop host port {port} of {container.name}", pod)
    for other in free:
        fields = {"host_port": other}
        if spec.host_network:
            # In the network of the node both are the same.
            fields["container_port"] = other
        pod = _with_port(case.pod, field, index, number, **fields)
        if case.fits(pod):
            text = f"use host port {other} instead of {port} in container {container.name}"
            yield make_change(CHANGE_HOST_PORT, text, pod)
            return


def _all_ports(spec: PodSpec) -> Iterator[ContainerPort]:
    for container in (*spec.containers, *spec.init_containers):
        yield from container.ports


def _with_port(pod: Pod, field: str, index: int, number: int, **fields: int) -> Pod:
    containers = list(getattr(pod.spec, field))
    container = containers[index]
    ports = list(container.ports)
    ports[number] = msgspec.structs.replace(ports[number], **fields)
    containers[index] = msgspec.structs.replace(container, ports=tuple(ports))
    return with_spec(pod, **{field: tuple(containers)})
