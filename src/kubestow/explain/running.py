"""The explanation of a pod of a running scheduler, made of what is known of it (`running_pod`).

It takes milliseconds in large clusters, so it is not made on the scheduler's loop.
"""

from datetime import UTC, datetime

import msgspec
from msgspec import UNSET

from kubestow.clock import NANOSECONDS
from kubestow.engine.frozen_decision import PodRef
from kubestow.explain.attempt import explain_attempt
from kubestow.explain.explanation import AttemptRecord, Explanation, PodReference
from kubestow.explain.running_pod import RunningEvidence, RunningPod
from kubestow.explain.waiting import awaited_events


def explain_running(running: RunningPod) -> Explanation | None:
    """The last attempt, or that the pod is held back; None if nothing is kept."""
    if running.gate:
        return _gated(running)
    kept = running.kept
    if kept is None:
        return None

    def priority_of(victim: PodRef) -> int:
        return running.priorities.get(victim.key, 0)

    explanation = explain_attempt(kept.decision, hint_map=running.hint_map, priority_of=priority_of)
    explanation = with_running_evidence(explanation, running.evidence)
    node = running.pod.spec.node_name
    return msgspec.structs.replace(
        explanation,
        outcome="Bound" if node else explanation.outcome,
        node=node or explanation.node,
        attempt=AttemptRecord(
            at=_time(kept.at_ns),
            attempts=kept.attempts,
            next_try="" if running.next_try_ns is None else _time(running.next_try_ns),
            place=running.place,
        ),
    )


def with_running_evidence(explanation: Explanation, evidence: RunningEvidence) -> Explanation:
    """The explanation of an attempt with what is missing as of now."""
    reasons = tuple(
        msgspec.structs.replace(
            group, evidence=evidence.reasons.get((group.plugin, group.reason), UNSET)
        )
        for group in explanation.reasons
    )
    return msgspec.structs.replace(
        explanation, reasons=reasons, nearest=evidence.nearest, mistakes=evidence.mistakes
    )


def _gated(running: RunningPod) -> Explanation:
    metadata = running.pod.metadata
    return Explanation(
        pod=PodReference(namespace=metadata.namespace, name=metadata.name, uid=metadata.uid),
        outcome="Gated",
        summary=f"{running.gate} holds it back",
        scheduler_name=running.pod.spec.scheduler_name,
        waiting_for=awaited_events(running.hint_map, {running.gate}),
    )


def _time(now_ns: int) -> str:
    return datetime.fromtimestamp(now_ns // NANOSECONDS, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
