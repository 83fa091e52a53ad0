"""All decisions of a recording, made under both editions.

Both clusters follow the recorded changes. When a pod was decided on, both editions decide on it in
the cluster of that moment, and the recorded decision is carried out. Of another scheduler, whose
decisions are not recorded, those are seen that a change of the pod shows: a node, or a condition.
"""

from collections.abc import Iterable
from typing import NamedTuple

from kubestow.api.decode import decode_json
from kubestow.api.meta import ApiObject, ObjectMeta
from kubestow.api.pod import Pod, is_assigned
from kubestow.editions.noticed import NoticedChanges
from kubestow.recording.format import Put, Record, RecordedAttempt, Removed, kind_of
from kubestow.simulator.replay.judging import outcome_of
from kubestow.simulator.upgrade.decisions import ComparedPods, PodComparison
from kubestow.simulator.upgrade.objects import failed_binding
from kubestow.simulator.upgrade.pair import EditionPair, why_not
from kubestow.simulator.upgrade.report import UpgradeFinding


class ComparedRecording(NamedTuple):
    """`bindings`: what failed for a moment only, once per pod."""

    pods: ComparedPods
    bindings: tuple[UpgradeFinding, ...]


def compare_recording(
    pair: EditionPair, records: Iterable[Record], noticed: NoticedChanges, *, is_foreign: bool
) -> ComparedRecording:
    """`pair` has no objects yet; `is_foreign`: another scheduler decided."""
    followed = _FollowedClusters(pair, is_foreign=is_foreign)
    for record in records:
        followed.apply(record)
    pods = followed.comparison.result(noticed, followed.left_out)
    return ComparedRecording(pods, tuple(followed.bindings.values()))


class _FollowedClusters:
    def __init__(self, pair: EditionPair, *, is_foreign: bool) -> None:
        self._pair = pair
        self._is_foreign = is_foreign
        self.comparison = PodComparison(pair)
        self.left_out: dict[str, int] = {}
        self.bindings: dict[str, UpgradeFinding] = {}

    def apply(self, record: Record) -> None:
        match record:
            case Put():
                self._put(record)
            case Removed():
                self._remove(record)
            case RecordedAttempt():
                namespace, _, name = record.pod.partition("/")
                pod = self._pair.before.objects.pods.get(namespace, name)
                if pod is not None and pod.metadata.uid == record.uid:
                    self._decide(pod, record.node)
            case _:
                pass

    def _put(self, record: Put) -> None:
        cls = kind_of(record.kind)
        if cls is None:
            return
        new = decode_json(cls, record.text)
        if self._is_foreign and isinstance(new, Pod):
            old = self._pair.before.find(new)
            if old is not None and not is_assigned(old) and outcome_of(old, new) is not None:
                self._decide(old, "")
        for cluster in (self._pair.older, self._pair.newer):
            cluster.put(new)
        if isinstance(new, Pod):
            self.comparison.pod_changed(new)
            binding = failed_binding(new)
            if binding is not None:
                self.bindings.setdefault(new.metadata.uid, binding)

    def _remove(self, record: Removed) -> None:
        cls = kind_of(record.kind)
        if cls is None:
            return
        gone: ApiObject = cls(metadata=ObjectMeta(namespace=record.namespace, name=record.name))
        for cluster in (self._pair.older, self._pair.newer):
            cluster.remove(gone)
        if isinstance(gone, Pod):
            self.comparison.pod_changed(gone)

    def _decide(self, pod: Pod, node: str) -> None:
        """Both editions decide on the pod; then it counts on this node, if there is one."""
        if is_assigned(pod):
            return
        reason = why_not(self._pair.before, pod)
        if reason:
            self.left_out[reason] = self.left_out.get(reason, 0) + 1
        else:
            self.comparison.compare(pod, node)
