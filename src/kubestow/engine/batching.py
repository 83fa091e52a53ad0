"""Opportunistic batching: the nodes that one pod left over go to equal pods after it (spec 04 §15).

    pod 1   search, scores ──► best node; the others are kept in an array heap
    pod 2   equal, the next cycle, and the last node is full ──► hint: the best of the others

A hint is tried like a nominated node, before all nodes are searched. It need not be the node that a
search would choose: scores were normalised with nodes that are full now. So this saves no work
here, but decides placements, and is done as kube-scheduler does it.

Pods are equal if their signatures are: what the plugins of the profile say that they read of them.
Not here: what a plugin reads (`sign_pod` of the plugins), when a pod is signed (`queue`).
"""

import logging
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from kubestow.api.pod_info import PodInfo
from kubestow.arrays import IntArray
from kubestow.cache.snapshot import Snapshot
from kubestow.clock import Clock
from kubestow.engine.decision import Decision
from kubestow.engine.evaluation import Evaluation
from kubestow.engine.metrics import (
    EMPTY_LIST,
    HINT_NOT_USED,
    HINT_USED,
    NO_HINT,
    POD_NOT_BATCHABLE,
)
from kubestow.framework.faults import fault_error
from kubestow.framework.profile import Profile, plugin_name
from kubestow.framework.status import Status
from kubestow.logs import fail
from kubestow.queue import QueuedPod
from kubestow.queue.queued_pod import Signature

log = logging.getLogger(__name__)

# How long the nodes that a pod left are of use.
KEPT_S: Final = 0.5

SIGN: Final = "Sign"


class ScoredNodes:
    """Nodes by their totals, best first: an array heap (spec 04 §8.4).

    names, rows   the nodes that were scored are `names[row]`
    totals        int64[node] in the order of `rows`
    raw           plugin → scores before normalising, in the same order; for rules that read them
    popped        as many of the best are taken away

    Which of equal nodes comes first depends on the places in the array, so it is made step by step
    as kube-scheduler makes it; when it is first read, since mostly it never is.
    """

    def __init__(
        self,
        names: Sequence[str],
        rows: Sequence[int] | npt.NDArray[np.intp],
        totals: IntArray,
        raw: Mapping[str, IntArray] = MappingProxyType({}),
        *,
        popped: int = 0,
    ) -> None:
        self._names = names
        self._rows = rows
        self._totals = totals
        self.raw = raw
        self._popped = popped
        self._heap: list[int] | None = None
        self._by_place: list[int] = []

    def __len__(self) -> int:
        return len(self._rows) - self._popped if self._heap is None else len(self._heap)

    @property
    def best(self) -> str:
        return self._name_at(self.positions[0])

    @property
    def names(self) -> list[str]:
        """In the order of `positions`."""
        return [self._name_at(position) for position in self.positions]

    @property
    def positions(self) -> list[int]:
        """The array of the heap: positions in `rows`."""
        if self._heap is None:
            self._by_place = self._totals.tolist()
            heap = self._heap = list(range(len(self._rows)))
            for place in range(len(heap) // 2 - 1, -1, -1):
                self._sift_down(heap, place, len(heap))
            for _ in range(self._popped):
                self.pop()
        return self._heap

    def pop(self) -> str:
        heap = self.positions
        last = len(heap) - 1
        heap[0], heap[last] = heap[last], heap[0]
        self._sift_down(heap, 0, last)
        return self._name_at(heap.pop())

    def _name_at(self, position: int) -> str:
        return self._names[self._rows[position]]

    def _sift_down(self, heap: list[int], place: int, end: int) -> None:
        totals = self._by_place
        while (child := 2 * place + 1) < end:
            right = child + 1
            if right < end and totals[heap[right]] > totals[heap[child]]:
                child = right
            if totals[heap[child]] <= totals[heap[place]]:
                return
            heap[place], heap[child] = heap[child], heap[place]
            place = child


class LastCycle(NamedTuple):
    """The last cycle that chose a node."""

    number: int
    node_name: str


class KeptNodes(NamedTuple):
    """What the last pod for which nodes were scored has left."""

    signature: Signature
    nodes: ScoredNodes
    made_s: float


class BatchState(NamedTuple):
    """What one profile carries over from pod to pod."""

    last: LastCycle = LastCycle(-1, "")
    kept: KeptNodes | None = None


class Asking(NamedTuple):
    """A pod for which a hint is looked for."""

    cycle: int
    signature: Signature | None
    now_s: float
    nominated_node_name: str = ""


class Unusable(NamedTuple):
    """Why there is no hint, as metrics name it; "" if nothing is kept."""

    reason: str


NOTHING_KEPT: Final = Unusable("")
POD_SKIPPED: Final = Unusable("pod_skipped")
POD_INCOMPATIBLE: Final = Unusable("pod_incompatible")
EXPIRED: Final = Unusable("expired")
NODE_MISSING: Final = Unusable("node_missing")
NODE_NOT_FULL: Final = Unusable("node_not_full")


class LastNodeCheck:
    """What an attempt finds of the node that the pod before it got.

    is_filtered   whether the filters were asked
    status        their answer; None if the pod fits there as well
    skip_score    where the node was scored again: the plugins that took no part in it
    rescoring_s   how long that took
    """

    __slots__ = (
        "evaluation",
        "is_filtered",
        "pod",
        "profile",
        "rescoring_s",
        "skip_score",
        "snapshot",
        "status",
    )

    def __init__(
        self, profile: Profile, snapshot: Snapshot, pod: PodInfo, evaluation: Evaluation
    ) -> None:
        self.profile = profile
        self.snapshot = snapshot
        self.pod = pod
        self.evaluation = evaluation
        self.is_filtered = False
        self.status: Status | None = None
        self.skip_score: frozenset[str] | None = None
        self.rescoring_s: float | None = None

    def filter(self, row: int) -> Status | None:
        """The verdict on the node, without nominated pods."""
        self.status = self.evaluation.status_on(row)
        self.is_filtered = True
        return self.status


class BatchRules:
    """When the kept nodes may be used; another edition has its own."""

    # Whether raw scores are kept as well.
    keeps_raw = False

    def kept_for(self, state: BatchState, asking: Asking) -> KeptNodes | Unusable:
        """What is kept, if it is of use for this pod as far as the pod decides that."""
        kept = state.kept
        if kept is None or not len(kept.nodes):
            return NOTHING_KEPT
        if not self.follows(asking.cycle, state.last.number):
            return POD_SKIPPED
        refusal = self.refusal(asking)
        if refusal is not None:
            return refusal
        if asking.signature is None or not _are_equal(asking.signature, kept.signature):
            return POD_INCOMPATIBLE
        if asking.now_s > kept.made_s + KEPT_S:
            return EXPIRED
        return kept

    def follows(self, cycle: int, last: int) -> bool:
        """Whether no other pod was tried between these two cycles."""
        return cycle == last + 1

    def refusal(self, asking: Asking) -> Unusable | None:
        return None

    def after_last_node(
        self, kept: KeptNodes, last: str, check: LastNodeCheck
    ) -> KeptNodes | Unusable:
        """What is kept, as it is after the pod before got its node.

        Only if that node is full are the others in their right order.
        """
        row = check.snapshot.row_of(last)
        if row is None:
            return NODE_MISSING
        status = check.filter(row)
        return kept if status is not None and status.is_rejected else NODE_NOT_FULL


class Stored(NamedTuple):
    """The state after a cycle that chose a node, how the hint was used if there was one, and why
    nothing new is kept if that is so."""

    state: BatchState
    result: str
    flushed: str = ""


def stored(
    state: BatchState, asking: Asking, hint: str, node_name: str, left: ScoredNodes | None
) -> Stored:
    """`left` are the nodes that the pod leaves to others; None if one node alone was found."""
    last = LastCycle(asking.cycle, node_name)
    if hint and hint == node_name:
        return Stored(BatchState(last, state.kept), HINT_USED)
    result = HINT_NOT_USED if hint else ""
    if left is None:
        return Stored(BatchState(last), result, EMPTY_LIST)
    if asking.signature is None:
        return Stored(BatchState(last), result, POD_NOT_BATCHABLE)
    return Stored(BatchState(last, KeptNodes(asking.signature, left, asking.now_s)), result)


def _are_equal(one: Signature, other: Signature) -> bool:
    try:
        return bool(one == other)
    except BaseException as error:  # A fault in one plugin must not stop the scheduler.
        fail(log, "Comparing signatures failed", fault_error(error, "", SIGN))
        return False


class CycleCounter(Protocol):
    scheduling_cycle: int


class Batches:
    """The states of all profiles whose pods have signatures."""

    def __init__(
        self,
        profiles: Sequence[Profile],
        snapshot: Snapshot,
        rules: BatchRules,
        counter: CycleCounter,
        clock: Clock,
    ) -> None:
        self._profiles = {profile.name: profile for profile in profiles}
        self.snapshot = snapshot
        self.rules = rules
        self._counter = counter
        self.now_s = clock.monotonic_s
        self._states: dict[str, BatchState] = {}

    def sign(self, pod: PodInfo) -> Signature | None:
        """What equal pods are found by; None for a pod that has no equal."""
        profile = self._profiles.get(pod.pod.spec.scheduler_name)
        return None if profile is None else signature_of(profile, pod)

    def attempt(self, profile: Profile, queued_pod: QueuedPod) -> "BatchAttempt | None":
        """The part of a cycle that begins now; None if the profile has no part in this."""
        if profile.name not in self._profiles:
            return None
        return BatchAttempt(self, profile, self._counter.scheduling_cycle, queued_pod.signature)

    def state_of(self, profile: Profile) -> BatchState:
        return self._states.get(profile.name) or BatchState()

    def set_state(self, profile: Profile, state: BatchState) -> None:
        self._states[profile.name] = state

    def forget(self) -> None:
        """The next pod is decided on as the first one."""
        self._states.clear()


class BatchAttempt:
    """One cycle: a hint before the search, what is left after it.

    hint          the node that the pod before left as the next best, or ""
    result        how it was used, as metrics name it
    flushed       why what was kept is not used, or nothing new is kept, as metrics name it
    check         that of the node of the pod before, if it was asked about

    Nothing is taken from what is kept before the cycle ends: it may be set aside, and it is begun
    again where reused answers turn out not to be of use.
    """

    __slots__ = (
        "_batches",
        "_cycle",
        "_kept",
        "_profile",
        "_signature",
        "check",
        "flushed",
        "hint",
        "result",
    )

    def __init__(
        self, batches: Batches, profile: Profile, cycle: int, signature: Signature | None
    ) -> None:
        self._batches = batches
        self._profile = profile
        self._cycle = cycle
        self._signature = signature
        self._kept: KeptNodes | None = None
        self.hint = self.result = ""
        self.flushed: list[str] = []
        self.check: LastNodeCheck | None = None

    def find_hint(self, decision: Decision, evaluation: Evaluation) -> str:
        """The node to try before all others, or ""; call it after PreFilter."""
        found = self._find(decision.pod, evaluation)
        if isinstance(found, Unusable):
            self._kept, self.hint, self.result = None, "", NO_HINT
            self.flushed = [found.reason] if found.reason else []
        else:
            self._kept, self.hint, self.result = found, found.nodes.best, ""
            self.flushed = []
        return self.hint

    def _find(self, pod: PodInfo, evaluation: Evaluation) -> KeptNodes | Unusable:
        batches = self._batches
        rules, state = batches.rules, batches.state_of(self._profile)
        self.check = None
        kept = rules.kept_for(state, self._asking(pod))
        if isinstance(kept, Unusable):
            return kept
        self.check = LastNodeCheck(self._profile, batches.snapshot, pod, evaluation)
        return rules.after_last_node(kept, state.last.node_name, self.check)

    def _asking(self, pod: PodInfo) -> Asking:
        nominated = pod.pod.status.nominated_node_name
        return Asking(self._cycle, self._signature, self._batches.now_s(), nominated)

    def conclude(self, decision: Decision) -> None:
        """The cycle has ended, with a node or without; a hint is consumed in any case."""
        state = self._batches.state_of(self._profile)
        if self._kept is not None:
            self._kept.nodes.pop()
            state = state._replace(kept=self._kept)
        if decision.node_name:
            asking, left = self._asking(decision.pod), self._left(decision)
            outcome = stored(state, asking, self.hint, decision.node_name, left)
            state, self.result = outcome.state, outcome.result or self.result
            if outcome.flushed:
                self.flushed.append(outcome.flushed)
        self._batches.set_state(self._profile, state)

    def _left(self, decision: Decision) -> ScoredNodes | None:
        scores = decision.scores
        if scores is None:
            return None
        raw: dict[str, IntArray] = {}
        if self._batches.rules.keeps_raw and self._signature is not None:
            raw = {part.plugin: part.raw.copy() for part in scores.by_plugin}
        rows, totals = decision.feasible.copy(), scores.total.copy()
        return ScoredNodes(decision.node_names, rows, totals, raw, popped=1)


def signature_of(profile: Profile, pod: PodInfo) -> Signature | None:
    """What the plugins say that they read of the pod; None if one of them refuses it."""
    signature: dict[str, object] = {"v1.Pod.Spec.SchedulerName": pod.pod.spec.scheduler_name}
    for plugin in profile.signers or ():
        try:
            fragments = plugin.sign_pod(pod)
            if fragments is None:
                return None
            signature.update(fragments)
        except BaseException as error:  # A fault in one plugin must not stop the scheduler.
            name = plugin_name(plugin)
            fail(log, "SignPod failed for plugin", fault_error(error, name, SIGN), plugin=name)
            return None
    return signature
