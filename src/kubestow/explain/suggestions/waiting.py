"""Wait: pods that are being deleted, or whose Job has a deadline, free what the pod needs."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from kubestow.api.owners import controller_of
from kubestow.api.pod import is_terminating
from kubestow.api.pod_info import PodInfo
from kubestow.api.resources import amount_of
from kubestow.clock import NANOSECONDS
from kubestow.explain.evidence.amounts import amount_text, amount_words
from kubestow.explain.suggestions.evictions import names_of
from kubestow.explain.suggestions.remedy import WAIT, Remedy, make_remedy
from kubestow.explain.suggestions.requests import FIT
from kubestow.explain.suggestions.stuck_pod import StuckPod
from kubestow.plugins.node_resources_fit.plugin import NodeResourcesFit

# Nodes on which pods are ending that are looked at, those that end first.
NODES_TRIED: Final = 8
# Ends on one node that are tried one after the other.
ENDS_TRIED: Final = 16
# A longer wait is a larger change: one per this many minutes, up to a limit.
WAIT_STEP: Final = 10
WAIT_MOST: Final = 100


class _End(NamedTuple):
    """When a pod is gone at the latest; `job` is the Job that ends then, "" if it is deleted."""

    at: datetime
    pod: PodInfo
    job: str


def wait_for_ends(stuck: StuckPod) -> Iterator[Remedy]:
    """The first node on which the pod fits once pods are gone that end by themselves."""
    if stuck.rejected_early:
        return
    ending: list[tuple[int, list[_End]]] = []
    for row, info in enumerate(stuck.snapshot.node_infos):
        if not stuck.cluster.job_ends and info.live_class_counts is info.class_counts:
            continue  # No pod of this node is being deleted.
        ends = sorted(_ends(stuck, info.pods), key=lambda end: end.at)
        if ends:
            ending.append((row, ends))
    ending.sort(key=lambda entry: entry[1][0].at)
    found = [
        (needed[-1].at, row, needed)
        for row, ends in ending[:NODES_TRIED]
        if (needed := _needed(stuck, ends))
    ]
    if found:
        at, row, needed = min(found, key=lambda entry: entry[:2])
        removed = tuple(end.pod.pod for end in needed)
        text = f"wait: {stuck.snapshot.names[row]} frees {_freed(stuck, needed)} {_when(needed)}"
        minutes = (at.timestamp() - stuck.cluster.clock.now_ns() / NANOSECONDS) / 60
        amount = min(max(int(minutes) // WAIT_STEP, 0), WAIT_MOST)
        yield make_remedy(WAIT, text, stuck.pod, removed=removed, amount=amount)


def _ends(stuck: StuckPod, pods: Iterable[PodInfo]) -> Iterator[_End]:
    ends = stuck.cluster.job_ends
    for pod in pods:
        at = pod.pod.metadata.deletion_timestamp
        if is_terminating(pod.pod) and at is not None:
            yield _End(at, pod, "")
            continue
        owner = controller_of(pod.pod) if ends else None
        if owner is not None and owner.kind == "Job":
            at = ends.get((pod.namespace, owner.name))
            if at is not None:
                yield _End(at, pod, owner.name)


def _needed(stuck: StuckPod, ends: Sequence[_End]) -> list[_End]:
    """The first of these, in their order, that are enough; empty if all are not."""
    if not stuck.fits_with(removed=[end.pod.pod for end in ends]):
        return []
    for count in range(1, min(len(ends), ENDS_TRIED)):
        if stuck.fits_with(removed=[end.pod.pod for end in ends[:count]]):
            return [*ends[:count]]
    return [*ends]


def _when(needed: Sequence[_End]) -> str:
    last = f"{needed[-1].at:%Y-%m-%d %H:%M:%S} UTC"
    jobs = sorted({end.job for end in needed if end.job})
    gone = [end.pod for end in needed if not end.job]
    parts: list[str] = []
    if gone:
        parts.append(f"{names_of(gone)} {'is' if len(gone) == 1 else 'are'} gone")
    if jobs:
        noun, verb = ("Job", "ends") if len(jobs) == 1 else ("Jobs", "end")
        parts.append(f"{noun} {', '.join(jobs)} {verb}")
    by = "by its deadline, " if len(jobs) == 1 and not gone else "by "
    return f"when {' and '.join(parts)}, {by}{last}"


def _freed(stuck: StuckPod, needed: Sequence[_End]) -> str:
    plugin = stuck.attempt.profile.plugins.get(FIT)
    if not isinstance(plugin, NodeResourcesFit):
        return "what is needed"
    parts: list[str] = []
    for demand in plugin.fit_request(stuck.attempt.state).demands:
        freed = sum(amount_of(demand.name, end.pod.accounted.requested) for end in needed)
        if freed:
            words = amount_words(demand.name, amount_text(demand.name, freed))
            parts.append(f"{words} {demand.name}")
    return " and ".join(parts) or "what is needed"
