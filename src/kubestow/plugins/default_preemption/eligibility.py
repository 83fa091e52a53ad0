"""Which pods may preempt, and which may be evicted (spec 08 A2, A4)."""

from collections.abc import Callable
from typing import Final, NamedTuple

from kubestow.api.importance import importance_key
from kubestow.api.pod import first_condition, is_terminating
from kubestow.api.pod_info import PodInfo
from kubestow.cache.node_info import NodeInfo
from kubestow.cache.snapshot import Snapshot
from kubestow.framework.diagnosis import Diagnosis
from kubestow.framework.status import Code

DISRUPTION_TARGET: Final = "DisruptionTarget"
PREEMPTION_BY_SCHEDULER: Final = "PreemptionByScheduler"

NEVER: Final = "not eligible due to preemptionPolicy=Never."
TERMINATING_VICTIM: Final = "not eligible due to a terminating pod on the nominated node."


class VictimRules(NamedTuple):
    """The two rules that a derived plugin may replace.

    may_evict        whether the preemptor (last) may evict the pod from that node at all; that
                     its priority is lower is checked as well
    importance_key   sorts more important pods first; gets the current time
    """

    may_evict: Callable[[NodeInfo, PodInfo, PodInfo], bool]
    importance_key: Callable[[PodInfo, int], tuple[int, ...]]


def may_evict_any(node: NodeInfo, victim: PodInfo, preemptor: PodInfo) -> bool:
    return True


DEFAULT_RULES: Final = VictimRules(may_evict_any, importance_key)


def why_ineligible(
    pod: PodInfo,
    diagnosis: Diagnosis,
    snapshot: Snapshot,
    rules: VictimRules,
    is_requested: Callable[[str], bool] = lambda uid: False,
) -> str:
    """Why the pod must not preempt now; empty if it may.

    `is_requested` says of a UID that this scheduler deletes the pod, though no watch shows it yet.
    Upstream would take another victim elsewhere; its requests are faster than its cycles.
    """
    if pod.pod.spec.preemption_policy == "Never":
        return NEVER
    nominated = pod.pod.status.nominated_node_name
    row = snapshot.row_of(nominated) if nominated else None
    if row is None:
        return ""
    status = diagnosis.status_of(row)
    if status is not None and status.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        # Waiting for victims there is useless: no eviction makes the pod fit there.
        return ""
    info = snapshot.node_infos[row]
    is_waiting = any(
        victim.priority < pod.priority
        and (is_leaving_for_preemption(victim) or is_requested(victim.uid))
        and rules.may_evict(info, victim, pod)
        for victim in info.pods
    )
    return TERMINATING_VICTIM if is_waiting else ""


def is_leaving_for_preemption(victim: PodInfo) -> bool:
    """Whether the pod is being deleted because a scheduler preempted it, not by a user."""
    if not is_terminating(victim.pod):
        return False
    condition = first_condition(victim.pod.status.conditions, DISRUPTION_TARGET)
    return (
        condition is not None
        and condition.status == "True"
        and condition.reason == PREEMPTION_BY_SCHEDULER
    )
