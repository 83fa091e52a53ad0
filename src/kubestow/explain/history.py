"""The last attempt of each pod that waits, kept by a running scheduler.

Pods that fit at once are not kept: they cost one comparison. For the others a frozen copy is made,
as long as that takes a small share of the time (`TimeShare`): in a cluster with thousands of
waiting pods most attempts repeat what was found before.

What is kept is limited by memory, so that large clusters keep fewer pods; the pods whose last
attempt is longest ago are dropped first.
"""

from collections import OrderedDict
from typing import Final, NamedTuple

import msgspec

from kubestow.clock import Clock
from kubestow.engine.decision import Decision
from kubestow.engine.frozen_decision import FrozenDecision
from kubestow.engine.observer import Observer
from kubestow.queue import QueuedPod

PODS_MAX: Final = 4096
# Verdicts and scores of all attempts together, each of 4 to 8 bytes.
VALUES_MAX: Final = 2_000_000
# How much of the time copies take.
SHARE: Final = 0.02
# Time that may be saved: for some hundred copies in a row on 5,000 nodes.
BURST_S: Final = 0.1


class KeptAttempt(NamedTuple):
    """`at_ns` is when it was made, `attempts` how many there were until then."""

    decision: FrozenDecision
    at_ns: int
    attempts: int
    value_count: int


class HistoryStatistics(msgspec.Struct, frozen=True, kw_only=True):
    pods: int
    values: int
    # Attempts of waiting pods that were not copied, and pods that were dropped for others.
    skipped: int
    dropped: int


class AttemptHistory(Observer):
    """An observer of decisions; attempts by namespace and name of the pod."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: OrderedDict[str, KeptAttempt] = OrderedDict()
        self._value_count = 0
        self._time = TimeShare(clock, SHARE)
        self._skipped = 0
        self._dropped = 0

    def decided(self, decision: Decision, queued_pod: QueuedPod) -> None:
        if decision.status is None and queued_pod.attempts < 2:
            return
        if not self._time.has_time():
            self._skipped += 1
            return
        if decision.pod is not queued_pod.pod_info:
            # Of an equal member of the group, tried just before.
            decision = decision.repeated_for(queued_pod.pod_info)
        self._keep(decision.freeze(), queued_pod.attempts)
        self._time.spent()

    def find(self, namespace: str, name: str) -> KeptAttempt | None:
        return self._kept.get(f"{namespace}/{name}")

    def all(self) -> list[KeptAttempt]:
        """The attempts of all pods, the one made longest ago first."""
        return list(self._kept.values())

    def statistics(self) -> HistoryStatistics:
        return HistoryStatistics(
            pods=len(self._kept),
            values=self._value_count,
            skipped=self._skipped,
            dropped=self._dropped,
        )

    def _keep(self, decision: FrozenDecision, attempts: int) -> None:
        key = decision.pod.key
        self._forget(key)
        kept = KeptAttempt(decision, self._clock.now_ns(), attempts, value_count(decision))
        self._kept[key] = kept
        self._value_count += kept.value_count
        while len(self._kept) > PODS_MAX or (
            self._value_count > VALUES_MAX and len(self._kept) > 1
        ):
            self._forget(next(iter(self._kept)))
            self._dropped += 1

    def _forget(self, key: str) -> None:
        old = self._kept.pop(key, None)
        if old is not None:
            self._value_count -= old.value_count


def value_count(decision: FrozenDecision) -> int:
    """Verdicts and scores in a frozen decision."""
    rows = len(decision.feasible) + len(decision.absent.nodes)
    rows += sum(len(group.nodes) for group in decision.rejected)
    return rows + 3 * len(decision.scores) * len(decision.feasible)


class TimeShare:
    """Limits work beside the scheduler's: ask `has_time` before it, call `spent` after it.

    What was not used is saved up to a limit. So a few pods that are tried one after the other are
    all copied, and thousands take no more than the share.
    """

    def __init__(self, clock: Clock, share: float) -> None:
        """`clock` measures real time."""
        self._clock = clock
        self._share = share
        self._saved_s = BURST_S
        self._read_s = clock.monotonic_s()

    def has_time(self) -> bool:
        self._saved_s = min(self._saved_s + self._share * self._passed_s(), BURST_S)
        return self._saved_s > 0

    def spent(self) -> None:
        """All time since `has_time` was spent."""
        self._saved_s -= self._passed_s()

    def _passed_s(self) -> float:
        now_s = self._clock.monotonic_s()
        passed_s, self._read_s = now_s - self._read_s, now_s
        return passed_s
