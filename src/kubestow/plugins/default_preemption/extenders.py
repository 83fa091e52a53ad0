"""Lets extenders filter the candidates (spec 08 A7, spec 04 §13.5)."""

from collections.abc import Iterable, Mapping

from kubestow.api.pod_info import PodInfo
from kubestow.cache.snapshot import Snapshot
from kubestow.errors import PluginError
from kubestow.framework.extender import MetaVictims, PreemptExtender, Victims
from kubestow.plugins.default_preemption.candidates import Candidate, Candidates
from kubestow.plugins.default_preemption.one_node import no_victim_needed


def ask_extenders(
    extenders: Iterable[PreemptExtender],
    pod: PodInfo,
    candidates: Candidates,
    snapshot: Snapshot,
    now_ns: int,
) -> Candidates:
    """The remaining candidates and victims; raises errors of extenders that are not ignorable."""
    asked = [
        extender
        for extender in extenders
        if extender.has_preempt_verb and extender.is_interested(pod.pod)
    ]
    if not asked:
        return candidates
    kept = [candidates[position] for position in range(len(candidates))]
    for extender in asked:
        try:
            answer = extender.preempt(pod.pod, _as_map(kept, snapshot))
            kept = [
                _candidate(extender, name, victims, snapshot) for name, victims in answer.items()
            ]
        except Exception:  # Any failure of an ignorable extender is ignored.
            if not extender.is_ignorable:
                raise
            continue
        kept = _without_empty(extender, kept, snapshot)
        if not kept:
            break
    return Candidates.of(kept, now_ns)


def _as_map(candidates: Iterable[Candidate], snapshot: Snapshot) -> Mapping[str, Victims]:
    return {
        snapshot.names[candidate.row]: Victims(
            [victim.pod for victim in candidate.victims], candidate.violation_count
        )
        for candidate in candidates
    }


def _candidate(
    extender: PreemptExtender, node_name: str, victims: MetaVictims, snapshot: Snapshot
) -> Candidate:
    pods = {pod.uid: pod for pod in snapshot.get(node_name).pods}
    for uid in victims.uids:
        if uid not in pods:
            raise PluginError(
                f"extender: {extender.name} claims to preempt pod (UID: &{{{uid}}}) "
                f"on node: {node_name}, but the pod is not found on that node"
            )
    row = snapshot.row_of(node_name)
    assert row is not None, node_name
    return Candidate(row, [pods[uid] for uid in victims.uids], victims.violation_count)


def _without_empty(
    extender: PreemptExtender, candidates: Iterable[Candidate], snapshot: Snapshot
) -> list[Candidate]:
    kept: list[Candidate] = []
    for candidate in candidates:
        if candidate.victims:
            kept.append(candidate)
        elif not extender.is_ignorable:
            error = no_victim_needed(snapshot.names[candidate.row]).as_error()
            assert error is not None
            raise error
    return kept
