"""Trials on the snapshot that keep everything up to date which is read of pods (spec 12 §13)."""

from kubestow.api.pod_info import PodInfo
from kubestow.cache.trial import SnapshotTrial


class WholeTrial(SnapshotTrial):
    """A later member sees the anti-affinity of an earlier one, and the claims that it uses."""

    def add(self, pod: PodInfo) -> None:
        for row in self._rows(pod):
            info = self._changeable(row)
            info.add_pod(pod)
            self._snapshot.show_whole(row, info)

    def remove(self, pod: PodInfo) -> None:
        for row in self._rows(pod):
            info = self._changeable(row)
            info.remove_pod(pod.pod)
            self._snapshot.show_whole(row, info)

    def undo(self) -> None:
        for row, info in self._live.items():
            self._snapshot.show_whole(row, info)
        self._live.clear()
        self._snapshot.trim_log()
