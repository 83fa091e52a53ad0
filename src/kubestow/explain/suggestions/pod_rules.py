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
    Container,
    ContainerPort,
    Pod,
    PodSpec,
    Toleration,
    TopologySpreadConstraint,
)
from kubestow.explain.suggestions.pod_parts import with_affinity, with_spec
from kubestow.explain.suggestions.remedy import (
    ADD_TOLERATION,
    CHANGE_HOST_PORT,
    DROP_HOST_PORT,
    DROP_POD_AFFINITY,
    DROP_POD_ANTI_AFFINITY,
    RAISE_MAX_SKEW,
    REMOVE_GATES,
    SCHEDULE_ANYWAY,
    SKEW_STEP,
    SYSTEM_TAINT,
    Remedy,
    make_remedy,
)
from kubestow.explain.suggestions.selection import change_node_affinity, change_selector
from kubestow.explain.suggestions.stuck_pod import StuckPod

# Taints with this prefix are set by the control plane.
SYSTEM_PREFIX: Final = "node.kubernetes.io/"
HARD: Final = "DoNotSchedule"
SOFT: Final = "ScheduleAnyway"

# How many tolerations and ports are tried.
TOLERATIONS_TRIED: Final = 12
PORTS_TRIED: Final = 8
PORT_MAX: Final = 65_535


def relax_rules(stuck: StuckPod) -> Iterator[Remedy]:
    """All of the below."""
    yield from tolerate(stuck)
    yield from change_selector(stuck)
    yield from change_node_affinity(stuck)
    yield from drop_pod_affinity(stuck)
    yield from relax_spread(stuck)
    yield from change_ports(stuck)


# --- Gates ------------------------------------------------------------------------------------


def remove_gates(pod: Pod) -> Remedy:
    gates = [gate.name for gate in pod.spec.scheduling_gates]
    noun = "gate" if len(gates) == 1 else "gates"
    return make_remedy(
        REMOVE_GATES,
        f"remove the scheduling {noun} {', '.join(gates)}",
        with_spec(pod, scheduling_gates=()),
    )


# --- Taints -----------------------------------------------------------------------------------


def tolerate(stuck: StuckPod) -> Iterator[Remedy]:
    """One more toleration. Of very many, those that open the most nodes are tried."""
    if not stuck.is_blocked_by("TaintToleration", "NodeUnschedulable"):
        return
    opened: Counter[Toleration] = Counter()
    for row in _rows_of_interest(stuck, "TaintToleration", "NodeUnschedulable"):
        opened.update(_tolerations(stuck.untolerated(row), stuck.slack))
    for toleration, _ in opened.most_common(TOLERATIONS_TRIED):
        pod = with_spec(stuck.pod, tolerations=(*stuck.pod.spec.tolerations, toleration))
        if stuck.fits(pod):
            is_system = toleration.key.startswith(SYSTEM_PREFIX)
            yield make_remedy(
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


def _rows_of_interest(stuck: StuckPod, *plugins: str) -> list[int]:
    """Rows on which these filters alone reject; all they reject, if other filters follow them.

    Where a constraint on spread counts only nodes that the pod may use, a rule about nodes also
    changes what the constraint allows.
    """
    if not _has_hard_spread(stuck.pod):
        return stuck.rows_blocked_by(*plugins)
    blockers = stuck.blockers
    rejected = blockers.rejected(plugins[0])
    for plugin in plugins[1:]:
        rejected = rejected | blockers.rejected(plugin)
    numbers: list[int] = rejected.nonzero()[0].tolist()
    return numbers


def _has_hard_spread(pod: Pod) -> bool:
    return any(
        constraint.when_unsatisfiable == HARD for constraint in pod.spec.topology_spread_constraints
    )


# --- Pod affinity -------------------------------------------------------------------------------


def drop_pod_affinity(stuck: StuckPod) -> Iterator[Remedy]:
    """The pod without one required term of affinity or anti-affinity."""
    affinity = stuck.pod.spec.affinity
    if affinity is None or not stuck.is_blocked_by("InterPodAffinity"):
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
            pod = with_affinity(stuck.pod, **{field: kept if others or rules.preferred else None})
            if stuck.fits(pod):
                others_text = f"pods with {_selector_text(term.label_selector)}"
                text = f"drop the required {noun} to {others_text} on {term.topology_key}"
                yield make_remedy(kind, text, pod)


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


def relax_spread(stuck: StuckPod) -> Iterator[Remedy]:
    """A larger `maxSkew` for one constraint, or the constraint as a preference."""
    if not stuck.is_blocked_by("PodTopologySpread"):
        return
    for index, constraint in enumerate(stuck.pod.spec.topology_spread_constraints):
        if constraint.when_unsatisfiable != HARD:
            continue
        # `minDomains` is for hard constraints only.
        soft = _with_constraint(stuck.pod, index, when_unsatisfiable=SOFT, min_domains=None)
        if not stuck.fits(soft):
            continue
        name = f"the spread constraint on {constraint.topology_key}"
        yield make_remedy(SCHEDULE_ANYWAY, f"make {name} {SOFT}", soft)
        skew = _smallest_skew(stuck, index, constraint)
        if skew is not None:
            yield make_remedy(
                RAISE_MAX_SKEW,
                f"raise maxSkew of {name} from {constraint.max_skew} to {skew}",
                _with_constraint(stuck.pod, index, max_skew=skew),
                amount=min(SKEW_STEP * (skew - constraint.max_skew), 100),
            )


def _with_constraint(pod: Pod, index: int, **fields: object) -> Pod:
    constraints = list(pod.spec.topology_spread_constraints)
    constraints[index] = msgspec.structs.replace(constraints[index], **fields)
    return with_spec(pod, topology_spread_constraints=tuple(constraints))


def _smallest_skew(stuck: StuckPod, index: int, constraint: TopologySpreadConstraint) -> int | None:
    """The smallest `maxSkew` with which the pod fits; None if none helps."""

    def fits(skew: int) -> bool:
        return stuck.fits(_with_constraint(stuck.pod, index, max_skew=skew))

    failing, step = constraint.max_skew, 1
    highest = constraint.max_skew + len(stuck.cluster.objects.pods) + 1
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


def change_ports(stuck: StuckPod) -> Iterator[Remedy]:
    """Another host port, or none, for one port of the pod."""
    if not stuck.is_blocked_by("NodePorts"):
        return
    spec = stuck.pod.spec
    for field, containers in (
        ("containers", spec.containers),
        ("init_containers", spec.init_containers),
    ):
        for index, container in enumerate(containers):
            for number, port in enumerate(container.ports):
                if port.host_port > 0:
                    yield from _change_port(stuck, field, index, number)


def _change_port(stuck: StuckPod, field: str, index: int, number: int) -> Iterator[Remedy]:
    spec = stuck.pod.spec
    container: Container = getattr(spec, field)[index]
    port = container.ports[number].host_port
    taken = {each.host_port for each in _all_ports(spec)}
    free = [each for each in range(port + 1, PORT_MAX) if each not in taken][:PORTS_TRIED]
    if not spec.host_network:
        pod = _with_port(stuck.pod, field, index, number, host_port=0)
        if not stuck.fits(pod):
            return
        yield make_remedy(DROP_HOST_PORT, f"drop host port {port} of {container.name}", pod)
    for other in free:
        fields = {"host_port": other}
        if spec.host_network:
            # In the network of the node both are the same.
            fields["container_port"] = other
        pod = _with_port(stuck.pod, field, index, number, **fields)
        if stuck.fits(pod):
            text = f"use host port {other} instead of {port} in container {container.name}"
            yield make_remedy(CHANGE_HOST_PORT, text, pod)
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
