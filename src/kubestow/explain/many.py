"""Many waiting pods at once: grouped by what keeps them waiting, and by the change that helps most.

All of them are placed together first, as far as they fit. What the others lack is then said once
for equal pods. Changes are searched for the largest classes of equal pods and tried on all that
wait: each is made, all pods are placed together again, and those that find a node are counted.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from kubestow.api.meta import object_ref
from kubestow.api.pod import Pod, is_assigned, is_terminating
from kubestow.engine.frozen_decision import FrozenDecision
from kubestow.explain.cluster import StillCluster
from kubestow.explain.evidence.collected import reason_evidence
from kubestow.explain.explanation import Suggestion
from kubestow.explain.many_explanation import (
    PODS_NAMED,
    Cause,
    ManyExplanation,
    OwnerCount,
    SharedRemedy,
)
from kubestow.explain.pod import evidence_context
from kubestow.explain.reason_codes import reason_code
from kubestow.explain.suggestions.owners import origin_of
from kubestow.explain.suggestions.remedy import Remedy, rank
from kubestow.explain.suggestions.search import (
    Verified,
    find_new_node,
    find_remedies,
    suggestion_of,
)
from kubestow.explain.together import class_of, in_queue_order, placed_together
from kubestow.explain.verdicts import reason_groups
from kubestow.explain.waiting import gate_of
from kubestow.plural import counted

# Classes for which changes are searched, changes of each, changes that are tried on all pods, and
# those that are shown.
CLASSES_SEARCHED: Final = 6
OF_CLASS: Final = 3
TRIED_TOGETHER: Final = 8
SHOWN_MAX: Final = 5
_EVIDENCE_SHOWN: Final = 3
_AMOUNTS_SHOWN: Final = 3


class _Class(NamedTuple):
    """Equal pods that wait."""

    pods: list[Pod]

    @property
    def first(self) -> Pod:
        return self.pods[0]


class _Why(NamedTuple):
    """Why the pods of a class wait."""

    reasons: tuple[str, ...]
    codes: tuple[str, ...]
    evidence: tuple[str, ...]


def waiting_pods(cluster: StillCluster) -> list[Pod]:
    """The pods of known profiles that wait, in the order in which they are tried."""
    return in_queue_order(
        pod
        for pod in cluster.objects.pods
        if not is_assigned(pod) and not is_terminating(pod) and cluster.profile_of(pod) is not None
    )


def explain_many(
    cluster: StillCluster, pods: Sequence[Pod], *, has_remedies: bool = True
) -> ManyExplanation:
    """Why these pods wait. All pods of the cluster that wait are placed with them; the cluster is
    as before afterwards."""
    asked = {object_ref(pod.metadata) for pod in pods}
    every = waiting_pods(cluster)
    with placed_together(cluster, every) as together:
        stuck = [pod for pod in together.waiting if object_ref(pod.metadata) in asked]
        classes = _classes(stuck)
        found = [(each, _why(cluster, each.first)) for each in classes]
        candidates = _candidates(cluster, classes) if has_remedies else ()
        causes = tuple(_causes(cluster, found))
        nodes = together.nodes
    remedies = _remedies(cluster, candidates, _Placed(every, nodes, stuck))
    return ManyExplanation(
        waiting=len(pods),
        fitting=len(pods) - len(stuck),
        causes=causes,
        remedies=remedies,
        summary=_summary(len(pods), len(stuck)),
    )


def _summary(waiting: int, stuck: int) -> str:
    if not waiting:
        return "no pod waits"
    if not stuck:
        return f"{counted(waiting, 'pod')} that wait all fit"
    return f"{stuck} of {counted(waiting, 'waiting pod')} {'fits' if stuck == 1 else 'fit'} nowhere"


def _classes(pods: Iterable[Pod]) -> list[_Class]:
    """Equal pods together, the largest class first."""
    found: dict[Hashable, _Class] = {}
    for pod in pods:
        found.setdefault(class_of(pod), _Class([])).pods.append(pod)
    return sorted(found.values(), key=lambda each: -len(each.pods))


# --- causes ---


def _why(cluster: StillCluster, pod: Pod) -> _Why:
    profile = cluster.profile_of(pod)
    assert profile is not None
    gate = gate_of(profile, pod)
    if gate is not None:
        return _Why((gate.message,), (gate.plugin,), ())
    return why_of(cluster, pod, cluster.decide(pod).freeze())


def why_of(cluster: StillCluster, pod: Pod, attempt: FrozenDecision) -> _Why:
    """The reasons of an attempt, with what is behind the first ones."""
    groups = reason_groups(attempt)
    if not groups and attempt.status is not None:
        # No node was asked: there is none, or the attempt failed before.
        reasons = attempt.status.reasons
        plugin = attempt.status.plugin
        return _Why(reasons, tuple(reason_code(plugin, reason) for reason in reasons), ())
    context = evidence_context(cluster, pod)
    evidence: list[str] = []
    for group in groups[:_EVIDENCE_SHOWN]:
        found = reason_evidence(context, group.nodes, group.reason, group.reason_code)
        nodes = counted(group.count, "node")
        evidence.append(f"{nodes}: {group.reason if found is None else found.text}")
    if attempt.nominated_node and attempt.victims:
        victims = counted(len(attempt.victims), "pod")
        evidence.append(f'evicting {victims} from "{attempt.nominated_node}" makes one fit')
    return _Why(
        tuple(group.reason for group in groups),
        tuple(group.reason_code for group in groups),
        tuple(evidence),
    )


def _causes(cluster: StillCluster, found: Sequence[tuple[_Class, _Why]]) -> list[Cause]:
    by_codes: dict[frozenset[str], list[tuple[_Class, _Why]]] = {}
    for entry in found:
        by_codes.setdefault(frozenset(entry[1].codes), []).append(entry)
    causes: list[Cause] = []
    for entries in by_codes.values():
        pods = [pod for each, _ in entries for pod in each.pods]
        why = entries[0][1]
        owners = Counter(owner_text(cluster, pod) for pod in pods)
        causes.append(
            Cause(
                text=", ".join(dict.fromkeys(why.reasons)) or "the attempt failed",
                reasons=why.reasons,
                reason_codes=why.codes,
                evidence=_evidence(entries),
                count=len(pods),
                pods=tuple(object_ref(pod.metadata) for pod in pods[:PODS_NAMED]),
                owners=tuple(
                    OwnerCount(owner=owner, count=count)
                    for owner, count in owners.most_common(PODS_NAMED)
                ),
            )
        )
    return sorted(causes, key=lambda each: -each.count)


def _evidence(entries: Sequence[tuple[_Class, _Why]]) -> tuple[str, ...]:
    """What is behind equal reasons; where that differs from pod to pod, with how many it is of."""
    counts = Counter[tuple[str, ...]]()
    for each, why in entries:
        counts[why.evidence] += len(each.pods)
    if len(counts) == 1:
        return entries[0][1].evidence
    shown = counts.most_common(_AMOUNTS_SHOWN)
    lines = [f"{counted(count, 'pod')}, {text}" for evidence, count in shown for text in evidence]
    rest = counts.total() - sum(count for _, count in shown)
    return (*lines, f"{counted(rest, 'pod')}: other amounts") if rest else tuple(lines)


def owner_text(cluster: StillCluster, pod: Pod) -> str:
    """The workload of a pod, or the pod itself."""
    origin = origin_of(cluster, pod)
    if origin is None:
        return f"Pod {object_ref(pod.metadata)}"
    return f"{origin.kind} {pod.metadata.namespace}/{origin.name}"


# --- remedies ---


class _Placed(NamedTuple):
    """All pods that wait, where those go that fit, and the others that were asked for."""

    every: Sequence[Pod]
    nodes: Mapping[str, str]
    stuck: Sequence[Pod]


class _Candidate(NamedTuple):
    """A change for the pods of a class, as it is shown."""

    of: _Class
    change: Remedy
    text: str
    shown: Suggestion


def _candidates(cluster: StillCluster, classes: Sequence[_Class]) -> list[_Candidate]:
    """The changes to try. The pods that fit are on their nodes meanwhile."""
    candidates: dict[str, tuple[_Class, Verified]] = {}
    for each in classes[:CLASSES_SEARCHED]:
        for found in find_remedies(cluster, each.first, limit=OF_CLASS, of_kind=1):
            candidates.setdefault(_name(found.change), (each, found))
        # The largest change for one pod, but it may place many.
        new_node = find_new_node(cluster, each.first)
        if new_node is not None:
            candidates.setdefault(_name(new_node.change), (each, new_node))
    ordered = sorted(candidates.values(), key=lambda entry: rank(entry[1].change))
    # One more node helps pods of many classes, but is the largest change.
    ordered.sort(key=lambda entry: not entry[1].change.objects)
    return [
        _Candidate(
            each,
            found.change,
            _text(cluster, found.change, each),
            suggestion_of(cluster, found.change, found.node),
        )
        for each, found in ordered[:TRIED_TOGETHER]
    ]


def _remedies(
    cluster: StillCluster, candidates: Sequence[_Candidate], placed: _Placed
) -> tuple[SharedRemedy, ...]:
    shared = [
        (-remedy.places, rank(candidate.change), remedy)
        for candidate in candidates
        if (remedy := _tried(cluster, candidate, placed)).places > 0
    ]
    # Of those that place as many pods, the smallest change.
    shared.sort(key=lambda entry: entry[:2])
    return tuple(remedy for *_, remedy in shared[:SHOWN_MAX])


def _name(change: Remedy) -> str:
    """Changes of the cluster are the same for all pods, those of a pod for its class."""
    is_of_pod = not change.objects and not change.removed
    return f"{change.text} {change.pod.metadata.name if is_of_pod else ''}"


def _tried(cluster: StillCluster, candidate: _Candidate, placed: _Placed) -> SharedRemedy:
    """The change, made for all pods of the class that it was found for, and all pods placed again,
    also those that fit without it: they may go elsewhere then."""
    change, shown = candidate.change, candidate.shown
    alike = {pod.metadata.uid for pod in candidate.of.pods}
    is_changed = cluster.find(change.pod) != change.pod
    new = [
        _changed(pod, change) if is_changed and pod.metadata.uid in alike else pod
        for pod in placed.every
    ]
    changed = [pod for pod, before in zip(new, placed.every, strict=True) if pod is not before]
    with (
        cluster.changed(*changed, *change.objects, removed=change.removed),
        placed_together(cluster, new) as together,
    ):
        nodes = together.nodes
    keys = [key for pod in placed.stuck if (key := object_ref(pod.metadata)) in nodes]
    lost = sum(key not in nodes for key in placed.nodes)
    return SharedRemedy(
        kind=change.kind,
        text=candidate.text,
        places=len(keys) - lost,
        of=len(placed.stuck),
        pods=tuple(keys[:PODS_NAMED]),
        patches=shown.patches,
        commands=shown.commands,
        effect=shown.effect,
    )


def _changed(pod: Pod, change: Remedy) -> Pod:
    """A pod of the same class with the same change."""
    return msgspec.structs.replace(pod, spec=change.pod.spec)


def _text(cluster: StillCluster, change: Remedy, of: _Class) -> str:
    if change.objects or change.removed:
        return change.text
    is_alone = origin_of(cluster, of.first) is None
    others = len(of.pods) - 1
    alike = f" and {counted(others, 'pod')} like it" if others and is_alone else ""
    return f"{owner_text(cluster, of.first)}{alike}: {change.text}"
