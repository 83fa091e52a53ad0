"""Judges expectations: one function for each kind, on the cluster as it is and on its history.

Each returns what was found if the expectation does not hold. An expectation about pods, nodes or
labels of which there are none does not hold: it would be a check that cannot fail.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from kubestow.api.files import Document
from kubestow.api.group import GroupKey
from kubestow.api.node import Node
from kubestow.api.pod import Pod, first_condition, key_of
from kubestow.plural import counted, some_of
from kubestow.simulator.placement_tests.cases import Unmet
from kubestow.simulator.placement_tests.history import LostPod
from kubestow.simulator.placement_tests.judged import (
    JudgedCluster,
    is_node_of,
    message_of,
)
from kubestow.simulator.results import EVICTED, PREEMPTED
from kubestow.simulator.scenario.actions import NodeTarget, PodTarget
from kubestow.simulator.scenario.source import near

ALL_PODS: Final = PodTarget()
_SHOWN: Final = 5
# A resource ends with a letter or digit; a full stop after it ends the sentence.
_LACKS: Final = re.compile(r"Insufficient ([^\s,]*[A-Za-z0-9])")


# --- With a node, and without -------------------------------------------------------------------


def judge_placed(
    cluster: JudgedCluster, target: PodTarget, within_s: float | None, at_least: int | None
) -> Unmet | None:
    """All pods have a node, and workloads have all their pods; or at least some number has.

    Pods that ended by themselves had one: those of a Job.
    """
    owned = None if target == ALL_PODS else target
    short = list(cluster.short_workloads(owned))
    waiting = cluster.waiting(target)
    if at_least is not None:
        count = len(cluster.pods(target)) - len(waiting) + len(_ended(cluster, target))
        if count >= at_least:
            return None if count or _had_any(cluster, target) else _no_pods(cluster, target)
        text = f"{counted(count, 'pod')} of {_name(target)} with a node"
        return Unmet(_with_reasons(text, waiting, short), _keys(waiting), text)
    if waiting or short:
        return _unplaced(cluster, target, waiting, short)
    if within_s is not None:
        return _late(cluster, target, within_s)
    has_any = _has_any(cluster, target) or _ended(cluster, target)
    return None if has_any else _no_pods(cluster, target)


def _ended(cluster: JudgedCluster, target: PodTarget) -> list[LostPod]:
    """Pods of a target that had a node until they ended by themselves."""
    return [
        pod for pod in cluster.history.lost if pod.has_ended and pod.node and _was_of(target, pod)
    ]


def _has_any(cluster: JudgedCluster, target: PodTarget) -> bool:
    if target == ALL_PODS:
        return bool(cluster.history.created_s)
    return bool(cluster.pods(target))


def _had_any(cluster: JudgedCluster, target: PodTarget) -> bool:
    """Whether there are pods of a target, or were any."""
    return _has_any(cluster, target) or any(_was_of(target, pod) for pod in cluster.history.lost)


def _unplaced(
    cluster: JudgedCluster,
    target: PodTarget,
    waiting: Sequence[Pod],
    short: Sequence[tuple[str, int, str]],
) -> Unmet:
    if waiting:
        owners = {cluster.owner_of(pod) for pod in waiting}
        if target == ALL_PODS and len(owners) == 1 and "" not in owners:
            target = PodTarget(owner=owners.pop())
        verb = "waits" if len(waiting) == 1 else "wait"
        total = len(cluster.pods(target)) + sum(
            count for owner, count, _ in short if target.owner in (None, owner)
        )
        text = f"{len(waiting)} of {counted(total, 'pod')} of {_name(target)} {verb}"
        lacks = _lacks(waiting)
        brief = f"{text} for {lacks}" if lacks else text
    else:
        owner, count, _ = short[0]
        text = f"{counted(count, 'pod')} of {owner} {'is' if count == 1 else 'are'} not there"
        brief = text
    return Unmet(_with_reasons(text, waiting, short), _keys(waiting), brief)


def _late(cluster: JudgedCluster, target: PodTarget, within_s: float) -> Unmet | None:
    history, late = cluster.history, list[tuple[float, str]]()
    pods = [(pod.metadata.uid, key_of(pod)) for pod in cluster.pods(target)]
    pods += [(pod.uid, _lost_text(pod)) for pod in _ended(cluster, target)]
    for uid, key in pods:
        took_s = history.placed_s[uid] - history.created_s[uid]
        if took_s > within_s:
            late.append((took_s, key))
    if not late:
        return None if pods or _has_any(cluster, target) else _no_pods(cluster, target)
    took_s, pod = max(late)
    text = f"{counted(len(late), 'pod')} took longer, {pod} {took_s:.3g} s"
    return Unmet(text, [pod for _, pod in late])


def judge_pending(
    cluster: JudgedCluster, target: PodTarget, reason: str | None, count: int | None
) -> Unmet | None:
    """All pods of the target wait, or exactly some number of them; each for the reason."""
    pods = cluster.pods(target)
    waiting = [pod for pod in pods if not pod.spec.node_name]
    if not pods and not (count == 0 and _had_any(cluster, target)):
        return _no_pods(cluster, target)
    if count is not None and len(waiting) != count:
        text = f"{len(waiting)} of {counted(len(pods), 'pod')} wait"
        return Unmet(_with_reasons(text, waiting, ()), _keys(waiting), text)
    placed = [pod for pod in pods if pod.spec.node_name]
    if count is None and placed:
        places = _some(f"{key_of(pod)} on {pod.spec.node_name}" for pod in placed)
        have = "has" if len(placed) == 1 else "have"
        return Unmet(f"{counted(len(placed), 'pod')} {have} a node: {places}", _keys(placed))
    if reason is None:
        return None
    return _without_text(waiting, reason)


def judge_message(cluster: JudgedCluster, target: PodTarget, text: str) -> Unmet | None:
    """The message of each waiting pod has the text."""
    waiting = cluster.waiting(target)
    if not waiting:
        return Unmet("no pod waits, so there is no message")
    return _without_text(waiting, text)


def _without_text(waiting: Sequence[Pod], text: str) -> Unmet | None:
    others = [pod for pod in waiting if text not in message_of(pod)]
    if not others:
        return None
    return Unmet(f"{key_of(others[0])} waits: {_message(others[0])}", _keys(others))


# --- Where --------------------------------------------------------------------------------------


def judge_on(cluster: JudgedCluster, target: PodTarget, nodes: NodeTarget) -> Unmet | None:
    """Pods that have a node are on some of the nodes."""
    placed = _placed(cluster, target)
    if not placed:
        return _none_placed(cluster, target)
    names = {node.metadata.name for node in cluster.nodes(nodes)}
    if not names:
        return _no_nodes(cluster, nodes)
    return _found_on(pod for pod in placed if pod.spec.node_name not in names)


def judge_never_on(cluster: JudgedCluster, target: PodTarget, nodes: NodeTarget) -> Unmet | None:
    """No pod is or was on one of the nodes."""
    labels = cluster.history.node_labels
    names = {name for name, each in labels.items() if is_node_of(nodes, name, each)}
    if not names:
        return _no_nodes(cluster, nodes)
    placed = _placed(cluster, target)
    lost = [pod for pod in cluster.history.lost if pod.node and _was_of(target, pod)]
    if not placed and not lost:
        return _none_placed(cluster, target)
    found = _found_on(pod for pod in placed if pod.spec.node_name in names)
    if found is not None:
        return found
    were = [pod for pod in lost if pod.node in names]
    if not were:
        return None
    return Unmet(f"{_lost_text(were[0])} was on {were[0].node}", [_lost_text(pod) for pod in were])


def _found_on(pods: Iterable[Pod]) -> Unmet | None:
    wrong = list(pods)
    if not wrong:
        return None
    places = _some(f"{key_of(pod)} on {pod.spec.node_name}" for pod in wrong)
    return Unmet(f"{counted(len(wrong), 'pod')} elsewhere: {places}", _keys(wrong))


def judge_spread(
    cluster: JudgedCluster,
    target: PodTarget,
    over: str,
    max_skew: int,
    nodes: NodeTarget | None,
) -> Unmet | None:
    """The numbers of pods in two domains differ by at most the skew."""
    placed = _placed(cluster, target)
    if not placed:
        return _none_placed(cluster, target)
    if (unknown := _no_label(cluster, over)) is not None:
        return unknown
    if nodes is not None:
        counted_nodes = cluster.nodes(nodes)
        if not counted_nodes:
            return _no_nodes(cluster, nodes)
    else:
        counted_nodes = [node for node in cluster.nodes() if _is_open(node)]
    counts: Counter[str] = Counter()
    for node in counted_nodes:
        if (domain := node.metadata.labels.get(over)) is not None:
            counts[domain] += 0
    for domain, pods in _by_domain(cluster, placed, over).items():
        counts[domain] += len(pods)
    skew = max(counts.values()) - min(counts.values())
    if skew <= max_skew:
        return None
    numbers = _some(f"{domain or 'no label'} {count}" for domain, count in sorted(counts.items()))
    return Unmet(f"a skew of {skew}: {numbers}", _keys(placed))


def judge_together(cluster: JudgedCluster, target: PodTarget, over: str) -> Unmet | None:
    """All pods are in one domain."""
    placed = _placed(cluster, target)
    if not placed:
        return _none_placed(cluster, target)
    if (unknown := _no_label(cluster, over)) is not None:
        return unknown
    domains = _by_domain(cluster, placed, over)
    if len(domains) == 1 and "" not in domains:
        return None
    numbers = _some(f"{domain or 'no label'} {len(pods)}" for domain, pods in domains.items())
    return Unmet(f"{counted(len(domains), 'domain')}: {numbers}", _keys(placed))


def judge_apart(
    cluster: JudgedCluster, target: PodTarget, over: str, others: PodTarget | None
) -> Unmet | None:
    """No two pods are in one domain, or none is in a domain of the others."""
    placed = _placed(cluster, target)
    if not placed:
        return _none_placed(cluster, target)
    if (unknown := _no_label(cluster, over)) is not None:
        return unknown
    if others is not None and not _had_any(cluster, others):
        return _no_pods(cluster, others)
    domains = _by_domain(cluster, placed, over)
    if others is None:
        shared = {domain: pods for domain, pods in domains.items() if len(pods) > 1}
    else:
        theirs = _by_domain(cluster, _placed(cluster, others), over)
        shared = {
            domain: [*pods, *theirs[domain]] for domain, pods in domains.items() if domain in theirs
        }
    if not shared:
        return None
    domain, pods = next(iter(shared.items()))
    names = _some(map(key_of, pods))
    where = domain or f'nodes without the label "{over}"'
    every = [pod for each in shared.values() for pod in each]
    return Unmet(f"{counted(len(pods), 'pod')} in {where}: {names}", _keys(every))


def _by_domain(cluster: JudgedCluster, pods: Iterable[Pod], over: str) -> dict[str, list[Pod]]:
    """Pods by the value of their node's label; those of nodes without it are under ""."""
    labels = cluster.history.node_labels
    domains: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        domains[labels.get(pod.spec.node_name, {}).get(over, "")].append(pod)
    return domains


def _no_label(cluster: JudgedCluster, over: str) -> Unmet | None:
    """What is wrong if no node has or had the label; None if one has."""
    every = cluster.history.node_labels.values()
    if any(over in labels for labels in every):
        return None
    known = {label for labels in every for label in labels}
    return Unmet(f'no node has the label "{over}"{near(over, sorted(known))}')


def _is_open(node: Node) -> bool:
    ready = first_condition(node.status.conditions, "Ready")
    return not node.spec.unschedulable and (ready is None or ready.status == "True")


# --- What happened ------------------------------------------------------------------------------


def judge_evicted(cluster: JudgedCluster, target: PodTarget, at_most: int) -> Unmet | None:
    """At most this many pods lost their node: preempted, drained, tainted, with their node."""
    return _lost(cluster, target, at_most, (EVICTED, PREEMPTED), "evicted")


def judge_preempted(cluster: JudgedCluster, target: PodTarget, at_most: int) -> Unmet | None:
    """At most this many pods were evicted by the scheduler for others."""
    return _lost(cluster, target, at_most, (PREEMPTED,), "preempted")


def _lost(
    cluster: JudgedCluster, target: PodTarget, at_most: int, how: Sequence[str], word: str
) -> Unmet | None:
    lost = [pod for pod in cluster.history.lost if pod.how in how and _was_of(target, pod)]
    if len(lost) <= at_most:
        # No name of all pods is misspelt.
        is_known = target == ALL_PODS or _had_any(cluster, target)
        return None if is_known else _no_pods(cluster, target)
    names = _some(f"{_lost_text(pod)} on {pod.node} ({pod.why})" for pod in lost)
    return Unmet(f"{counted(len(lost), 'pod')} {word}: {names}", [_lost_text(p) for p in lost])


def _was_of(target: PodTarget, pod: LostPod) -> bool:
    if target.namespace not in (None, pod.namespace):
        return False
    if target.selector is not None and not target.selector.matches(pod.labels):
        return False
    return target.owner is None or target.owner in (f"Pod/{pod.name}", *pod.owners)


def _lost_text(pod: LostPod) -> str:
    return f"{pod.namespace}/{pod.name}"


def judge_budget(cluster: JudgedCluster, name: str | None, namespace: str | None) -> Unmet | None:
    """Budgets had their healthy pods from when they first had them, and have them now."""
    known = cluster.history.budgets
    chosen = {
        key: record
        for key, record in known.items()
        if name in (None, key[1]) and namespace in (None, key[0])
    }
    if not chosen:
        hint = near(name or "", [key[1] for key in known])
        return Unmet(f"there is no such disruption budget{hint}")
    for (_, budget), record in chosen.items():
        if record.healthy_min is not None:
            healthy, desired = record.healthy_min
            text = f"{budget} had {healthy} healthy pods of {desired}"
            return Unmet(f"{text}, first after {record.violated_s:.6g} s", (), text)
        if not record.was_met:
            return Unmet(f"{budget} never had {record.desired} healthy pods: {record.healthy}")
    return None


# --- How much -----------------------------------------------------------------------------------


def judge_headroom(
    cluster: JudgedCluster, copies: Sequence[Document], at_least: int
) -> Unmet | None:
    """This many copies fit besides what is there."""
    found = cluster.fit(copies, at_least)
    if found.copies >= at_least:
        return None
    text = f"{counted(found.copies, 'copy')} fit"
    return Unmet(f"{text}; the next: {found.message}", (), text)


def judge_gangs(
    cluster: JudgedCluster, name: str | None, namespace: str | None, are: str
) -> Unmet | None:
    """Gangs have the members they need on nodes, or none."""
    found = _gangs(cluster)
    chosen = {
        key: counts
        for key, counts in found.items()
        if name in (None, key.name) and namespace in (None, key.namespace)
    }
    if not chosen:
        return Unmet(f"there is no such gang{near(name or '', [key.name for key in found])}")
    for key, (placed, needed, pods) in chosen.items():
        states = ["absent"] if placed == 0 else ["whole"] if placed >= needed else []
        if not set(states) & set(are.split(" or ")):
            text = f"{placed} of the {needed} members that {key} needs have a node"
            return Unmet(text, pods)
    return None


def _gangs(cluster: JudgedCluster) -> dict[GroupKey, tuple[int, int, list[str]]]:
    """For each gang, how many members have a node, how many are needed, and those that wait."""
    found: dict[GroupKey, tuple[int, int, list[str]]] = {}
    for pod in cluster.pods(ALL_PODS):
        gang = cluster.gang_of(pod)
        if gang is None:
            continue
        placed, needed, waiting = found.get(gang.key, (0, gang.min_count, []))
        if pod.spec.node_name:
            placed += 1
        else:
            waiting.append(key_of(pod))
        found[gang.key] = (placed, needed, waiting)
    return found


# --- Words --------------------------------------------------------------------------------------


def _placed(cluster: JudgedCluster, target: PodTarget) -> list[Pod]:
    return [pod for pod in cluster.pods(target) if pod.spec.node_name]


def _none_placed(cluster: JudgedCluster, target: PodTarget) -> Unmet:
    waiting = cluster.waiting(target)
    if not waiting:
        return _no_pods(cluster, target)
    text = f"no pod of {_name(target)} has a node"
    return Unmet(_with_reasons(text, waiting, ()), _keys(waiting), text)


def _no_pods(cluster: JudgedCluster, target: PodTarget) -> Unmet:
    text = f"there are no pods of {_name(target)}"
    gone = sum(_was_of(target, pod) for pod in cluster.history.lost)
    if gone:
        return Unmet(f"{text} any more: {counted(gone, 'pod')} ended or went")
    known = cluster.known_owners()
    is_misspelt = target.owner is not None and target.owner not in known
    return Unmet(text + (near(target.owner or "", known) if is_misspelt else ""))


def _no_nodes(cluster: JudgedCluster, target: NodeTarget) -> Unmet:
    if target.name is None:
        return Unmet(f"no node has the labels {target.text}" if target.text else "there is no node")
    hint = near(target.name, sorted(cluster.history.node_labels))
    return Unmet(f'there is no node "{target.name}"{hint}')


def _name(target: PodTarget) -> str:
    parts = [] if target.owner is None else [target.owner]
    if target.selector is not None:
        parts.append(target.text)
    if target.namespace is not None:
        parts.append(f"namespace {target.namespace}")
    return " in ".join(parts) or "the cluster"


def _lacks(waiting: Sequence[Pod]) -> str:
    """The resources of which nodes have too little for the first pod that waits."""
    for pod in waiting:
        found = dict.fromkeys(_LACKS.findall(message_of(pod)))
        if found:
            return ", ".join(found)
    return ""


def _with_reasons(
    text: str,
    waiting: Sequence[Pod],
    short: Sequence[tuple[str, int, str]],
) -> str:
    messages = Counter(_message(pod) for pod in waiting)
    parts = [message for message, _ in messages.most_common(2)]
    parts += [f"{owner}: {why}" for owner, _, why in short if why]
    return f"{text}: {'; '.join(parts)}" if parts else text


def _message(pod: Pod) -> str:
    return message_of(pod) or "it was not tried"


def _keys(pods: Iterable[Pod]) -> list[str]:
    return [key_of(pod) for pod in pods]


def _some(texts: Iterable[str]) -> str:
    return some_of(list(texts), _SHOWN)
