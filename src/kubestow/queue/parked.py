"""The pods that wait for an event: unschedulable and gated ones (spec 02 §2, §16, §18).

An event must not cost a look at every parked pod. Whether it can help depends on the pod's profile,
its rejectors and the plugin that gates it, so pods that agree in these three form a group, and an
event is held against groups. There are few of them, however many pods are parked.

Invariants: every parked pod is in exactly one group, that of the state its record had when it was
last put here; whoever changes rejectors or gate of a parked pod puts it again. No group is empty.
"""

from collections.abc import Iterator

from kubestow.queue.interest import Audience, Interest
from kubestow.queue.metrics import GATED, NO_METRICS, UNSCHEDULABLE, QueueMetrics
from kubestow.queue.queued_pod import QueuedPod


class ParkedPods:
    """All parked pods, in the order in which they came."""

    def __init__(self, interest: Interest, *, metrics: QueueMetrics) -> None:
        self._interest = interest
        self._metrics = metrics
        self._is_counted = metrics is not NO_METRICS
        self._spots: dict[str, Spot] = {}
        self._groups: dict[tuple[str, int, str], _Group] = {}
        self._sequence = 0
        self._gated_count = 0

    def __len__(self) -> int:
        return len(self._spots)

    def __contains__(self, key: str) -> bool:
        return key in self._spots

    def __iter__(self) -> Iterator[QueuedPod]:
        return (spot.queued_pod for spot in self._spots.values())

    @property
    def gated_count(self) -> int:
        return self._gated_count

    @property
    def unschedulable_count(self) -> int:
        return len(self._spots) - self._gated_count

    def get(self, key: str) -> QueuedPod | None:
        spot = self._spots.get(key)
        return None if spot is None else spot.queued_pod

    def put(self, queued_pod: QueuedPod, label: str) -> None:
        """Park the pod, or take note of its new state; only a newcomer counts as incoming."""
        key = queued_pod.key
        group = self._group_of(queued_pod)
        spot = self._spots.get(key)
        if spot is None:
            self._sequence += 1
            spot = self._spots[key] = Spot(queued_pod, group, self._sequence)
            self._metrics.incoming(UNSCHEDULABLE, label)
        else:
            self._leave(spot.group, key)
            spot.queued_pod = queued_pod
            spot.group = group
        group.members[key] = spot
        self._groups[group.key] = group
        self._count(group, 1)

    def discard(self, key: str) -> QueuedPod | None:
        spot = self._spots.pop(key, None)
        if spot is None:
            return None
        self._leave(spot.group, key)
        return spot.queued_pod

    def spots(self) -> "list[Spot]":
        return list(self._spots.values())

    def candidates(self, audience: Audience) -> "list[Spot]":
        """The pods an event may help, in the order in which they were parked."""
        found: list[Spot] = []
        for group in self._groups.values():
            if group.may_be_helped_by(audience):
                found += group.members.values()
        # Needed even for one group: whoever changes to another group is put at its end there.
        found.sort(key=_sequence_of)
        return found

    def _group_of(self, queued_pod: QueuedPod) -> "_Group":
        mask = self._interest.mask_of(queued_pod.rejectors)
        key = (queued_pod.scheduler_name, mask, queued_pod.gating_plugin)
        return self._groups.get(key) or _Group(*key)

    def _leave(self, group: "_Group", key: str) -> None:
        del group.members[key]
        if not group.members:
            del self._groups[group.key]
        self._count(group, -1)

    def _count(self, group: "_Group", delta: int) -> None:
        """Keep the gauges equal to what is parked.

        Spec 02 §16 lets the caller say in which state a removed pod was. That is the state it was
        counted in, except when `add` replaces the record of a gated pod; then the specified gauges
        would be wrong forever after, and these are not.
        """
        is_gated = group.gating_plugin != ""
        if is_gated:
            self._gated_count += delta
        if self._is_counted:
            self._metrics.pending_changed(GATED if is_gated else UNSCHEDULABLE, delta)


class Spot:
    """A parked pod, its group, and its turn among all."""

    __slots__ = ("group", "queued_pod", "sequence")

    def __init__(self, queued_pod: QueuedPod, group: "_Group", sequence: int) -> None:
        self.queued_pod = queued_pod
        self.group = group
        self.sequence = sequence

    @property
    def rejector_mask(self) -> int:
        return self.group.rejector_mask


class _Group:
    """Parked pods that no event can tell apart without looking at the objects."""

    __slots__ = ("gating_plugin", "members", "rejector_mask", "scheduler_name")

    def __init__(self, scheduler_name: str, rejector_mask: int, gating_plugin: str) -> None:
        self.scheduler_name = scheduler_name
        self.rejector_mask = rejector_mask
        self.gating_plugin = gating_plugin
        self.members: dict[str, Spot] = {}

    @property
    def key(self) -> tuple[str, int, str]:
        return (self.scheduler_name, self.rejector_mask, self.gating_plugin)

    def may_be_helped_by(self, audience: Audience) -> bool:
        # Spec 02 §9.6: gated pods only hear of what their gate registered for.
        if self.gating_plugin and not audience.concerns_gated_by(self.gating_plugin):
            return False
        return audience.may_help(self.scheduler_name, self.rejector_mask)


def _sequence_of(spot: Spot) -> int:
    return spot.sequence
