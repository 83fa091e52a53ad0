"""What a running scheduler knows of a pod: its last attempt, and where in the queue it is now.

Collected on the scheduler's loop, which takes microseconds, and milliseconds for the evidence: what
is missing is read from the nodes as they are now. Not here: its explanation, which is made
elsewhere (`running`).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from kubestow.api.pod import Pod, is_assigned
from kubestow.api.pod_info import PodInfo
from kubestow.config.feature_gates import FeatureGates
from kubestow.engine.frozen_decision import FrozenDecision
from kubestow.engine.scheduler import Scheduler
from kubestow.explain.history import AttemptHistory, KeptAttempt
from kubestow.framework.hints import HintMap
from kubestow.framework.profile import Profile
from kubestow.queue import SchedulingQueue

if TYPE_CHECKING:  # imported when a pod is asked about
    from kubestow.explain.evidence.facts import Mistake, ReasonEvidence
    from kubestow.explain.explanation import NearMiss

# Plugin and reason.
ReasonKey = tuple[str, str]


class RunningEvidence(NamedTuple):
    """What is missing for a pod that waits, as of now.

    reasons    what is behind each reason of the last attempt; one that no longer holds has none
    nearest    the nodes that almost fit
    mistakes   names that match nothing and are close to one that exists
    """

    reasons: "Mapping[ReasonKey, ReasonEvidence]"
    nearest: "tuple[NearMiss, ...]" = ()
    mistakes: "tuple[Mistake, ...]" = ()


_NO_EVIDENCE: Final = RunningEvidence({})


class RunningPod(NamedTuple):
    """What a running scheduler knows of a pod.

    kept         its last attempt, if it was kept
    gate         the PreEnqueue plugin that holds it back, if one does
    place        where in the queue it is; empty if it does not wait
    next_try_ns  when it is tried again at the latest, if that is known
    priorities   of the victims, by key
    evidence     what is missing, as of now
    """

    pod: Pod
    kept: KeptAttempt | None
    gate: str
    place: str
    next_try_ns: int | None
    hint_map: HintMap
    priorities: dict[str, int]
    evidence: RunningEvidence = _NO_EVIDENCE


def find_running(
    scheduler: Scheduler,
    history: AttemptHistory,
    namespace: str,
    name: str,
    gates: FeatureGates | None = None,
) -> RunningPod | None:
    """Collect it, on the scheduler's loop; None if the pod is not known to this scheduler.

    With `gates`, those of the scheduler, evidence is collected as well.
    """
    pod = scheduler.objects.pods.get(namespace, name)
    profile = None if pod is None else scheduler.profiles.get(pod.spec.scheduler_name)
    queue = scheduler.queue
    if pod is None or profile is None or not isinstance(queue, SchedulingQueue):
        return None
    queued_pod, place = queue.get_pod(name, namespace), queue.place_of(pod)
    kept = history.find(namespace, name)
    if kept is not None and kept.decision.pod.uid != pod.metadata.uid:
        kept = None  # of an earlier pod of this name
    return RunningPod(
        pod=pod,
        kept=kept,
        gate="" if queued_pod is None else queued_pod.gating_plugin,
        place="" if place is None else place.value,
        next_try_ns=queue.next_try_ns(pod),
        hint_map=queue.hint_maps[profile.name],
        priorities=_priorities(scheduler, kept),
        evidence=(
            _NO_EVIDENCE
            if gates is None or kept is None
            else evidence_now(scheduler, profile, pod, kept, gates)
        ),
    )


def kept_attempts(
    scheduler: Scheduler, history: AttemptHistory, namespace: str
) -> list[FrozenDecision]:
    """The last attempts of the pods that still wait, of one namespace or of all (""); on the
    scheduler's loop."""
    found: list[FrozenDecision] = []
    for kept in history.all():
        own_namespace, _, name = kept.decision.pod.key.partition("/")
        pod = scheduler.objects.pods.get(own_namespace, name)
        is_same = pod is not None and pod.metadata.uid == kept.decision.pod.uid
        is_asked_for = namespace in ("", own_namespace)
        if pod is not None and is_same and not is_assigned(pod) and is_asked_for:
            found.append(kept.decision)
    return found


def evidence_now(
    scheduler: Scheduler, profile: Profile, pod: Pod, kept: KeptAttempt, gates: FeatureGates
) -> RunningEvidence:
    """What is missing for a pod that waits; on the scheduler's loop, for as long as a cycle."""
    if pod.spec.node_name:
        return _NO_EVIDENCE
    from kubestow.explain.evidence.collected import reason_evidence
    from kubestow.explain.evidence.context import EvidenceContext
    from kubestow.explain.evidence.spelling import find_mistakes
    from kubestow.explain.nearest import nearest_misses
    from kubestow.explain.suggestions.stuck_pod import PreparedPod
    from kubestow.explain.verdicts import reason_groups

    nominator = scheduler.queue.nominator
    context = EvidenceContext(
        PodInfo(pod),
        profile,
        scheduler.snapshot,
        scheduler.objects,
        gates=gates,
        nominated=nominator.nominated_pods_for_node,
    )
    found = {
        (group.plugin, group.reason): reason_evidence(
            context, group.nodes, group.reason, group.reason_code
        )
        for group in reason_groups(kept.decision)
    }
    nearest: tuple[NearMiss, ...] = ()
    # A member of a group is tried with the others, not by itself.
    groups = scheduler.cache.groups
    if found and (groups is None or groups.key_of(pod) is None):
        attempt = PreparedPod(profile, scheduler.snapshot, nominator, pod)
        nearest = nearest_misses(context, attempt)
    return RunningEvidence(
        {key: each for key, each in found.items() if each is not None},
        nearest,
        find_mistakes(context) if found else (),
    )


def _priorities(scheduler: Scheduler, kept: KeptAttempt | None) -> dict[str, int]:
    found: dict[str, int] = {}
    for victim in kept.decision.victims if kept is not None else ():
        namespace, _, name = victim.key.partition("/")
        known = scheduler.objects.pods.get(namespace, name)
        if known is not None:
            found[victim.key] = known.spec.priority or 0
    return found
