"""Single changes found by trying all of them: no use is made of what filters say.

For each kind and subject the smallest change with which the pod is placed, by a measure for which
less is smaller.
"""

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any, NamedTuple

import msgspec

from kubestow.api.meta import ApiObject
from kubestow.api.node import Node, Taint
from kubestow.api.pod import Pod, Toleration
from kubestow.api.quantity import parse_quantity
from kubestow.api.resources import amount
from kubestow.explain.cluster import StillCluster
from kubestow.explain.suggestions.remedy import Remedy

Key = tuple[str, str]
Measure = tuple[int, ...]
_MOST = 12


class Try(NamedTuple):
    kind: str
    subject: str
    measure: Measure
    pod: Pod
    objects: tuple[ApiObject, ...] = ()
    removed: tuple[ApiObject, ...] = ()


def smallest(cluster: StillCluster, pod: Pod) -> dict[Key, Measure]:
    """The smallest measure of each kind and subject that helps."""
    found: dict[Key, Measure] = {}
    for each in tries(cluster, pod):
        key = (each.kind, each.subject)
        if (key not in found or each.measure < found[key]) and helps(cluster, each):
            found[key] = each.measure
    return found


def helps(cluster: StillCluster, each: Try) -> bool:
    with cluster.changed(each.pod, *each.objects, removed=each.removed):
        return cluster.decide(each.pod).is_scheduled


def tries(cluster: StillCluster, pod: Pod) -> Iterator[Try]:
    yield from _requests(cluster, pod)
    yield from _tolerations(cluster, pod)
    yield from _selection(cluster, pod)
    yield from _pod_affinity(pod)
    yield from _spread(pod)
    yield from _ports(pod)
    yield from _nodes(cluster, pod)
    yield from _deletions(cluster, pod)
    yield from _volumes(cluster, pod)
    yield from _devices(cluster, pod)


def replaced(target: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """A struct with another value somewhere in it."""
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        return (*target[:step], replaced(target[step], rest, value), *target[step + 1 :])
    return msgspec.structs.replace(target, **{step: replaced(getattr(target, step), rest, value)})


def without(items: tuple[Any, ...], index: int) -> tuple[Any, ...]:
    return (*items[:index], *items[index + 1 :])


# --- The pod ------------------------------------------------------------------------------------


def _requests(cluster: StillCluster, pod: Pod) -> Iterator[Try]:
    """Of the one container with a request; the measure is what it gives up."""
    for field in ("containers", "init_containers"):
        for index, container in enumerate(getattr(pod.spec, field)):
            for name, quantity in (container.resources.requests or {}).items():
                before = amount(name, quantity)
                for after in _amounts(cluster, pod, name, before):
                    text = f"{after}m" if name == "cpu" else after
                    requests = {**container.resources.requests, name: parse_quantity(text)}
                    path = ("spec", field, index, "resources", "requests")
                    subject = f"{container.name} {name}"
                    changed = replaced(pod, path, requests)
                    yield Try("LowerRequest", subject, (before - after,), changed)


def _amounts(cluster: StillCluster, pod: Pod, name: str, before: int) -> list[int]:
    """What is free on some node beside the other containers, one less and one more."""
    lists = [each.resources.requests or {} for each in pod.spec.containers]
    others = sum(amount(name, each[name]) for each in lists if name in each) - before
    found = set[int]()
    for info in cluster.refresh().node_infos:
        offered, used = info.allocatable, info.requested
        free = {
            "cpu": offered.milli_cpu - used.milli_cpu,
            "memory": offered.memory - used.memory,
        }.get(name, offered.scalar.get(name, 0) - used.scalar.get(name, 0))
        found |= {free - 1, free, free + 1}
        found |= {free - others - 1, free - others, free - others + 1}
    return sorted((each for each in found if 0 < each < before), reverse=True)


def _tolerations(cluster: StillCluster, pod: Pod) -> Iterator[Try]:
    taints = {taint for node in cluster.objects.nodes for taint in node.spec.taints}
    if any(node.spec.unschedulable for node in cluster.objects.nodes):
        taints.add(Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule"))
    for key in {taint.key for taint in taints}:
        toleration = Toleration(key=key, operator="Exists")
        tolerations = (*pod.spec.tolerations, toleration)
        yield Try("AddToleration", key, (0,), replaced(pod, ("spec", "tolerations"), tolerations))


def _selection(cluster: StillCluster, pod: Pod) -> Iterator[Try]:
    selector = pod.spec.node_selector or {}
    for key in selector:
        others = {each: value for each, value in selector.items() if each != key}
        changed = replaced(pod, ("spec", "node_selector"), others or None)
        yield Try("DropNodeSelector", key, (0,), changed)
        for value in {node.metadata.labels.get(key) for node in cluster.objects.nodes} - {None}:
            changed = replaced(pod, ("spec", "node_selector"), {**selector, key: value})
            yield Try("ChangeNodeSelector", key, (0,), changed)
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None or not affinity.node_affinity.required:
        return
    path = ("spec", "affinity", "node_affinity", "required")
    yield Try("DropNodeAffinity", "", (1,), replaced(pod, path, None))
    terms = affinity.node_affinity.required.node_selector_terms
    for number, term in enumerate(terms):
        expressions = term.match_expressions
        for index in range(len(expressions)):
            if len(expressions) > 1:
                place = (*path, "node_selector_terms", number, "match_expressions")
                changed = replaced(pod, place, without(expressions, index))
                yield Try("DropNodeAffinity", "", (0,), changed)


def _pod_affinity(pod: Pod) -> Iterator[Try]:
    for field, kind in (
        ("pod_affinity", "DropPodAffinity"),
        ("pod_anti_affinity", "DropPodAntiAffinity"),
    ):
        rules = None if pod.spec.affinity is None else getattr(pod.spec.affinity, field)
        for index in range(0 if rules is None else len(rules.required)):
            path = ("spec", "affinity", field, "required")
            yield Try(kind, "", (0,), replaced(pod, path, without(rules.required, index)))


def _spread(pod: Pod) -> Iterator[Try]:
    for index, constraint in enumerate(pod.spec.topology_spread_constraints):
        path = ("spec", "topology_spread_constraints", index)
        subject = constraint.topology_key
        soft = replaced(pod, (*path, "when_unsatisfiable"), "ScheduleAnyway")
        yield Try("ScheduleAnyway", subject, (0,), soft)
        for more in range(1, _MOST):
            changed = replaced(pod, (*path, "max_skew"), constraint.max_skew + more)
            yield Try("RaiseMaxSkew", subject, (more,), changed)


def _ports(pod: Pod) -> Iterator[Try]:
    for index, container in enumerate(pod.spec.containers):
        for number, port in enumerate(container.ports):
            path = ("spec", "containers", index, "ports", number, "host_port")
            subject = str(port.host_port)
            if not pod.spec.host_network:
                yield Try("DropHostPort", subject, (0,), replaced(pod, path, 0))
            for more in range(1, 4):
                changed = replaced(pod, path, port.host_port + more)
                yield Try("ChangeHostPort", subject, (0,), changed)


# --- Nodes --------------------------------------------------------------------------------------


def _nodes(cluster: StillCluster, pod: Pod) -> Iterator[Try]:
    wanted = set((pod.spec.node_selector or {}).items())
    affinity = pod.spec.affinity
    if affinity is not None and affinity.node_affinity is not None:
        required = affinity.node_affinity.required
        for term in required.node_selector_terms if required is not None else ():
            for each in term.match_expressions:
                values = {"In": each.values or (), "Exists": ("",)}.get(each.operator, ())
                wanted |= {(each.key, value) for value in values}
    for node in cluster.objects.nodes.list():
        for changed, kind, subject in _changed_nodes(cluster, node, wanted):
            yield Try(kind, subject, (0,), pod, (changed,))


def _changed_nodes(
    cluster: StillCluster, node: Node, wanted: Iterable[tuple[str, str]]
) -> Iterator[tuple[Node, str, str]]:
    taints = node.spec.taints
    if node.spec.unschedulable:
        kept = tuple(each for each in taints if each.key != "node.kubernetes.io/unschedulable")
        open_node = replaced(node, ("spec", "unschedulable"), False)
        yield replaced(open_node, ("spec", "taints"), kept), "Uncordon", ""
    for index, taint in enumerate(taints):
        if not taint.key.startswith("node.kubernetes.io/"):
            yield (
                replaced(node, ("spec", "taints"), without(taints, index)),
                "RemoveTaint",
                taint.key,
            )
    for key, value in wanted:
        if key not in node.metadata.labels:
            labels = {**node.metadata.labels, key: value}
            yield replaced(node, ("metadata", "labels"), labels), "AddLabel", key
    limit = {**node.status.allocatable, "pods": parse_quantity(500)}
    if len(cluster.refresh().get(node.metadata.name).pods) >= 2:
        yield replaced(node, ("status", "allocatable"), limit), "RaisePodLimit", ""


def _deletions(cluster: StillCluster, pod: Pod) -> Iterator[Try]:
    """Up to three pods, anywhere; the measure is the highest priority, then how many."""
    budgets = cluster.objects.pod_disruption_budgets.list()
    placed = [each.pod for info in cluster.refresh().node_infos for each in info.pods]
    may_go = [each for each in placed if (each.spec.priority or 0) <= (pod.spec.priority or 0)]
    for size in (1, 2, 3):
        for chosen in combinations(may_go, size):
            if all(_is_allowed(budget, chosen) for budget in budgets):
                highest = max(each.spec.priority or 0 for each in chosen)
                yield Try("DeletePods", "", (highest, size), pod, (), chosen)


def _is_allowed(budget: Any, chosen: Iterable[Pod]) -> bool:
    labels = budget.spec.selector.match_labels.items()
    covered = [each for each in chosen if labels <= each.metadata.labels.items()]
    return len(covered) <= budget.status.disruptions_allowed


# --- Volumes and devices ------------------------------------------------------------------------


def _volumes(cluster: StillCluster, pod: Pod) -> Iterator[Try]:
    objects = cluster.objects
    for mounted in pod.spec.volumes:
        if mounted.persistent_volume_claim is None:
            continue
        claim = objects.persistent_volume_claims.get(
            "default", mounted.persistent_volume_claim.claim_name
        )
        assert claim is not None
        name = claim.metadata.name
        fresh = replaced(
            replaced(claim, ("spec", "volume_name"), ""), ("metadata", "annotations"), {}
        )
        for storage_class in objects.storage_classes.list():
            if storage_class.volume_binding_mode == "WaitForFirstConsumer":
                other = storage_class.metadata.name
                changed = replaced(fresh, ("spec", "storage_class_name"), other)
                if other != claim.spec.storage_class_name:
                    yield Try("ChangeStorageClass", name, (0,), pod, (changed,))
        if not claim.spec.volume_name:
            for size in range(9, 0, -1):
                requests = {"storage": parse_quantity(f"{size}Gi")}
                changed = replaced(claim, ("spec", "resources", "requests"), requests)
                yield Try("LowerStorageRequest", name, (-size,), pod, (changed,))
    for csi_node in objects.csi_nodes.list():
        for index, driver in enumerate(csi_node.spec.drivers):
            limit = driver.allocatable.count if driver.allocatable is not None else None
            for count in range(limit or 0, _MOST):
                path = ("spec", "drivers", index, "allocatable", "count")
                changed = replaced(csi_node, path, count)
                yield Try("RaiseVolumeLimit", "", (count,), pod, (changed,))


def _devices(cluster: StillCluster, pod: Pod) -> Iterator[Try]:
    for claim in cluster.objects.resource_claims.list():
        for index, request in enumerate(claim.spec.devices.requests):
            assert request.exactly is not None
            path = ("spec", "devices", "requests", index, "exactly")
            for count in range(request.exactly.count - 1, 0, -1):
                changed = replaced(claim, (*path, "count"), count)
                yield Try("LowerDeviceCount", "", (-count,), pod, (changed,))
            for number in range(len(request.exactly.selectors)):
                kept = without(request.exactly.selectors, number)
                changed = replaced(claim, (*path, "selectors"), kept)
                yield Try("DropDeviceSelector", "", (0,), pod, (changed,))


# --- The same of suggestions ----------------------------------------------------------------------


def measure_of(pod: Pod, change: Remedy) -> tuple[Key, Measure]:
    """The kind, subject and measure of a single change that was suggested."""
    new = change.pod
    match change.kind:
        case "LowerRequest":
            return _lowered(pod, new)
        case "AddToleration":
            return (change.kind, new.spec.tolerations[-1].key), (0,)
        case "DropNodeSelector":
            left = (new.spec.node_selector or {}).keys()
            (key,) = (pod.spec.node_selector or {}).keys() - left
            return (change.kind, key), (0,)
        case "ChangeNodeSelector":
            before, after = pod.spec.node_selector or {}, new.spec.node_selector or {}
            (key,) = (key for key in before if before[key] != after[key])
            return (change.kind, key), (0,)
        case "DropNodeAffinity":
            is_whole = new.spec.affinity is None or new.spec.affinity.node_affinity is None
            return (change.kind, ""), (int(is_whole),)
        case "RaiseMaxSkew" | "ScheduleAnyway":
            pairs = zip(
                pod.spec.topology_spread_constraints,
                new.spec.topology_spread_constraints,
                strict=True,
            )
            before, after = next((one, other) for one, other in pairs if one != other)
            return (change.kind, before.topology_key), (after.max_skew - before.max_skew,)
        case "ChangeHostPort" | "DropHostPort":
            before = [port.host_port for each in pod.spec.containers for port in each.ports]
            after = [port.host_port for each in new.spec.containers for port in each.ports]
            (port,) = (one for one, other in zip(before, after, strict=True) if one != other)
            return (change.kind, str(port)), (0,)
        case "RemoveTaint" | "AddLabel":
            return (change.kind, _key_in(change)), (0,)
        case "DeletePods":
            priorities = [each.spec.priority or 0 for each in change.removed]
            return (change.kind, ""), (max(priorities), len(priorities))
        case "LowerStorageRequest":
            (claim,) = change.objects
            size = claim.spec.resources.requests["storage"].value() >> 30
            return (change.kind, claim.metadata.name), (-size,)
        case "ChangeStorageClass":
            return (change.kind, change.objects[0].metadata.name), (0,)
        case "RaiseVolumeLimit":
            (csi_node,) = change.objects
            return (change.kind, ""), (csi_node.spec.drivers[0].allocatable.count,)
        case "LowerDeviceCount":
            (claim,) = change.objects
            return (change.kind, ""), (-claim.spec.devices.requests[0].exactly.count,)
        case _:
            return (change.kind, ""), (0,)


def _lowered(pod: Pod, new: Pod) -> tuple[Key, Measure]:
    for field in ("containers", "init_containers"):
        for before, after in zip(getattr(pod.spec, field), getattr(new.spec, field), strict=True):
            for name, quantity in (before.resources.requests or {}).items():
                left = after.resources.requests[name]
                if left != quantity:
                    given_up = amount(name, quantity) - amount(name, left)
                    return ("LowerRequest", f"{before.name} {name}"), (given_up,)
    raise AssertionError("no request is lower")


def _key_in(change: Remedy) -> str:
    # "remove the taint KEY=VALUE:EFFECT from …", "label NODE with KEY=VALUE"
    words = change.text.split(" ")
    word = words[3] if change.kind == "RemoveTaint" else words[-1]
    return word.split("=")[0].split(":")[0]
