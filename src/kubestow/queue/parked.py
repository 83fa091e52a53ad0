"""The pods that wait for an event: unschedulable and gated ones (spec 02 §2, §16, §18).

An event must not visit every parked pod. Whether it can move a pod depends on the pod's profile,
its rejectors and the plugin that gates it, so pods with equal values of these three form a group,
and an event is compared with groups. There are few of them, even if many pods are parked.

Invariants: every parked pod is in exactly one group, by the state of its record at the last `put`;
who changes rejectors or gate of a parked pod must call `put` again. No group is empty.
"""

from collections.abc import Hashable, Iterator, Mapping
from types import MappingProxyType

from kubestow.framework.plugin import SharedGatePlugin
from kubestow.queue.interest import Audience, Interest
from kubestow.queue.metrics import GATED, NO_METRICS, UNSCHEDULABLE, QueueMetrics
from kubestow.queue.queued_pod import QueuedPod

# Profile, rejectors, gate, and the set that a shared gate refuses as a whole.
_GroupKey = tuple[str, int, str, Hashable | None]


class ParkedPods:
    """All parked pods in the order in which they were parked."""

    def __init__(
        self,
        interest: Interest,
        *,
        metrics: QueueMetrics,
        shared_gates: Mapping[str, SharedGatePlugin] = MappingProxyType({}),
    ) -> None:
        """`shared_gates` are plugins by name; a set that one of them refuses is a group here."""
        self._interest = interest
        self._shared_gates = shared_gates
        self._metrics = metrics
        self._is_counted = metrics is not NO_METRICS
        self._entries: dict[str, ParkedPod] = {}
        self._groups: dict[_GroupKey, _Group] = {}
        self._sequence = 0
        self._gated_count = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[QueuedPod]:
        return (entry.queued_pod for entry in self._entries.values())

    @property
    def gated_count(self) -> int:
        return self._gated_count

    @property
    def unschedulable_count(self) -> int:
        return len(self._entries) - self._gated_count

    def get(self, key: str) -> QueuedPod | None:
        entry = self._entries.get(key)
        return None if entry is None else entry.queued_pod

    def has(self, entry: "ParkedPod") -> bool:
        """Whether the pod has been parked since this entry was made for it."""
        return self._entries.get(entry.queued_pod.key) is entry

    def put(self, queued_pod: QueuedPod, label: str) -> None:
        """Park the pod, or update its group; only a pod not parked before counts as incoming."""
        key = queued_pod.key
        group = self._group_of(queued_pod)
        entry = self._entries.get(key)
        if entry is None:
            self._sequence += 1
            entry = self._entries[key] = ParkedPod(queued_pod, group, self._sequence)
            self._metrics.incoming(UNSCHEDULABLE, label)
        else:
            self._leave(entry.group, key)
            entry.queued_pod = queued_pod
            entry.group = group
        group.members[key] = entry
        self._groups[group.key] = group
        self._count(group, 1)

    def discard(self, key: str) -> QueuedPod | None:
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        self._leave(entry.group, key)
        return entry.queued_pod

    def entries(self) -> "list[ParkedPod]":
        return list(self._entries.values())

    def candidates(self, audience: Audience, new: object = None) -> "list[ParkedPod]":
        """The pods an event may move, in the order in which they were parked.

        `new` is the object of the event. A set of pods whose gate is shut stays as it is; each of
        its pods would be refused again, which is counted only.
        """
        found: list[ParkedPod] = []
        for group in self._groups.values():
            if not group.may_move_after(audience):
                continue
            if group.gate_key is not None and not audience.is_wildcard:
                gate = self._shared_gates[group.gating_plugin]
                if not gate.is_open(group.gate_key):
                    if self._is_counted and gate.gate_key(new) == group.gate_key:
                        self._metrics.incoming(UNSCHEDULABLE, audience.label, len(group.members))
                    continue
            found += group.members.values()
        # Needed even for one group: a pod that changes its group is put at the end of the new one.
        found.sort(key=_sequence_of)
        return found

    def _group_of(self, queued_pod: QueuedPod) -> "_Group":
        mask, plugin = self._interest.mask_of(queued_pod.rejectors), queued_pod.gating_plugin
        gate = self._shared_gates.get(plugin) if plugin else None
        gate_key = None if gate is None else gate.gate_key(queued_pod.pod)
        key = (queued_pod.scheduler_name, mask, plugin, gate_key)
        return self._groups.get(key) or _Group(*key)

    def _leave(self, group: "_Group", key: str) -> None:
        del group.members[key]
        if not group.members:
            del self._groups[group.key]
        self._count(group, -1)

    def _count(self, group: "_Group", delta: int) -> None:
        """Keep the gauges equal to what is parked.

        In spec 02 §16 the caller passes the state of a removed pod. Where `add` replaces the record
        of a gated pod that is not the state it was counted in, and the gauge would stay wrong.
        """
        is_gated = group.gating_plugin != ""
        if is_gated:
            self._gated_count += delta
        if self._is_counted:
            self._metrics.pending_changed(GATED if is_gated else UNSCHEDULABLE, delta)


class ParkedPod:
    """A parked pod, its group, and its number in the order of parking."""

    __slots__ = ("group", "queued_pod", "sequence")

    def __init__(self, queued_pod: QueuedPod, group: "_Group", sequence: int) -> None:
        self.queued_pod = queued_pod
        self.group = group
        self.sequence = sequence

    @property
    def rejector_mask(self) -> int:
        return self.group.rejector_mask


class _Group:
    """Parked pods for which every event has the same listeners."""

    __slots__ = ("gate_key", "gating_plugin", "members", "rejector_mask", "scheduler_name")

    def __init__(
        self,
        scheduler_name: str,
        rejector_mask: int,
        gating_plugin: str,
        gate_key: Hashable | None,
    ) -> None:
        self.scheduler_name = scheduler_name
        self.rejector_mask = rejector_mask
        self.gating_plugin = gating_plugin
        self.gate_key = gate_key
        self.members: dict[str, ParkedPod] = {}

    @property
    def key(self) -> _GroupKey:
        return (self.scheduler_name, self.rejector_mask, self.gating_plugin, self.gate_key)

    def may_move_after(self, audience: Audience) -> bool:
        # Spec 02 §9.6: gated pods move only after events that their gate registered for.
        if self.gating_plugin and not audience.concerns_gated_by(self.gating_plugin):
            return False
        return audience.may_help(self.scheduler_name, self.rejector_mask)


def _sequence_of(entry: ParkedPod) -> int:
    return entry.sequence
